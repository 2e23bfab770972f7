/* peer/cmd/eval_logits.c -- runs a model over a whole set and writes what it answers. */
#include "peer/cmd/eval_logits.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BATCH = 32 };

struct writer
{
    const struct model *m;
    const struct dataset *set;
    struct model_plan plan;
    float *arena;
    uint8_t *bytes; /* It has room for the logits of a batch as they lie in the file. */
    FILE *file;
};

static void put_floats(uint8_t *bytes, const float *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, &v[i], sizeof u);
        for (int k = 0; k < 4; k++)
            bytes[4 * i + (size_t)k] = (uint8_t)(u >> 8 * k);
    }
}

/* Logits of samples at .. at + n. */
static int write_batch(struct writer *w, const float *x, size_t at, uint32_t n)
{
    struct model_pass pass = {.n = n, .x = x, .plan = &w->plan, .arena = w->arena};
    if (w->m->sparse)
        pass.rows = (struct sparse_rows){w->set->start + at, w->set->column, w->set->entry};
    else
        for (uint32_t i = 0; i < n; i++)
            dataset_sample(w->set, at + i, model_input(w->m, &pass, i));
    size_t count = (size_t)n * w->m->n_rows * w->m->n_classes;
    put_floats(w->bytes, model_forward(w->m, &pass), count);
    errno = 0;
    if (fwrite(w->bytes, 4, count, w->file) == count)
        return 0;
    return errno ? -errno : -EIO;
}

static int write_all(struct writer *w, const char *path, const float *x)
{
    size_t logits = (size_t)BATCH * w->m->n_rows * w->m->n_classes;
    w->arena = aligned_alloc(64, (w->plan.n_floats * sizeof(float) + 63) / 64 * 64);
    w->bytes = malloc(4 * logits);
    if (w->arena == NULL || w->bytes == NULL)
        return -ENOMEM;
    w->file = fopen(path, "wb");
    if (w->file == NULL)
        return -errno;
    int err = 0;
    for (size_t at = 0; at < w->set->n && err == 0; at += BATCH) {
        size_t left = w->set->n - at;
        err = write_batch(w, x, at, left < BATCH ? (uint32_t)left : BATCH);
    }
    struct stat st;
    bool regular = fstat(fileno(w->file), &st) == 0 && S_ISREG(st.st_mode);
    if (fclose(w->file) != 0 && err == 0)
        err = -errno;
    if (err < 0 && regular)
        unlink(path); /* A part of the answers is none. */
    return err;
}

int cmd_eval_logits(const char *path, const struct model *m, const float *x,
                    const struct dataset *set)
{
    struct writer w = {.m = m, .set = set};
    int err = model_plan_init(&w.plan, m, BATCH, false);
    if (err < 0)
        return err;
    err = write_all(&w, path, x);
    free(w.arena);
    free(w.bytes);
    model_plan_close(&w.plan);
    return err;
}
