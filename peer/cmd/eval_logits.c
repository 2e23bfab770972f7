/* peer/cmd/eval_logits.c -- runs a model over all samples of a data set and writes its logits to a
 * file. */
#include "peer/cmd/eval_logits.h"

#include "nn/files/replace.h"
#include "peer/cmd/logits.h"

#include <string.h>

enum { PIECE = 16 * 1024 /* Number of floats that are written at once. */ };

struct writer
{
    const struct model *m;
    struct replace file;
    uint8_t bytes[4 * PIECE]; /* Logits converted to the byte order of the file. */
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

/* Writes the logits of one batch to the file. This is the `take` callback of cmd_logits(). `self`:
 * the writer. */
static int write_batch(void *self, size_t at, uint32_t n, const float *logits)
{
    struct writer *w = self;
    size_t count = (size_t)n * w->m->n_rows * w->m->n_classes;
    (void)at;
    while (count > 0) {
        size_t some = count < PIECE ? count : PIECE;
        put_floats(w->bytes, logits, some);
        int err = replace_put(&w->file, w->bytes, 4 * some);
        if (err < 0)
            return err;
        logits += some;
        count -= some;
    }
    return 0;
}

int cmd_eval_logits(const char *path, const struct model *m, const float *x,
                    const struct dataset *set)
{
    static struct writer w;
    w.m = m;
    int err = replace_begin(&w.file, path);
    if (err < 0)
        return err;
    struct cmd_logits answers = {.m = m, .x = x, .set = set, .take = write_batch, .self = &w};
    return replace_end(&w.file, cmd_logits(&answers));
}
