/* nn/data/text.c -- reads plain text: the bytes of all files, one file after the other.
 *
 *   t h e _ q u i c k _ b r o w n     context 4
 *   |sample0|                         predicts  h e _ q
 *           |sample1|                 predicts  u i c k
 *                   |sample2|         predicts  _ b r o
 *
 * Bytes at the end that are too few for a sample are not used.
 */
#include "nn/data/lines.h"
#include "nn/math/number.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* text_looks() accepts a file if at most one byte in ODD_SHARE is not usual in a text. */
    ODD_SHARE = 10
};

/* Returns the context, the length of a sample in bytes: from the kind ("text/128"), or from
 * r->context if the kind does not have it. */
static uint32_t context_of(const struct reader *r)
{
    uint32_t context = r->context;
    if (strcmp(r->kind, "text") != 0) {
        assert(strncmp(r->kind, "text/", 5) == 0);
        context = 0;
        number_plain(r->kind + 5, DATA_CONTEXT_MAX, &context);
    }
    assert(context >= 1 && context <= DATA_CONTEXT_MAX);
    return context;
}

/* Copies the first n bytes of the files, joined one after the other, to `text`. */
static void join(uint8_t *text, size_t n, const struct lines_file *files)
{
    for (size_t at = 0; at < n; files++) {
        size_t take = files->n < n - at ? files->n : n - at;
        if (take > 0)
            memcpy(text + at, files->bytes, take);
        at += take;
    }
}

/* Stores for each sample the file in which it begins. */
static int mark_files(struct dataset *d, uint32_t context, const struct lines_file *files,
                      size_t n_files)
{
    size_t *samples = calloc(n_files, sizeof *samples), end = 0, done = 0;
    if (samples == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < n_files; i++) {
        end += files[i].n;
        size_t begin_before = end / context + (end % context != 0);
        begin_before = begin_before < d->n ? begin_before : d->n;
        samples[i] = begin_before - done;
        done = begin_before;
    }
    int err = lines_mark_files(d, samples, n_files);
    free(samples);
    return err;
}

int text_parse(struct dataset *d, const struct reader *r, const struct lines_file *files,
               char error[DATA_ERROR_MAX])
{
    memset(d, 0, sizeof *d);
    uint32_t context = context_of(r);
    size_t n_bytes = 0;
    for (size_t i = 0; i < r->n_paths; i++)
        n_bytes += files[i].n;
    if (n_bytes < (size_t)context + 1)
        return file_error(
            error, files->path,
            "found %zu bytes%s, expected at least %u: one sample and the byte after it", n_bytes,
            r->n_paths > 1 ? " in all files" : "", context + 1);
    size_t n = (n_bytes - 1) / context;
    if (n >= UINT32_MAX)
        return file_error(error, files->path, "found %zu samples, expected at most %u", n,
                          UINT32_MAX - 1);
    char kind[DATA_KIND_MAX];
    snprintf(kind, sizeof kind, "text/%u", context);
    if (dataset_init(d, kind, n, 0) < 0)
        return file_no_memory(error, files->path);
    join(d->text, n * context + 1, files);
    if (mark_files(d, context, files, r->n_paths) == 0)
        return 0;
    dataset_close(d);
    return file_no_memory(error, files->path);
}

int text_read(struct dataset *d, const struct reader *r, char error[DATA_ERROR_MAX])
{
    memset(d, 0, sizeof *d);
    struct lines_file *files;
    int err = lines_load(r, &files, error);
    if (err < 0)
        return err;
    err = text_parse(d, r, files, error);
    lines_free(files, r->n_paths);
    return err;
}

/* Returns the length of the UTF-8 sequence of two to four bytes at p, or 0 if the bytes are not
 * UTF-8. A sequence that the end of the bytes cuts off counts as complete. */
static size_t utf8(const uint8_t *p, const uint8_t *end)
{
    size_t n = (*p & 0xe0) == 0xc0 ? 2 : (*p & 0xf0) == 0xe0 ? 3 : (*p & 0xf8) == 0xf0 ? 4 : 0;
    size_t i = 1;
    while (i < n && p + i < end && (p[i] & 0xc0) == 0x80)
        i++;
    return i == n || (n > 0 && p + i == end) ? i : 0;
}

/* Accepts a file as text if few of its bytes are unusual: control characters, or bytes above ASCII
 * that are not UTF-8. Old texts contain some of them. */
bool text_looks(const uint8_t *bytes, size_t n, bool whole)
{
    (void)whole;
    const uint8_t *p = bytes, *end = bytes + n;
    size_t odd = 0;
    while (p < end) {
        size_t len = *p < 0x80 ? 1 : utf8(p, end);
        bool blank = *p >= '\t' && *p <= '\r';
        if (*p == '\0')
            return false;
        odd += len == 0 || (*p < 0x20 && !blank) || *p == 0x7f;
        p += len ? len : 1;
    }
    return n > 0 && odd <= n / ODD_SHARE;
}
