/* nn/data/libsvm.c -- reads the text format of libsvm (Chang, Lin 2011): one row per line, with the
 * label and then the entries that are not zero. Indices are ascending, from 1.
 *
 *   -1 3:1 11:0.5 14:-2e-3   # a comment
 *   ^label  ^index:value
 */
#include "nn/data/labels.h"
#include "nn/data/lines.h"
#include "nn/math/number.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOOK_LINES = 32 /* Number of lines that libsvm_looks() inspects. */
};

/* State of one pass over the files. The first pass counts rows and entries and records labels. The
 * second pass fills a set. */
struct pass
{
    const struct kind_rows *kind;
    const char *kind_text;
    uint32_t most; /* Largest valid index of a feature. */
    /* Labels recorded by the first pass. NULL in libsvm_looks(), which accepts any label and
     * index. */
    struct labels *labels;
    enum reader_rows rows; /* Whether rows have labels. READER_MAYBE: the first row decides. */
    struct dataset *d;     /* The data set to fill. NULL in the first pass. */
    struct lines_spot spot;
    uint64_t blank; /* Number of the last empty line of this file, from 1. 0: none. */
    size_t n_rows, n_entries, longest;
    uint32_t largest; /* Largest index of a feature that was read so far. */
};

/* A piece of a line of the file: the bytes [p, end). */
struct piece
{
    const uint8_t *p, *end;
};

/* Returns whether the byte c separates two tokens of a line. */
static bool is_space(uint8_t c)
{
    return c == ' ' || c == '\t';
}

/* Returns whether the line has no further token at line.p: a comment begins there, or the line
 * ends. A carriage return before the end of the line is ignored. */
static bool is_behind(struct piece line)
{
    return line.p == line.end || *line.p == '#' || (*line.p == '\r' && line.p + 1 == line.end);
}

/* Returns the next token of the line, empty at the end of the line. `line` moves past the token. */
static struct piece next_token(struct piece *line)
{
    while (line->p < line->end && is_space(*line->p))
        line->p++;
    struct piece token = {line->p, line->p};
    while (!is_behind(*line) && !is_space(*line->p))
        line->p++;
    token.end = line->p;
    return token;
}

static int refuse_token(const struct pass *s, const char *where, struct piece found,
                        const char *wanted)
{
    return lines_refuse(&s->spot, where, found.p, (size_t)(found.end - found.p), wanted);
}

/* Reads the index before the colon and removes it from the token. Returns false if there is no
 * index. An index that is too large gives a number above DATA_FEATURES_MAX. */
static bool read_index(struct piece *token, uint32_t *index)
{
    const uint8_t *p = token->p;
    for (*index = 0; p < token->end && *p >= '0' && *p <= '9'; p++)
        *index = *index > DATA_FEATURES_MAX ? *index : *index * 10 + (uint32_t)(*p - '0');
    if (p == token->p || p == token->end || *p != ':')
        return false;
    token->p = p + 1;
    return true;
}

/* Writes the error message for an entry with a wrong index. */
static int refuse_index(const struct pass *s, struct piece token, uint32_t index, uint32_t before)
{
    char wanted[120];
    if ((size_t)(token.end - token.p) >= 4 && memcmp(token.p, "qid:", 4) == 0)
        snprintf(wanted, sizeof wanted,
                 "index:value: ranking data (qid) are not supported, "
                 "because they have no classes");
    else if (index == 0)
        snprintf(wanted, sizeof wanted, "index:value with an index of at least 1");
    else if (index <= before)
        snprintf(wanted, sizeof wanted,
                 "an index above %u, because the indices of a row must ascend", before);
    else
        snprintf(wanted, sizeof wanted, "an index of at most %u%s%s%s", s->most,
                 s->kind->fixed ? " (" : "", s->kind->fixed ? s->kind_text : "",
                 s->kind->fixed ? ")" : "");
    return refuse_token(s, "entry", token, wanted);
}

/* Reads one entry of a row, the token "index:value". */
static int read_entry(struct pass *s, struct piece token, uint32_t *before)
{
    struct piece rest = token;
    uint32_t index;
    if (!read_index(&rest, &index))
        return refuse_index(s, token, 0, 0);
    if (s->labels != NULL && (index <= *before || index > s->most))
        return refuse_index(s, token, index, *before);
    double v;
    float x;
    if (number_read(rest.p, rest.end, &v) != rest.end)
        return refuse_token(s, "entry", token, "index:value with a decimal number");
    if (!number_to_float(v, s->kind->divide, &x)) {
        char wanted[NUMBER_WANTED_MAX];
        number_wanted(s->kind->divide, wanted);
        return refuse_token(s, "entry", token, wanted);
    }
    if (s->d != NULL) {
        s->d->column[s->n_entries] = index - 1;
        s->d->entry[s->n_entries] = x;
    }
    s->n_entries++;
    *before = index;
    return 0;
}

/* Reads the label of a row: records it in the first pass, and stores its class in the second.
 * libsvm_looks() passes no labels object; any number is then accepted. */
static int read_label(struct pass *s, struct piece token)
{
    size_t n = (size_t)(token.end - token.p);
    char wanted[LABELS_WHY_MAX] = "a number";
    double any;
    int err = 0;
    if (s->d != NULL)
        s->d->labels[s->n_rows] = labels_class(s->labels, token.p, n);
    else if (s->labels != NULL)
        err = labels_note(s->labels, token.p, n, wanted);
    else if (!number_is(token.p, n, &any))
        err = -EINVAL;
    if (err == -ENOMEM)
        return file_no_memory(s->spot.error, s->spot.path);
    return err < 0 ? refuse_token(s, "label", token, wanted) : 0;
}

/* Decides by the first row whether rows have labels: a row without a label begins with an entry. In
 * a file without labels, empty lines are refused. An empty line could be a row without entries, and
 * the numbers of all later rows would then be uncertain. */
static int check_bare(struct pass *s, struct piece token)
{
    if (s->rows == READER_MAYBE)
        s->rows = memchr(token.p, ':', (size_t)(token.end - token.p)) != NULL ? READER_BARE
                                                                              : READER_LABELLED;
    if (s->rows != READER_BARE || s->blank == 0)
        return 0;
    return file_error(s->spot.error, s->spot.path,
                      "line %llu: found an empty line, expected index:value; delete the line, or "
                      "write 1:0 if it is a row of zeros",
                      (unsigned long long)s->blank);
}

/* Reads one line, without its newline. The line is a row, empty, or a comment. */
static int read_line(struct pass *s, struct piece line)
{
    const struct piece whole = line;
    struct piece token = next_token(&line);
    if (token.p == token.end) {
        s->blank = token.p == whole.end || *token.p != '#' ? s->spot.line : s->blank;
        return 0;
    }
    int err = check_bare(s, token);
    if (err == 0 && s->rows == READER_BARE)
        line = whole;
    else if (err == 0)
        err = read_label(s, token);
    size_t start = s->n_entries;
    uint32_t before = 0;
    for (;;) {
        token = next_token(&line);
        if (err < 0 || token.p == token.end)
            break;
        err = read_entry(s, token, &before);
    }
    if (err < 0)
        return err;
    size_t n = s->n_entries - start;
    s->n_rows++;
    s->longest = n > s->longest ? n : s->longest;
    s->largest = before > s->largest ? before : s->largest;
    if (s->d != NULL)
        s->d->start[s->n_rows] = s->n_entries;
    return 0;
}

/* Sets *line to the next line and moves *rest past it. Returns false at the end of the bytes. */
static bool next_line(struct piece *rest, struct piece *line)
{
    if (rest->p == rest->end)
        return false;
    const uint8_t *newline = memchr(rest->p, '\n', (size_t)(rest->end - rest->p));
    *line = (struct piece){rest->p, newline != NULL ? newline : rest->end};
    rest->p = newline != NULL ? newline + 1 : rest->end;
    return true;
}

/* Skips a UTF-8 byte order mark: returns the bytes after it, or all bytes if there is none. */
static struct piece behind_mark(const uint8_t *bytes, size_t n)
{
    bool mark = n >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0;
    return (struct piece){bytes + (mark ? 3 : 0), bytes + n};
}

/* Reads one file. A file without rows is an error. */
static int read_file(struct pass *s, const struct lines_file *f, size_t *n_rows)
{
    size_t before = s->n_rows;
    struct piece rest = behind_mark(f->bytes, f->n), line;
    s->spot.path = f->path;
    s->blank = 0;
    for (s->spot.line = 1; next_line(&rest, &line); s->spot.line++) {
        int err = read_line(s, line);
        if (err < 0)
            return err;
    }
    *n_rows = s->n_rows - before;
    if (*n_rows == 0)
        return file_error(s->spot.error, f->path,
                          "found no rows in %zu bytes, expected lines \"label "
                          "index:value ...\"",
                          f->n);
    return 0;
}

/* Runs one of the two passes over the rows: sets the counts to 0, and reads all files in order. */
static int read_files(struct pass *s, const struct lines_file *files, size_t n, size_t *n_rows)
{
    int err = 0;
    s->n_rows = s->n_entries = s->longest = 0;
    for (size_t i = 0; i < n && err == 0; i++)
        err = read_file(s, &files[i], &n_rows[i]);
    return err;
}

/* Called after the first pass over the files: derives the kind of the data (nn/data/kind.h) from
 * the counts and labels of the rows, and writes it to `text`. */
static int kind_from_rows(const struct pass *s, const struct reader *r, struct kind_rows *kind,
                          char text[DATA_KIND_MAX])
{
    int err = lines_settle(s->rows == READER_BARE ? NULL : s->labels, kind, s->n_rows, &s->spot);
    if (err < 0)
        return err;
    if (!kind->fixed)
        kind->features = r->features ? r->features : s->largest;
    if (kind->features == 0)
        return file_error(s->spot.error, s->spot.path,
                          "found %zu row%s without an entry, expected index:value", s->n_rows,
                          number_plural(s->n_rows));
    return lines_print_kind(kind, "libsvm", &s->spot, text);
}

/* The second pass over the files: fills the data set. This pass cannot fail on an entry, because
 * the first pass has checked and counted all entries. */
static int fill_entries(struct pass *s, struct dataset *d, const char *kind,
                        const struct lines_file *files, const struct reader *r, size_t *n_rows)
{
    int err = dataset_init(d, kind, s->n_rows, s->n_entries);
    if (err < 0)
        return file_no_memory(s->spot.error, files->path);
    size_t n = s->n_rows, n_entries = s->n_entries;
    s->d = d;
    d->start[0] = 0;
    err = read_files(s, files, r->n_paths, n_rows);
    assert(err == 0 && s->n_rows == n && s->n_entries == n_entries);
    d->longest = s->longest;
    if (s->rows == READER_BARE) {
        free(d->labels);
        d->labels = NULL;
    }
    if (lines_mark_files(d, n_rows, r->n_paths) == 0)
        return 0;
    dataset_close(d);
    return file_no_memory(s->spot.error, files->path);
}

/* The number of features may be known before reading, from the kind of the run's data or from the
 * option features=. Otherwise it is the largest index in all files, which the first pass finds. */
int libsvm_parse(struct dataset *d, const struct reader *r, const struct lines_file *files,
                 char error[DATA_ERROR_MAX])
{
    memset(d, 0, sizeof *d);
    struct kind_rows kind;
    int err = lines_kind(r, "libsvm", files->path, &kind, error);
    if (err < 0)
        return err;
    uint32_t given = kind.fixed ? kind.features : r->features;
    struct pass s = {.kind = &kind,
                     .kind_text = r->kind,
                     .most = given ? given : DATA_FEATURES_MAX,
                     .rows = r->rows,
                     .spot = {.path = files->path, .error = error}};
    size_t *n_rows = calloc(r->n_paths, sizeof *n_rows);
    s.labels = labels_open(&kind, NULL, false);
    char text[DATA_KIND_MAX];
    if (s.labels != NULL && r->more_labels)
        labels_more(s.labels);
    err = n_rows != NULL && s.labels != NULL ? read_files(&s, files, r->n_paths, n_rows)
                                             : file_no_memory(error, files->path);
    if (err == 0)
        err = kind_from_rows(&s, r, &kind, text);
    if (err == 0)
        err = fill_entries(&s, d, text, files, r, n_rows);
    labels_close(s.labels);
    free(n_rows);
    return err;
}

/* The files stay in memory until the set is filled, because both passes read them. */
int libsvm_read(struct dataset *d, const struct reader *r, char error[DATA_ERROR_MAX])
{
    memset(d, 0, sizeof *d);
    struct lines_file *files;
    int err = lines_load(r, &files, error);
    if (err < 0)
        return err;
    const char *encoding;
    err = lines_normalise(files, r->n_paths, true, &encoding, error);
    if (err == 0)
        err = libsvm_parse(d, r, files, error);
    if (err == 0)
        d->encoding = encoding;
    lines_free(files, r->n_paths);
    return err;
}

/* Returns whether the first lines are rows of numbers and at least one row has an entry
 * (index:value). Any number is accepted as a label, and indices in any order: the reader gives
 * better error messages about wrong labels and indices. */
static bool looks(const uint8_t *bytes, size_t n, bool whole)
{
    const struct kind_rows kind = {.divide = 1};
    char error[DATA_ERROR_MAX];
    struct pass s = {.kind = &kind,
                     .kind_text = "",
                     .most = DATA_FEATURES_MAX,
                     .spot = {.path = "", .error = error}};
    struct piece rest = behind_mark(bytes, n), line;
    for (int i = 0; i < LOOK_LINES && next_line(&rest, &line); i++) {
        /* The bytes are only the beginning of a file, so the last line may be cut off. Only its
         * part up to the last space is used. */
        if (rest.p == rest.end && !whole) {
            while (line.end > line.p && !is_space(line.end[-1]))
                line.end--;
        }
        if (read_line(&s, line) < 0)
            return false;
    }
    return s.n_entries > 0;
}

bool libsvm_looks(const uint8_t *bytes, size_t n, bool whole)
{
    uint8_t *copy;
    bytes = lines_look(bytes, &n, &copy);
    bool is = looks(bytes, n, whole);
    free(copy);
    return is;
}
