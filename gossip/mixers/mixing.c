/* gossip/mixers/mixing.c -- opens and closes struct mixing, copies models, and returns properties
 * of the exchange state. */
#include "gossip/mixers/mixing.h"

#include "gossip/mixers/companion.h"
#include "nn/math/half.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Sketches may add at most this share to the bytes of deltas. Running statistics may add the same
 * share again. */
static const double beside_share = 0.05;

/* Returns k: the caller attaches sketches or statistics to deltas 0, k, 2k, ... Delta 0 has an
 * attachment, so even a short run gets one measurement. */
uint64_t mixing_every(size_t n_bytes, size_t message)
{
    double k = (double)n_bytes / (beside_share * (double)message);
    return k > 1 ? (uint64_t)ceil(k) : 1;
}

/* ---- open and close ---- */

/* Opens the codecs for the trained segments and sets m->cap. A packet must have room for the
 * running statistics and the longest message of any codec. */
static int open_codecs(struct mixing *m, const struct mixing_config *config)
{
    size_t n_trained = 0;
    m->by_layer = config->by_layer;
    m->part_least = config->part_least;
    while (n_trained < config->n_segments && config->segments[n_trained].trained)
        n_trained++;
    for (int i = 0; i < DELTA_CODECS; i++) {
        if (config->spec[i] == NULL)
            continue;
        bool layers = m->by_layer && i != DELTA_FINAL && i != DELTA_CATCHUP;
        int err = (layers ? compress_open_layers : compress_open)(&m->codec[i], config->spec[i],
                                                                  config->segments, n_trained);
        if (err != 0)
            return err;
        size_t bound = compress_bound(m->codec[i]);
        for (size_t v = 0; v < m->n_companions && i != DELTA_FINAL; v++) {
            err = compress_open(&m->companion_codec[v][i], config->spec[i], config->segments,
                                n_trained);
            if (err != 0)
                return err;
            bound += COMPANION_HEAD + compress_bound(m->companion_codec[v][i]);
        }
        m->cap = bound > m->cap ? bound : m->cap;
    }
    m->cap += statistics_bound(&m->statistics);
    return 0;
}

/* Sets how often training deltas carry sketches and statistics, from the usual size of a delta.
 * With `--compress auto` that is the size at a middle codec level. */
static void set_pace(struct mixing *m)
{
    uint32_t codec =
        m->codec[DELTA_RUN] != NULL ? DELTA_RUN : (uint32_t)DELTA_RUNG + CODEC_LEVELS_MIDDLE;
    m->sketch_every = m->statistics_every = m->survey_pace = 1;
    if (m->codec[codec] == NULL)
        return;
    size_t usual = mixing_nominal(m, codec);
    m->sketch_every = mixing_every(sketch_nominal(&m->sketch), usual);
    m->survey_pace = mixing_every(sketch_word_bytes(&m->sketch), usual);
    m->statistics_every = mixing_every(statistics_bound(&m->statistics), usual);
}

/* If this function fails, some parts of *m may be open already. mixing_close() accepts such a
 * struct. */
static int open_all(struct mixing *m, const struct mixing_config *config)
{
    *m = (struct mixing){.dim = segments_trained(config->segments, config->n_segments),
                         .mixer = config->mixer != NULL ? config->mixer : mixer_all[0],
                         .conserved = config->conserved,
                         .fixed_gamma = config->fixed_gamma,
                         .semidefinite = config->semidefinite,
                         .tolerate = config->tolerate,
                         .pull = config->pull,
                         .trigger = config->trigger,
                         .draw_key = config->draw_key};
    while (m->n_companions < MIXING_COMPANIONS && config->companion[m->n_companions] != NULL) {
        m->companion[m->n_companions] = config->companion[m->n_companions];
        m->n_companions++;
    }
    /* mixing_close() needs a mixer and a replica pool, so both are set before the first call
     * that can fail. */
    replica_pool_init(&m->replicas, (1 + m->n_companions) * m->dim);
    assert(m->n_companions == 0 || (m->mixer->companion && !config->by_layer));
    assert(m->n_companions == 1 || !m->conserved);
    int err = statistics_init(&m->statistics, config->segments, config->n_segments);
    if (err != 0)
        return err;
    m->n_floats = m->dim + m->statistics.n;
    m->borrowed = config->x != NULL;
    m->x = m->borrowed ? config->x : calloc(m->n_floats, sizeof *m->x);
    m->x0 = calloc(m->n_floats, sizeof *m->x0);
    if (m->x == NULL || m->x0 == NULL)
        return -ENOMEM;
    if (half_any(config->segments, config->n_segments)) {
        m->segments = config->segments;
        m->n_segments = config->n_segments;
        m->rounded = calloc(m->n_floats, sizeof *m->rounded);
        if (m->rounded == NULL)
            return -ENOMEM;
    }
    err = open_codecs(m, config);
    if (err != 0)
        return err;
    packet_pool_init(&m->packets, m->cap);
    err = m->mixer->open(m, config);
    if (err == 0)
        err = sketch_init(&m->sketch, config->run_seed, m->dim);
    if (err == 0)
        set_pace(m);
    return err;
}

int mixing_init(struct mixing *m, const struct mixing_config *config)
{
    int err = open_all(m, config);
    if (err != 0)
        mixing_close(m);
    return err;
}

void mixing_close(struct mixing *m)
{
    /* The caller has closed all edges: the packet pool asserts that no packet is in use. */
    m->mixer->close(m);
    for (int i = 0; i < DELTA_CODECS; i++) {
        compress_close(m->codec[i]);
        for (size_t v = 0; v < MIXING_COMPANIONS; v++)
            compress_close(m->companion_codec[v][i]);
    }
    sketch_close(&m->sketch);
    statistics_close(&m->statistics);
    packet_pool_close(&m->packets);
    replica_pool_close(&m->replicas);
    free(m->task);
    free(m->term);
    if (!m->borrowed)
        free(m->x);
    free(m->x0);
    free(m->rounded);
}

/* Allocates the replica b of the neighbour's model. The first job resets the edge and assigns
 * the replica `a` of the own model. */
int mixing_edge_open(struct mixing *m, struct edge *e, const uint8_t self[WIRE_ID_BYTES],
                     const uint8_t other[WIRE_ID_BYTES])
{
    int err = edge_init(e, self, other, m->cap);
    if (err != 0)
        return err;
    gamma_init(&e->gamma, m->fixed_gamma);
    sketch_pair_init(&e->sketch);
    e->b = malloc(m->replicas.dim * sizeof *e->b);
    e->flow = m->conserved ? calloc(m->dim, sizeof *e->flow) : NULL;
    if (e->b != NULL && (e->flow != NULL || !m->conserved))
        return 0;
    free(e->b);
    free(e->flow);
    e->b = e->flow = NULL;
    edge_close(e);
    return -ENOMEM;
}

void mixing_edge_close(struct mixing *m, struct edge *e)
{
    replica_release(&m->replicas, e->a);
    e->a = NULL;
    companion_take_back(m, e);
    free(e->b);
    free(e->velocity);
    free(e->flow);
    e->b = e->velocity = e->flow = NULL;
    edge_close(e);
}

/* ---- the model ---- */

size_t mixing_model_bytes(const struct mixing *m)
{
    return m->n_floats * sizeof *m->x;
}

void mixing_start(struct mixing *m)
{
    memcpy(m->x, m->x0, mixing_model_bytes(m));
}

int mixing_take_model(struct mixing *m, const uint8_t *bytes)
{
    /* The received model is copied before its values are checked, because `bytes` may not be
     * aligned for floats. */
    memcpy(m->x, bytes, mixing_model_bytes(m));
    m->fetched = true;
    sketch_passed_over(&m->sketch);
    if (vec_finite(m->x, m->n_floats) && statistics_proper(&m->statistics, m->x + m->dim))
        return 0;
    mixing_start(m);
    return -EINVAL;
}

const float *mixing_held_model(const struct mixing *m)
{
    if (m->rounded == NULL)
        return m->x;
    half_round_model(m->segments, m->n_segments, m->x, m->rounded);
    return m->rounded;
}

double mixing_held_dist2(const struct mixing *m, const float *a, const float *b)
{
    size_t n = 0;
    if (m->rounded == NULL)
        return vec_dist2(a, b, m->dim);
    while (n < m->n_segments && m->segments[n].trained)
        n++;
    return half_dist2(m->segments, n, a, b);
}

void mixing_copy_model(const struct mixing *m, struct packet *out)
{
    out->len = mixing_model_bytes(m);
    memcpy(out->bytes, mixing_held_model(m), out->len);
}

/* ---- messages ----
 *
 *   payload   [statistics: 0 or more bytes][message]
 *             edges and links carry the payload; the mixer and its codec see the message
 */

/* Called on the loop thread while a job may run. This is safe, because all data that are read here
 * are constant after mixing_init(). */
bool mixing_valid(const struct mixing *m, uint32_t codec, const uint8_t *payload, size_t n)
{
    size_t head = statistics_check(&m->statistics, payload, n);
    return head != SIZE_MAX && m->codec[codec] != NULL
           && m->mixer->valid(m, codec, payload + head, n - head);
}

bool mixing_sketch_valid(const struct mixing *m, const struct sketch_message *sketch)
{
    return sketch_valid(&m->sketch, sketch);
}

/* compress_validate() checks sizes, indices and values, so a valid message can be applied
 * without further checks. */
bool mixing_decodes(const struct mixing *m, uint32_t codec, const uint8_t *message, size_t n)
{
    size_t at = 0;
    if (!companion_valid(m, codec, message, n, &at))
        return false;
    assert(at <= n);
    return compress_validate(m->codec[codec], message + at, n - at);
}

void mixing_add(const struct mixing *m, uint32_t codec, const uint8_t *message, size_t n, float *v)
{
    size_t at = companion_add(m, codec, message, v);
    compress_apply(m->codec[codec], message + at, n - at, v);
}

size_t mixing_nominal(const struct mixing *m, uint32_t codec)
{
    size_t n = compress_nominal(m->codec[codec]);
    for (size_t v = 0; v < m->n_companions && m->companion_codec[v][codec] != NULL; v++)
        n += COMPANION_HEAD + compress_nominal(m->companion_codec[v][codec]);
    return n;
}

/* Returns the mixer's message in a valid payload, in which the message follows the running
 * statistics. */
static struct bytes message_of(const struct mixing *m, const uint8_t *payload, size_t n)
{
    size_t head = statistics_length(&m->statistics, payload);
    return (struct bytes){payload + head, n - head};
}

struct bytes mixing_own(const struct mixing *m, const struct mixing_task *t)
{
    return message_of(m, t->ours.payload->bytes, t->ours.payload->len);
}

struct bytes mixing_other(const struct mixing *m, const struct mixing_task *t)
{
    return message_of(m, t->theirs.bytes, t->theirs.n_bytes);
}

struct bytes mixing_made(const struct mixing *m, const struct mixing_task *t)
{
    return message_of(m, t->made->bytes, t->made->len);
}

/* ---- queries ----
 *
 * The caller queries struct mixing and never a specific mixer. If the mixer lacks an optional
 * function, the answer is the one that is right for CHOCO-SGD, whose replicas always follow the
 * model.
 */

const struct sketch_figures *mixing_figures(const struct mixing *m)
{
    return &m->sketch.figures;
}

bool mixing_undisturbed(const struct mixing *m)
{
    return !m->sketch.disturbed;
}

uint64_t mixing_begun(const struct mixing *m, bool anew)
{
    return sketch_begun(&m->sketch, anew);
}

bool mixing_window_began(const struct mixing *m)
{
    return m->sketch.began;
}

/* `e2` in the header of a delta is |x - a|^2 after the delta is applied to a; tasks that share a
 * delta have equal e2. */
double mixing_lag2(const struct mixing *m)
{
    double most = 0;
    for (size_t i = 0; i < m->n_tasks; i++)
        if (m->task[i].encode)
            most = fmax(most, (double)m->task[i].sent.head.e2);
    return most;
}

/* All edges have committed the same deltas if at most one replica is in use. Between jobs, only
 * edges use replicas. The loop thread owns the list of replicas, so no lock is needed. */
bool mixing_in_step(const struct mixing *m)
{
    return m->replicas.used == NULL || m->replicas.used->next == NULL;
}

void mixing_settle(struct mixing *m, bool apart)
{
    if (m->mixer->settle != NULL)
        m->mixer->settle(m, apart);
}

bool mixing_lags(const struct mixing *m, const struct edge *e, double most)
{
    return m->mixer->lags != NULL && m->mixer->lags(m, e, most);
}

const float *mixing_sent(const struct mixing *m)
{
    return m->mixer->sent != NULL ? m->mixer->sent(m) : NULL;
}
