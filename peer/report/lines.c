/* peer/report/lines.c -- reads a metrics.jsonl line by line: a bounded buffer, one object at a time. */
#include "peer/report/lines.h"

#include "peer/report/json.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct
{
    const char *name, *train; /* NULL: `train` has none of that. */
    enum report_kind kind;
} columns[REPORT_COLUMNS] = {
    [REPORT_ROUND] = {"round", "round", REPORT_WHOLE},
    [REPORT_ROUNDS] = {"rounds", NULL, REPORT_WHOLE},
    [REPORT_SETTLE_ROUNDS] = {"settle_rounds", NULL, REPORT_WHOLE},
    [REPORT_TIME_S] = {"time_s", "seconds", REPORT_SIZE},
    [REPORT_LOSS] = {"loss", "loss", REPORT_REAL},
    [REPORT_ACCURACY] = {"accuracy", "test_accuracy", REPORT_SIZE},
    [REPORT_TEST_LOSS] = {"test_loss", "test_loss", REPORT_REAL},
    [REPORT_DRIFT] = {"drift", NULL, REPORT_SIZE},
    [REPORT_RELATIVE_DRIFT] = {"relative_drift", NULL, REPORT_SIZE},
    [REPORT_DRIFT_ROUND] = {"drift_round", NULL, REPORT_WHOLE},
    [REPORT_DRIFT_AGE] = {"drift_age", NULL, REPORT_WHOLE},
    [REPORT_OWN_DISTANCE] = {"own_distance", NULL, REPORT_SIZE},
    [REPORT_STATISTICS_DISAGREEMENT] = {"statistics_disagreement", NULL, REPORT_SIZE},
    [REPORT_GAMMA] = {"gamma", NULL, REPORT_REAL},
    [REPORT_DRIFT_EXCESS] = {"drift_excess", NULL, REPORT_REAL},
    [REPORT_DRIFT_TARGET] = {"drift_target", NULL, REPORT_REAL},
    [REPORT_GOODPUT] = {"goodput", NULL, REPORT_SIZE},
    [REPORT_BYTES_SENT] = {"bytes_sent", NULL, REPORT_WHOLE},
    [REPORT_BYTES_RECEIVED] = {"bytes_received", NULL, REPORT_WHOLE},
    [REPORT_BYTES_AHEAD] = {"bytes_ahead", NULL, REPORT_WHOLE},
    [REPORT_COMPUTE_S] = {"compute_s", NULL, REPORT_SIZE},
    [REPORT_WAIT_S] = {"wait_s", NULL, REPORT_SIZE},
    [REPORT_MIX_S] = {"mix_s", NULL, REPORT_SIZE},
    [REPORT_LIVE] = {"live", NULL, REPORT_WHOLE},
    [REPORT_EDGES] = {"edges", NULL, REPORT_WHOLE},
    [REPORT_LOCAL_STEPS] = {"local_steps", NULL, REPORT_WHOLE},
    [REPORT_STEPS_DONE] = {"steps_done", NULL, REPORT_WHOLE},
    [REPORT_ROUNDS_DONE] = {"rounds_done", NULL, REPORT_WHOLE},
    [REPORT_ROUNDS_SKIPPED] = {"rounds_skipped", NULL, REPORT_WHOLE},
    [REPORT_JOINED_ROUND] = {"joined_round", NULL, REPORT_WHOLE},
};

static const char *const words[REPORT_WORDS] = {
    [REPORT_PHASE] = "phase", [REPORT_RUNG] = "rung", [REPORT_RUNG_BY] = "rung_by"};

const char *report_column_name(enum report_column column)
{
    return columns[column].name;
}

const char *report_word_name(enum report_word word)
{
    return words[word];
}

/* ---- Room. ---- */

/* One more of `size` bytes behind the n that are there; NULL without memory. */
static void *more(void *array, size_t size, size_t n, size_t *cap)
{
    if (n < *cap)
        return array;
    size_t next = *cap > 0 ? 2 * *cap : 64;
    void *grown = realloc(array, next * size);
    if (grown != NULL)
        *cap = next;
    return grown;
}

static struct report_row *add_row(struct report_lines *l)
{
    void *row = more(l->row, sizeof *l->row, l->n, &l->cap);
    if (row == NULL)
        return NULL;
    l->row = row;
    return &l->row[l->n++];
}

void report_lines_close(struct report_lines *l)
{
    free(l->row);
    free(l->start);
    free(l->words);
    *l = (struct report_lines){0};
}

/* ---- Rows. ---- */

double report_lines_step(const struct report_row *row)
{
    double settle = row->at[REPORT_SETTLE_ROUNDS];
    return row->at[REPORT_ROUND] + (isfinite(settle) ? settle : 0.0);
}

double report_lines_time_s(const struct report_lines *l, const struct report_row *row)
{
    return l->start[row->start].time_s + row->at[REPORT_TIME_S];
}

double report_lines_sent(const struct report_lines *l, const struct report_row *row)
{
    return l->start[row->start].bytes_sent + row->at[REPORT_BYTES_SENT];
}

double report_lines_received(const struct report_lines *l, const struct report_row *row)
{
    return l->start[row->start].bytes_received + row->at[REPORT_BYTES_RECEIVED];
}

const struct report_start *report_lines_begun(const struct report_lines *l,
                                              const struct report_row *row)
{
    uint32_t i = row->start;
    while (i > 0 && !l->start[i].anew)
        i--;
    return &l->start[i];
}

const char *report_lines_word(const struct report_lines *l, const struct report_row *row,
                              enum report_word word)
{
    return row->word[word] > 0 ? l->words[row->word[word] - 1] : "";
}

/* Rounds behind `from` were done once more, or will be. */
static void drop_behind(struct report_lines *l, double from)
{
    while (l->n > 0 && report_lines_step(&l->row[l->n - 1]) > from)
        l->n--;
}

/* ---- A reading under way. ---- */

struct reading
{
    struct report_lines *lines;
    const char *path;
    uint64_t number;          /* The line's, from 1. */
    struct report_start next; /* What all lines up to here took. */
    char *error;
};

static int refuse(const struct reading *r, const char *why)
{
    return file_error(r->error, r->path, "line %llu: %s", (unsigned long long)r->number, why);
}

static int no_memory(const struct reading *r)
{
    return file_no_memory(r->error, r->path);
}

static int add_start(struct reading *r, int64_t at_s, bool anew)
{
    struct report_lines *l = r->lines;
    if (l->n_starts >= REPORT_STARTS_MAX)
        return refuse(r, "too many starts, expected 100000 at most");
    void *start = more(l->start, sizeof *l->start, l->n_starts, &l->starts_cap);
    if (start == NULL)
        return no_memory(r);
    l->start = start;
    l->start[l->n_starts] = r->next;
    l->start[l->n_starts].anew = anew;
    l->start[l->n_starts++].at_s = at_s;
    return 0;
}

/* Days since 1970 of a date of the Gregorian calendar (Hinnant, "chrono-compatible low-level date
 * algorithms"): years begin in March, so that leap days are their last. */
static int64_t days(int64_t y, int64_t m, int64_t d)
{
    y -= m <= 2;
    int64_t era = y / 400, of_era = y - era * 400;
    int64_t of_year = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

/* The time of "2026-11-22T13:33:02Z"; -1 for what is none from 1970 on. */
static int64_t read_at(const char *text)
{
    int y, mo, d, h, mi, s, end = 0;
    if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2dZ%n", &y, &mo, &d, &h, &mi, &s, &end) != 6 || end != 20
        || text[end] != '\0')
        return -1;
    if (y < 1970 || mo < 1 || mo > 12 || d < 1 || d > 31 || h < 0 || h > 23 || mi < 0 || mi > 59
        || s < 0 || s > 60)
        return -1;
    return ((days(y, mo, d) * 24 + h) * 60 + mi) * 60 + s;
}

static int take_start(struct reading *r, const json_t *object)
{
    char at[REPORT_WORD_MAX], why[REPORT_JSON_WHY];
    double from;
    if (report_json_text(object, "at", at, sizeof at, why) < 0
        || report_json_number(object, "from_round", REPORT_WHOLE, &from, why) < 0)
        return refuse(r, why);
    int64_t at_s = at[0] != '\0' ? read_at(at) : -1;
    if (at[0] != '\0' && at_s < 0)
        return refuse(r, "at: expected a time, as 2026-11-22T13:33:02Z, or null");
    drop_behind(r->lines, isfinite(from) ? from : 0.0);
    return add_start(r, at_s, !(from > 0));
}

/* Which of the file's words is this? -1: there are too many. */
static int find_word(struct report_lines *l, const char *text)
{
    if (text[0] == '\0')
        return 0;
    for (size_t i = 0; i < l->n_words; i++)
        if (strcmp(l->words[i], text) == 0)
            return (int)i + 1;
    if (l->words == NULL)
        l->words = calloc(REPORT_DIFFERENT_MAX, sizeof *l->words);
    if (l->words == NULL || l->n_words >= REPORT_DIFFERENT_MAX)
        return -1;
    memcpy(l->words[l->n_words], text, strlen(text) + 1);
    return (int)++l->n_words;
}

static int take_words(struct reading *r, const json_t *object, struct report_row *row)
{
    char text[REPORT_WORD_MAX], why[REPORT_JSON_WHY];
    for (int i = 0; i < REPORT_WORDS; i++) {
        if (report_json_text(object, words[i], text, sizeof text, why) < 0)
            return refuse(r, why);
        int which = find_word(r->lines, text);
        if (which < 0) {
            snprintf(why, sizeof why, "%s: more than %d different texts in the file", words[i],
                     REPORT_DIFFERENT_MAX);
            return refuse(r, why);
        }
        row->word[i] = (uint8_t)which;
    }
    return 0;
}

/* What the rows so far took: those that are dropped took it, too. */
static void count(struct reading *r, const struct report_row *row)
{
    const struct report_start *s = &r->lines->start[row->start];
    r->next.time_s = s->time_s + fmax(0.0, row->at[REPORT_TIME_S]);
    r->next.bytes_sent = s->bytes_sent + fmax(0.0, row->at[REPORT_BYTES_SENT]);
    r->next.bytes_received = s->bytes_received + fmax(0.0, row->at[REPORT_BYTES_RECEIVED]);
}

/* A line of a peer has a phase, one of `train` has none. A round that comes again takes the place
 * of what was there from it on. */
static int take_row(struct reading *r, const json_t *object)
{
    struct report_row row = {0};
    char why[REPORT_JSON_WHY];
    bool train = json_object_get(object, "phase") == NULL;
    for (int i = 0; i < REPORT_COLUMNS; i++) {
        const char *name = train ? columns[i].train : columns[i].name;
        row.at[i] = (double)NAN;
        if (name != NULL && report_json_number(object, name, columns[i].kind, &row.at[i], why) < 0)
            return refuse(r, why);
    }
    if (!isfinite(row.at[REPORT_ROUND]))
        return refuse(r, "round: found none, expected a whole number");
    int err = take_words(r, object, &row);
    if (err == 0 && r->lines->n_starts == 0)
        err = add_start(r, -1, true);
    if (err < 0)
        return err;
    row.start = (uint32_t)(r->lines->n_starts - 1);
    drop_behind(r->lines, report_lines_step(&row));
    struct report_row *kept = add_row(r->lines);
    if (kept == NULL)
        return no_memory(r);
    *kept = row;
    count(r, &row);
    return 0;
}

static int take_line(struct reading *r, const char *bytes, size_t n)
{
    char why[REPORT_JSON_WHY];
    json_t *object = report_json_object(bytes, n, why);
    if (object == NULL)
        return refuse(r, why);
    bool start = json_is_true(json_object_get(object, "start"));
    int err = start ? take_start(r, object) : take_row(r, object);
    json_decref(object);
    return err;
}

/* All whole lines of the n bytes; *used of them are done. */
static int take_lines(struct reading *r, const char *bytes, size_t n, size_t *left, size_t *used)
{
    const char *end;
    *used = 0;
    while ((end = memchr(bytes + *used, '\n', n - *used)) != NULL) {
        r->number++;
        if (*left == 0)
            return refuse(r, "too many lines, expected 4000000 at most in all files");
        --*left;
        int err = take_line(r, bytes + *used, (size_t)(end - bytes) - *used);
        if (err < 0)
            return err;
        *used = (size_t)(end - bytes) + 1;
    }
    return 0;
}

static int read_all(struct reading *r, struct file *f, char *buffer, size_t *left)
{
    size_t n = 0, got, used = 0;
    do {
        int err = file_get(f, buffer + n, REPORT_LINE_MAX - n, &got, r->error);
        if (err == 0)
            err = take_lines(r, buffer, n + got, left, &used);
        if (err < 0)
            return err;
        n += got - used;
        memmove(buffer, buffer + used, n);
        if (n >= REPORT_LINE_MAX) {
            r->number++;
            return refuse(r, "too long, expected 65535 bytes at most");
        }
    } while (got > 0);
    return 0;
}

int report_lines_read(struct report_lines *lines, const char *path, size_t *left,
                      char error[FILE_ERROR_MAX])
{
    struct reading r = {.lines = lines, .path = path, .error = error};
    struct file *f;
    int err = file_open_plain(&f, path, error);
    if (err < 0)
        return err;
    char *buffer = malloc(REPORT_LINE_MAX);
    err = buffer != NULL ? read_all(&r, f, buffer, left) : no_memory(&r);
    free(buffer);
    file_close(f);
    if (err < 0)
        report_lines_close(lines);
    return err;
}
