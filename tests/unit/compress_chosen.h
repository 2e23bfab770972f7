/* tests/unit/compress_chosen.h -- tests one selector, the stage of a codec that chooses which
 * elements are sent. All buffers have exactly the promised size. */
#ifndef TESTS_UNIT_COMPRESS_CHOSEN_H
#define TESTS_UNIT_COMPRESS_CHOSEN_H

#include "compress/codec.h"
#include "compress/compress.h"
#include "compress/spec.h"

#include "tests/unit/compress_vectors.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

struct chosen
{
    struct spec spec;
    const struct codec_selector *f;
    const int64_t *arg;
    struct codec_pick pick;
    size_t most; /* Largest number of elements that may be selected. */
};

static inline void chosen_open(struct chosen *c, const char *spec, size_t n)
{
    char error[COMPRESS_ERROR_MAX];
    if (spec_parse(&c->spec, spec, error) != 0)
        fail_msg("%s: %s", spec, error);
    c->f = c->spec.rule[0].selector.codec->selector;
    c->arg = c->spec.rule[0].selector.arg;
    c->most = c->f->most(c->arg, n);
    assert_true(c->most >= 1 && c->most <= n);
    size_t scratch = c->f->scratch != NULL ? c->f->scratch(c->arg, n) : 0;
    size_t room = (c->most + CODEC_CHUNK) * 4;
    c->pick = (struct codec_pick){.index = malloc(room),
                                  .value = malloc(room),
                                  .truth = malloc(room),
                                  .scratch = aligned_alloc(64, scratch / 64 * 64 + 64)};
    assert_true(c->pick.index && c->pick.value && c->pick.truth && c->pick.scratch);
}

static inline void chosen_close(struct chosen *c)
{
    free(c->pick.index);
    free(c->pick.value);
    free(c->pick.truth);
    free(c->pick.scratch);
}

/* Selects elements of v[0..n). */
static inline int chosen_select(struct chosen *c, const float *v, size_t n, uint64_t key,
                                uint64_t round)
{
    struct codec_source s = {.x = v, .n = n, .key = key, .round = round};
    c->pick.scaled = false;
    int err = c->f->select(c->arg, &s, &c->pick);
    return err == 0 && c->f->measure != NULL ? c->f->measure(&s, &c->pick) : err;
}

/* Checks a selection: each value is the element of v at its index, indices increase, and rest2 is
 * the sum of the squares of the other elements. */
static inline void chosen_check(const struct chosen *c, const float *v, size_t n, const char *what)
{
    const struct codec_pick *p = &c->pick;
    double all2 = 0.0, taken2 = 0.0;
    const float *truth = p->scaled ? p->truth : p->value;
    if (p->k > c->most)
        fail_msg("%s: took %zu of %zu, may %zu", what, p->k, n, c->most);
    for (size_t i = 0; i < p->k; i++) {
        if (p->index[i] >= n || (i > 0 && p->index[i] <= p->index[i - 1])
            || truth[i] != v[p->index[i]])
            fail_msg("%s: n=%zu: bad %zu-th of %zu", what, n, i, p->k);
        taken2 += (double)truth[i] * (double)truth[i];
    }
    all2 = vec_norm2(v, n);
    if (!(fabs(p->rest2 + taken2 - all2) <= 1e-9 * all2))
        fail_msg("%s: n=%zu: rest2 %g, taken %g, all %g", what, n, p->rest2, taken2, all2);
}

#endif
