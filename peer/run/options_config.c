/* peer/run/options_config.c -- parses the lines of a --config file, and writes the options of a
 * command as such a file. */
#include "peer/run/options_config.h"

#include "nn/math/number.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

const struct option_row options_shared_rows[] = {
    {.name = "config",
     .kind = OPTION_TEXT,
     .arg = "FILE",
     .help = "read options from this file, as lines of name = value; the command line takes "
             "precedence over the environment, and the environment over the file"},
    {.name = "print-config",
     .kind = OPTION_FLAG,
     .help =
         "print the given options as a file for --config, with the defaults as comments, and exit"},
    {.name = NULL}};

/* ---- Reading settings. ---- */

static const char blanks[] = " \t\r";

static char *skip_blanks(char *p)
{
    return p + strspn(p, blanks);
}

/* Removes blanks at the end of the text. */
static void trim(char *begin)
{
    size_t n = strlen(begin);
    while (n > 0 && strchr(blanks, begin[n - 1]) != NULL)
        begin[--n] = '\0';
}

static int refuse(char error[OPTIONS_ERROR_MAX], const char *sentence)
{
    snprintf(error, OPTIONS_ERROR_MAX, "%s", sentence);
    return -EINVAL;
}

/* Removes the quotes around a value and resolves its escapes, in place. Returns 0, or -EINVAL with
 * a message. */
static int unquote(char *value, char error[OPTIONS_ERROR_MAX])
{
    char *to = value, *p = value + 1;
    while (*p != '"') {
        if (*p == '\\' && (p[1] == '"' || p[1] == '\\'))
            p++;
        else if (*p == '\\')
            return refuse(error, "found a backslash, expected \\\" or \\\\ in quotes");
        if (*p == '\0')
            return refuse(error, "found no quote at the end of a value that begins with a quote");
        *to++ = *p++;
    }
    p = skip_blanks(p + 1);
    *to = '\0';
    return *p == '\0' || *p == '#' ? 0 : refuse(error, "expected nothing after a value in quotes");
}

/* Cuts off a comment after a value without quotes. A # starts a comment only after a blank or at
 * the start of the value. */
static void cut_comment(char *value)
{
    for (char *p = value; *p != '\0'; p++)
        if (*p == '#' && (p == value || strchr(blanks, p[-1]) != NULL)) {
            *p = '\0';
            break;
        }
    trim(value);
}

/* Parses "name = value" from a line without a newline. Returns 0, or -EINVAL with a message. */
static int read_line(char *line, struct options_setting *s, char error[OPTIONS_ERROR_MAX])
{
    char *equals = strchr(line, '=');
    for (const char *c = line; *c != '\0'; c++)
        if (iscntrl((unsigned char)*c) && strchr(blanks, *c) == NULL)
            return refuse(error, "found a control character");
    if (*line == '[')
        return refuse(error, "found a section header, expected name = value: sections are not "
                             "supported");
    if (equals == NULL)
        return refuse(error, "expected name = value");
    *equals = '\0';
    trim(line);
    s->name = line;
    s->value = skip_blanks(equals + 1);
    if (line[0] == '\0')
        return refuse(error, "expected a name before the =");
    if (s->value[0] == '"')
        return unquote(s->value, error);
    cut_comment(s->value);
    return s->value[0] != '\0' ? 0 : refuse(error, "expected a value after the =");
}

int options_setting_next(char **at, unsigned *line, struct options_setting *s,
                         char error[OPTIONS_ERROR_MAX])
{
    static const char mark[] =
        /* UTF-8 byte order mark, which some editors write at the start of a file. */
        "\xef\xbb\xbf";
    if (*line == 0 && strncmp(*at, mark, strlen(mark)) == 0)
        *at += strlen(mark);
    while (**at != '\0') {
        char *begin = skip_blanks(*at), *end = strchr(*at, '\n');
        *at = end != NULL ? end + 1 : *at + strlen(*at);
        if (end != NULL)
            *end = '\0';
        ++*line;
        if (begin[0] == '\0' || begin[0] == '#' || begin == end)
            continue;
        s->line = *line;
        int err = read_line(begin, s, error);
        return err < 0 ? err : 1;
    }
    return 0;
}

/* ---- Writing settings. ---- */

/* Text that is being written into a buffer of `cap` bytes. `n` also counts characters that did not
 * fit. */
struct page
{
    char *out;
    size_t n, cap;
};

static void put(struct page *p, char c)
{
    if (p->n + 1 < p->cap)
        p->out[p->n] = c;
    p->n++;
}

static void put_text(struct page *p, const char *text)
{
    for (; *text != '\0'; text++)
        put(p, *text);
}

static void put_escaped(struct page *p, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            put(p, '\\');
        put(p, *text);
    }
}

/* Writes a value as TOML: numbers and booleans without quotes, all other values with quotes. A
 * number that is not in its shortest spelling, such as "007", gets quotes, because it may be a
 * name. */
static void put_value(struct page *p, const struct option_value *v)
{
    char shortest[NUMBER_TEXT_MAX] = "";
    double number;
    if (number_real(v->text, &number))
        number_real_text(number, shortest);
    bool bare = strcmp(v->text, shortest) == 0;
    bool on = false;
    if (v->row->kind == OPTION_FLAG) {
        put_text(p, options_read_flag(v->text, &on) && on ? "true" : "false");
        return;
    }
    if (!bare)
        put(p, '"');
    put_escaped(p, v->text);
    if (!bare)
        put(p, '"');
}

static bool is_shared(const struct option_row *row)
{
    const struct option_row *s = options_shared_rows;
    while (s->name != NULL && s != row)
        s++;
    return s->name != NULL;
}

/* Defaults are written as comments. As settings they would count as given by the user. They might
 * then be refused, because another option excludes them or because they have no effect. */
size_t options_config_text(const struct options *o, char *out, size_t cap)
{
    struct page p = {.out = out, .cap = cap};
    put_text(&p, "# hearsay ");
    put_text(&p, o->command->name);
    put(&p, '\n');
    for (uint32_t i = 0; i < o->n; i++) {
        const struct option_value *v = &o->values[i];
        bool none = v->text == NULL || v->text[0] == '\0'
                    || (v->source == OPTION_DEFAULT && !options_has_default(o, v));
        if (none || v->row->kind == OPTION_OPERAND || is_shared(v->row))
            continue;
        put_text(&p, v->source == OPTION_DEFAULT ? "# " : "");
        put_text(&p, v->row->name);
        put_text(&p, " = ");
        put_value(&p, v);
        put(&p, '\n');
    }
    if (cap > 0)
        out[p.n < cap ? p.n : cap - 1] = '\0';
    return p.n;
}
