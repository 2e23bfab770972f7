/* peer/report/page_settings.c -- the settings of runs: which differ, and all of them. */
#include "peer/report/page.h"
#include "peer/run/key.h"

#include <string.h>

enum { VALUE_MAX = 4096 };

/* What is told of a single run, whatever it is. */
static const char *const always[] = {"command",  "--peers", "model",  "data", "topology",
                                     "compress", "mixer",   "rounds", "seed", NULL};

/* A line of a text: its key in place, and where its value begins. */
struct line
{
    const char *key, *value, *end;
    size_t n; /* Bytes of the key. */
};

/* The next line at *at that has a '='; false at the end. */
static bool next_line(const char **at, struct line *l)
{
    while (**at != '\0') {
        const char *begin = *at, *end = begin + strcspn(begin, "\n");
        const char *equals = memchr(begin, '=', (size_t)(end - begin));
        *at = end + (*end != '\0');
        if (equals == NULL)
            continue;
        *l = (struct line){begin, equals + 1, end, (size_t)(equals - begin)};
        return true;
    }
    return false;
}

static bool is_key(const struct line *l, const char *key)
{
    return strlen(key) == l->n && memcmp(l->key, key, l->n) == 0;
}

/* The text [from, end), escaped; what is very long is cut, and says so. */
static void put_part(struct report_text *out, const char *from, const char *end)
{
    char part[VALUE_MAX];
    size_t n = (size_t)(end - from), room = sizeof part - 1;
    memcpy(part, from, n < room ? n : room);
    part[n < room ? n : room] = '\0';
    report_text_html(out, part);
    if (n > room)
        report_text_put(out, "&hellip;");
}

/* The same key in another run's text. */
static bool find_line(const struct report_run *run, const struct line *key, struct line *found)
{
    const char *at = run->text;
    while (next_line(&at, found))
        if (found->n == key->n && memcmp(found->key, key->key, key->n) == 0)
            return true;
    return false;
}

static bool same_value(const struct line *a, const struct line *b)
{
    size_t n = (size_t)(a->end - a->value);
    return n == (size_t)(b->end - b->value) && memcmp(a->value, b->value, n) == 0;
}

/* Did a run before this one have the key? Then its row is there already. */
static bool is_told(const struct report_run *runs, size_t i, const struct line *key)
{
    struct line found;
    for (size_t k = 0; k < i; k++)
        if (find_line(&runs[k], key, &found))
            return true;
    return false;
}

static bool differs(const struct report_run *runs, size_t n, const struct line *key)
{
    struct line found;
    for (size_t k = 0; k < n; k++)
        if (!find_line(&runs[k], key, &found) || !same_value(&found, key))
            return true;
    return false;
}

/* Is it the value that a run has where nobody says otherwise? */
static bool is_default(const struct line *l, const struct run_trainer *trainer)
{
    char value[RUN_VALUE_MAX], error[RUN_ERROR_MAX];
    const struct run_key *key;
    for (size_t k = 0; (key = run_key_at(trainer, k)) != NULL; k++) {
        if (!is_key(l, key->name) || !run_key_has_default(key)
            || run_canonical_value(key, key->fallback, value, error) != 0)
            continue;
        struct line usual = {NULL, value, value + strlen(value), 0};
        return same_value(l, &usual);
    }
    return false;
}

static bool is_shown(const struct line *l, const struct run_trainer *trainer)
{
    for (size_t i = 0; always[i] != NULL; i++)
        if (is_key(l, always[i]))
            return true;
    return !is_default(l, trainer);
}

static void put_key(struct report_text *out, const struct line *l)
{
    report_text_put(out, "<tr><th>");
    put_part(out, l->key, l->key + l->n);
    report_text_put(out, "</th>");
}

static void put_row(struct report_text *out, const struct report_run *runs, size_t n,
                    const struct line *key)
{
    struct line found;
    put_key(out, key);
    for (size_t k = 0; k < n; k++) {
        report_text_put(out, "<td>");
        if (find_line(&runs[k], key, &found))
            put_part(out, found.value, found.end);
        else
            report_text_put(out, "&ndash;");
        report_text_put(out, "</td>");
    }
    report_text_put(out, "</tr>\n");
}

/* One run has those told that somebody chose, several have those that differ. Returns how many. */
static size_t put_rows(struct report_text *out, const struct report_run *runs, size_t n,
                       const struct run_trainer *trainer)
{
    size_t rows = 0;
    struct line l;
    for (size_t i = 0; i < n; i++)
        for (const char *at = runs[i].text; next_line(&at, &l);) {
            bool shown = n == 1 ? is_shown(&l, trainer) : differs(runs, n, &l);
            if (!shown || is_told(runs, i, &l))
                continue;
            put_row(out, runs, n, &l);
            rows++;
        }
    return rows;
}

static void put_head(struct report_text *out, const struct report_run *runs, size_t n)
{
    report_text_put(out, "<div class=\"wide\"><table class=\"settings\">\n");
    if (n < 2)
        return;
    report_text_put(out, "<tr><th></th>");
    for (size_t i = 0; i < n; i++) {
        report_text_put(out, "<th>");
        report_page_name(out, runs, i);
        report_text_put(out, "</th>");
    }
    report_text_put(out, "</tr>\n");
}

void report_page_settings(struct report_text *out, const struct report_run *runs, size_t n,
                          const struct run_trainer *trainer)
{
    report_text_print(out, "<h2>%s</h2>\n",
                      n > 1 ? "Settings that differ"
                            : "Settings that are no defaults, and what auto stood for");
    put_head(out, runs, n);
    size_t rows = put_rows(out, runs, n, trainer);
    report_text_put(out, "</table></div>\n");
    if (rows == 0)
        report_text_put(out, n > 1 ? "<p>None: the runs have the same settings.</p>\n"
                                   : "<p>None are known: there is no run.txt.</p>\n");
}

void report_page_all_settings(struct report_text *out, const struct report_run *runs, size_t n)
{
    struct line l;
    report_text_put(out, "<h2>All settings</h2>\n");
    for (size_t i = 0; i < n; i++) {
        report_text_put(out, "<details><summary>");
        report_page_name(out, runs, i);
        report_text_put(out, "</summary>\n<div class=\"wide\"><table class=\"settings\">\n");
        for (const char *at = runs[i].text; next_line(&at, &l);)
            put_row(out, &runs[i], 1, &l);
        report_text_put(out, "</table></div></details>\n");
    }
}
