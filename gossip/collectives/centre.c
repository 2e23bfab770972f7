/* gossip/collectives/centre.c -- the parameter server of --mixer ps: adds the updates that workers
 * push, and makes the answers to them. */
#include "gossip/collectives/centre.h"

#include "nn/math/rng.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static size_t dim_of(const struct centre *c)
{
    return c->config.mixing->dim;
}

static size_t floats_of(const struct centre *c)
{
    return c->config.mixing->n_floats;
}

/* ---- copies of the models that were sent to workers ---- */

static struct centre_copy *copy_of(const struct centre *c, const float *v)
{
    struct centre_copy *copy = malloc(sizeof *copy + dim_of(c) * sizeof *v);
    if (copy == NULL)
        return NULL;
    copy->refs = 0;
    memcpy(copy->v, v, dim_of(c) * sizeof *v);
    return copy;
}

static void drop_copy(struct centre_worker *w)
{
    if (w->copy != NULL && --w->copy->refs == 0)
        free(w->copy);
    w->copy = NULL;
}

/* Records `copy` as the model that the server sent last to the worker. NULL: there is no memory for
 * a copy, or that model is unknown. The worker's next answer is then the whole model. */
static void give_copy(struct centre_worker *w, struct centre_copy *copy)
{
    if (copy != NULL)
        copy->refs++;
    drop_copy(w);
    w->copy = copy;
    w->whole = copy == NULL;
}

static void drop_initial(struct centre *c)
{
    if (c->initial != NULL && --c->initial->refs == 0)
        free(c->initial);
    c->initial = NULL;
}

static void drop_push(struct centre_worker *w)
{
    free(w->push);
    w->push = NULL;
    w->n_push = 0;
}

static void forget(struct centre_worker *w)
{
    drop_copy(w);
    drop_push(w);
    *w = (struct centre_worker){.known = false};
}

/* ---- open ---- */

int centre_open(struct centre *c, const struct centre_config *config)
{
    size_t n = config->mixing->n_floats;
    *c = (struct centre){.config = *config};
    c->z = calloc(n, sizeof *c->z);
    c->values = calloc(config->mixing->statistics.n + 1, sizeof *c->values);
    c->sum = calloc(n, sizeof *c->sum);
    c->worker = calloc(CENTRE_WORKERS_MAX, sizeof *c->worker);
    if (c->z == NULL || c->values == NULL || c->sum == NULL || c->worker == NULL) {
        centre_close(c);
        return -ENOMEM;
    }
    centre_set(c, config->z, config->round);
    if (config->codec != NULL && config->round == 0)
        c->initial = copy_of(c, config->z);
    if (c->initial != NULL)
        c->initial->refs = 1;
    return 0;
}

void centre_close(struct centre *c)
{
    drop_initial(c);
    for (size_t i = 0; c->worker != NULL && i < CENTRE_WORKERS_MAX; i++)
        forget(&c->worker[i]);
    if (c->config.codec != NULL)
        compress_close(c->config.codec);
    free(c->worker);
    free(c->z);
    free(c->values);
    free(c->sum);
    *c = (struct centre){.n_counted = 0};
}

void centre_set(struct centre *c, const float *z, uint64_t round)
{
    drop_initial(c);
    memcpy(c->z, z, floats_of(c) * sizeof *z);
    c->round = round;
    for (size_t i = 0; i < CENTRE_WORKERS_MAX; i++) {
        drop_copy(&c->worker[i]);
        c->worker[i].whole = true;
    }
}

void centre_clear(struct centre *c)
{
    for (uint32_t i = 0; i < c->n_counted; i++)
        c->counted[i]->counts = false;
    c->n_counted = 0;
}

struct centre_worker *centre_find(struct centre *c, const uint8_t id[WIRE_ID_BYTES])
{
    for (size_t i = 0; i < CENTRE_WORKERS_MAX; i++)
        if (c->worker[i].known && memcmp(c->worker[i].id, id, WIRE_ID_BYTES) == 0)
            return &c->worker[i];
    return NULL;
}

/* Returns a free slot of the table of workers. If no slot is free, frees and returns the slot of a
 * worker that the server does not wait for (`counts` is false). NULL: the server waits for all
 * workers in the table. */
static struct centre_worker *make_room(struct centre *c)
{
    struct centre_worker *old = NULL;
    for (size_t i = 0; i < CENTRE_WORKERS_MAX; i++) {
        if (!c->worker[i].known)
            return &c->worker[i];
        if (!c->worker[i].counts)
            old = &c->worker[i];
    }
    if (old != NULL)
        forget(old);
    return old;
}

struct centre_worker *centre_count(struct centre *c, const uint8_t id[WIRE_ID_BYTES])
{
    struct centre_worker *w = centre_find(c, id);
    if (c->n_counted == CENTRE_COUNTED_MAX)
        return NULL;
    if (w == NULL) {
        w = make_room(c);
        if (w == NULL)
            return NULL;
        w->known = w->whole = true;
        memcpy(w->id, id, WIRE_ID_BYTES);
    }
    w->counts = true;
    c->counted[c->n_counted++] = w;
    return w;
}

/* ---- messages ---- */

bool centre_valid(const struct mixing *m, const uint8_t *bytes, size_t n)
{
    size_t head = statistics_check(&m->statistics, bytes, n);
    return head == statistics_bound(&m->statistics)
           && compress_validate(m->codec[DELTA_RUN], bytes + head, n - head);
}

void centre_apply(const struct mixing *m, const uint8_t *bytes, size_t n, float *model)
{
    size_t head = statistics_length(&m->statistics, bytes);
    compress_apply(m->codec[DELTA_RUN], bytes + head, n - head, model);
    statistics_get(&m->statistics, bytes, model + m->dim);
}

/* ---- messages from workers ---- */

/* `clock` is the number of rounds that the worker has done. A smaller number than before means that
 * the worker has been restarted, so its stored push is dropped. */
void centre_here(struct centre *c, struct centre_worker *w, uint64_t clock, uint64_t have)
{
    bool pushes = have < clock;
    if (clock < w->clock) {
        drop_push(w);
        w->clock = pushes ? clock - 1 : clock;
    } else if (!pushes) {
        w->clock = clock;
    } else if (w->clock < clock) {
        w->clock = clock - 1;
    }
    w->have = have;
    w->spoke = true;
    w->waits = false;
    give_copy(w, have == 0 ? c->initial : NULL);
}

void centre_ask(struct centre_worker *w, uint64_t clock)
{
    w->clock = clock;
    w->waits = true;
    give_copy(w, NULL);
    drop_push(w);
}

enum centre_verdict centre_push(struct centre *c, struct centre_worker *w, uint64_t clock,
                                const uint8_t *bytes, size_t n)
{
    if (w->waits || !centre_valid(c->config.mixing, bytes, n))
        return CENTRE_BAD;
    w->waits = true;
    bool late = clock <= w->clock || (c->config.sync && clock <= c->round);
    w->clock = clock > w->clock ? clock : w->clock;
    if (late)
        return CENTRE_TAKEN;
    drop_push(w);
    w->push = malloc(n);
    if (w->push == NULL)
        return CENTRE_NO_MEMORY;
    memcpy(w->push, bytes, n);
    w->n_push = n;
    return CENTRE_TAKEN;
}

/* ---- adding pushes ---- */

/* Adds the push of a worker to c->sum: a model update and the values of running statistics. */
static void add_push(struct centre *c, struct centre_worker *w)
{
    const struct mixing *m = c->config.mixing;
    size_t head = statistics_length(&m->statistics, w->push);
    compress_apply(m->codec[DELTA_RUN], w->push + head, w->n_push - head, c->sum);
    statistics_get(&m->statistics, w->push, c->values);
    vec_axpy(c->sum + m->dim, 1, c->values, m->statistics.n);
    drop_push(w);
    drop_initial(c);
    c->n_pushes++;
}

/* Adds the sum of n pushes, divided by m, to the server's model z. Running statistics are values
 * rather than changes, so each statistic of z moves by 1/m of its difference from each pushed
 * value. Decoded values are under 2^64 (compress/codec.h), so finite values stay finite. */
static void move(struct centre *c, uint32_t n, uint32_t m)
{
    const struct mixing *x = c->config.mixing;
    float *z = c->z;
    for (size_t k = 0; k < x->dim; k++)
        z[k] += c->sum[k] / (float)m;
    for (size_t k = x->dim; k < x->n_floats; k++)
        z[k] = n == m ? c->sum[k] / (float)n : z[k] + (c->sum[k] - (float)n * z[k]) / (float)m;
    memset(c->sum, 0, x->n_floats * sizeof *c->sum);
}

static bool all_are_at(const struct centre *c, uint64_t clock)
{
    for (uint32_t i = 0; i < c->n_counted; i++)
        if (!c->counted[i]->spoke || c->counted[i]->clock < clock)
            return false;
    return c->n_counted > 0;
}

/* In sync mode, adds the pushes of all complete rounds to the model. A round is complete when all
 * workers have reported that it is done, even if none of them has a push for it. */
static void add_rounds(struct centre *c)
{
    while (c->round < c->config.rounds && all_are_at(c, c->round + 1)) {
        uint32_t n = 0;
        c->round++;
        for (uint32_t i = 0; i < c->n_counted; i++)
            if (c->counted[i]->push != NULL && c->counted[i]->clock == c->round) {
                add_push(c, c->counted[i]);
                n++;
            }
        if (n > 0)
            move(c, n, n);
    }
}

void centre_add(struct centre *c)
{
    if (c->config.sync)
        add_rounds(c);
    for (uint32_t i = 0; i < c->n_counted && !c->config.sync; i++)
        if (c->counted[i]->push != NULL) {
            add_push(c, c->counted[i]);
            move(c, 1, c->n_counted);
        }
}

/* ---- answers ---- */

static uint64_t least_clock(const struct centre *c)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < c->n_counted; i++) {
        uint64_t clock = c->counted[i]->spoke ? c->counted[i]->clock : 0;
        least = clock < least ? clock : least;
    }
    return least;
}

static bool is_due(const struct centre *c, const struct centre_worker *w, uint64_t least)
{
    const struct centre_config *g = &c->config;
    if (!w->waits)
        return false;
    if (w->clock >= g->rounds && least < g->rounds)
        return false;
    if (g->sync)
        return c->round >= w->clock;
    return !g->bounded || least + g->staleness >= w->clock;
}

static bool is_whole(const struct centre *c, const struct centre_worker *w)
{
    return c->config.codec == NULL || w->whole || w->clock >= c->config.rounds;
}

/* In sync mode, returns the copy of the current model that other workers have, so that one more
 * worker can share it. NULL: no worker has the current model yet. */
static struct centre_copy *of_the_others(const struct centre *c)
{
    for (uint32_t i = 0; i < c->n_counted && c->config.sync; i++) {
        struct centre_worker *w = c->counted[i];
        if (w->copy != NULL && w->told == c->round)
            return w->copy;
    }
    return NULL;
}

static void tell_whole(struct centre *c, struct centre_answer *a)
{
    bool last = a->round >= c->config.rounds, copies = c->config.codec != NULL && !last;
    struct centre_copy *copy = copies ? of_the_others(c) : NULL;
    if (copies && copy == NULL)
        copy = copy_of(c, c->z);
    for (uint32_t i = 0; i < a->n && copies; i++)
        give_copy(a->to[i], copy);
    a->whole = true;
    a->model = copy != NULL ? copy->v : c->z;
    a->statistics = c->z + dim_of(c);
}

/* Encodes z - copy, the change of the server's model since the last answer to the workers a->to[],
 * and adds the decoded difference to `copy`. If further workers share `copy`, a->to[] first get a
 * duplicate of it. Returns false if memory is exhausted or the difference is not finite. */
static bool tell_difference(struct centre *c, struct centre_answer *a, uint8_t *coded)
{
    const struct mixing *m = c->config.mixing;
    struct centre_copy *copy = a->to[0]->copy;
    struct compress_stat stat;
    if (copy->refs > a->n) {
        copy = copy_of(c, copy->v);
        if (copy == NULL)
            return false;
        for (uint32_t i = 0; i < a->n; i++)
            give_copy(a->to[i], copy);
    }
    struct compress_input in = {.draw =
                                    rng_key(c->config.draw_key, RNG_DRAW, a->round, c->n_pushes),
                                .round = a->round,
                                .x = c->z,
                                .x_hat = copy->v};
    size_t head = statistics_put(&m->statistics, true, c->z + m->dim, coded), len;
    if (compress_encode(c->config.codec, &in, coded + head, &len, &stat) != 0)
        return false;
    compress_apply(c->config.codec, coded + head, len, copy->v);
    a->n_coded = head + len;
    return true;
}

size_t centre_bound(const struct centre *c)
{
    return c->config.codec == NULL
               ? 0
               : statistics_bound(&c->config.mixing->statistics) + compress_bound(c->config.codec);
}

/* Returns the worker to answer next, or NULL. Workers with a copy of an older model come first,
 * because their answer brings this copy up to date. Workers without a copy are answered later and
 * can then share it. */
static const struct centre_worker *first_due(const struct centre *c, uint64_t least)
{
    const struct centre_worker *whole = NULL;
    for (uint32_t i = 0; i < c->n_counted; i++) {
        const struct centre_worker *w = c->counted[i];
        if (!is_due(c, w, least))
            continue;
        if (!is_whole(c, w))
            return w;
        whole = whole != NULL ? whole : w;
    }
    return whole;
}

bool centre_answer(struct centre *c, struct centre_answer *a, uint8_t *coded)
{
    uint64_t least = least_clock(c);
    const struct centre_worker *first = first_due(c, least);
    *a = (struct centre_answer){.n = 0};
    if (first == NULL)
        return false;
    bool whole = is_whole(c, first);
    const struct centre_copy *copy = whole ? NULL : first->copy;
    a->round = c->config.sync ? c->round : first->clock;
    for (uint32_t i = 0; i < c->n_counted; i++) {
        struct centre_worker *w = c->counted[i];
        bool same = is_due(c, w, least) && is_whole(c, w) == whole && (whole || w->copy == copy)
                    && (c->config.sync || w->clock == a->round);
        if (same)
            a->to[a->n++] = w;
    }
    if (whole || !tell_difference(c, a, coded))
        tell_whole(c, a);
    for (uint32_t i = 0; i < a->n; i++) {
        a->to[i]->waits = false;
        a->to[i]->told = a->round;
        a->to[i]->clock = a->to[i]->clock > a->round ? a->to[i]->clock : a->round;
    }
    return true;
}

const struct centre_worker *centre_awaited(const struct centre *c)
{
    const struct centre_worker *w = NULL;
    for (uint32_t i = 0; i < c->n_counted; i++)
        if (w == NULL || !c->counted[i]->spoke || c->counted[i]->clock < w->clock) {
            w = c->counted[i];
            if (!w->spoke)
                return w;
        }
    return w != NULL && !w->waits ? w : NULL;
}
