/* peer/node/run_context.c -- decides which run to adopt, and builds its trainer, model and
 * mixer. */
#include "peer/node/run_context.h"

#include "gossip/exchange/piece.h"
#include "nn/math/vec.h"
#include "peer/run/exit.h"
#include "peer/run/layout_keys.h"
#include "peer/run/outer.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum sessions_run run_context_judge(const struct run_context *w, const struct wire_hello *h,
                                    bool dialled, bool started, bool others, struct run *run)
{
    const struct node_config *c = &w->env->config;
    char error[RUN_ERROR_MAX];
    if (w->has_run && h->run.n == w->n_run_text && memcmp(h->run.p, w->run_text, h->run.n) == 0)
        return SESSIONS_RUN_SAME;
    if (run_from_text(run, c->flags.trainer, (const char *)h->run.p, h->run.n, error) != 0)
        return SESSIONS_RUN_UNREADABLE;
    int order = w->has_run ? layout_compare_initial(run, &w->run) : 0;
    bool yields = order != 0 ? order < 0 : dialled;
    bool begun = started || others;
    bool join = !w->has_run || (!begun && (h->has_started || yields));
    bool stranger = h->has_started ? begun : started && order == 0;
    /* This peer keeps its run if the run has begun. It also keeps its run if neither run has begun,
     * and the other peer must give up its own. */
    if (!join)
        return stranger ? SESSIONS_RUN_STRANGER : SESSIONS_RUN_YIELDS;
    if (run_check_flags(run, &c->flags, error) != 0) {
        env_note(w->env, NOTE_ERROR, "%s", error);
        return SESSIONS_RUN_CONTRADICTS;
    }
    return SESSIONS_RUN_TAKEN;
}

/* Frees the mixer, and the vectors that the local steps of a job need. */
static void close_mixing(struct run_context *w)
{
    mixing_close(&w->mixing);
    outer_optimiser_close(&w->outer);
    free(w->before);
    w->before = NULL;
}

/* Builds the mixer. It has one codec per phase, and with --compress auto one per codec level,
 * because a neighbour's delta may use any of them. The seed of the codecs' random numbers is a
 * function of the run and the peer's name, so that a restarted peer draws the same numbers. */
static int open_mixing(struct run_context *w)
{
    const struct run *r = &w->run;
    const char *name = w->env->config.name;
    const struct mixer *own = w->env->config.mixer;
    struct mixing_config c = {.segments = w->trainer.segments,
                              .n_segments = w->trainer.n_segments,
                              .x = w->trainer.x,
                              .companion = {w->trainer.companion[0], w->trainer.companion[1]},
                              .conserved = w->trainer.conserved,
                              .spec = {[DELTA_FINAL] = r->final_compress, [DELTA_CATCHUP] = "fp16"},
                              .fixed_gamma = r->gamma_auto ? 0 : r->gamma,
                              .semidefinite = run_outer_limits_gamma(r),
                              .tolerate = r->tolerate,
                              .pull = r->pull,
                              .trigger = r->trigger,
                              .mixer = own != NULL ? own : mixer_all[r->mixer],
                              .error_feedback = r->error_feedback,
                              .by_layer = r->overlap == RUN_OVERLAP_LAYER,
                              .part_least = w->env->config.part_least,
                              .complete = strcmp(r->topology, "complete") == 0,
                              .run_seed = r->seed,
                              .draw_key =
                                  rng_key(r->seed, RNG_DRAW, rng_hash(name, strlen(name)), 0)};
    bool by_drift = strcmp(r->compress, RUN_AUTO) == 0;
    if (!by_drift)
        c.spec[DELTA_RUN] = r->compress;
    for (uint32_t i = 0; i < CODEC_LEVELS_RUNGS && by_drift; i++)
        c.spec[DELTA_RUNG + i] = codec_levels_spec[i];
    w->by_drift = by_drift;
    c.step = r->gamma_auto ? 1 : r->gamma;
    int err = mixing_init(&w->mixing, &c);
    if (err != 0)
        return err;
    codec_levels_init(&w->ladder, w->mixing.survey_pace);
    struct run_outer outer = run_outer_of(r);
    bool watches = by_drift || r->pull > 0 || r->trigger > 0 || r->local_steps == 0 || outer.lr > 0
                   || w->trainer.statistics != NULL;
    w->before = watches ? malloc(w->mixing.dim * sizeof *w->before) : NULL;
    if (outer.lr > 0)
        err = outer_optimiser_init(&w->outer, outer.lr, outer.momentum, w->mixing.dim);
    if (err != 0 || (watches && w->before == NULL)) {
        close_mixing(w);
        return -ENOMEM;
    }
    w->trainer.init(w->trainer.self, w->mixing.x0);
    w->lacks = !run_context_begins(w);
    packet_pool_init(&w->models, run_context_floats(w) * sizeof(float));
    layers_cut(&w->layers, w->trainer.segments, w->trainer.n_segments);
    size_t piece = piece_bytes_max(w->mixing.n_floats),
           sketches = w->layers.n_floats * sizeof(float);
    packet_pool_init(&w->pieces, piece > sketches ? piece : sketches);
    return 0;
}

void run_context_init(struct run_context *w, struct env *env)
{
    w->env = env;
}

void run_context_take(struct run_context *w, const struct run *run)
{
    const struct node_config *c = &w->env->config;
    char error[RUN_ERROR_MAX];
    assert(!w->ready && !w->lacks && w->before == NULL);
    w->run = *run;
    w->n_run_text = run_text(run, w->run_text);
    w->has_run = true;
    w->norm2 = -1;
    int err = c->make_trainer(c->make_trainer_self, &w->run, &w->trainer, error);
    if (err < 0) {
        env_note(w->env, NOTE_ERROR, "%s", error);
        env_end(w->env, cmd_exit_of(err));
        return;
    }
    if (open_mixing(w) != 0) {
        env_note(w->env, NOTE_ERROR, "out of memory for %zu parameters", w->trainer.n_params);
        env_end(w->env, 1);
        return;
    }
    w->ready = true;
}

void run_context_close(struct run_context *w)
{
    if (!w->ready)
        return;
    close_mixing(w);
    packet_pool_close(&w->models);
    packet_pool_close(&w->pieces);
    w->has_run = w->ready = w->lacks = false;
}

bool run_context_begins(struct run_context *w)
{
    const struct mixing *m = &w->mixing;
    if (w->trainer.begins != NULL && !w->trainer.begins(w->trainer.self, m->x0))
        return false;
    w->lacks = false;
    mixing_start(&w->mixing);
    return true;
}

/* ---- copies of the model for other peers ---- */

/* Returns the number of floats of the outer momentum u in a copy of the model. 0: the copy has no
 * u. */
static size_t outer_floats(const struct run_context *w)
{
    return w->run.tolerate == 0 ? w->outer.n : 0;
}

size_t run_context_floats(const struct run_context *w)
{
    return w->mixing.n_floats + outer_floats(w);
}

void run_context_copy_model(const struct run_context *w, struct packet *out)
{
    assert(w->ready && run_context_floats(w) * sizeof(float) <= out->cap);
    mixing_copy_model(&w->mixing, out);
    if (outer_floats(w) > 0)
        memcpy(out->bytes + out->len, w->outer.u, outer_floats(w) * sizeof *w->outer.u);
}

size_t run_context_model_pieces(const struct run_context *w)
{
    return piece_count(w->mixing.n_floats);
}

size_t run_context_pieces(const struct run_context *w)
{
    size_t n = outer_floats(w);
    return run_context_model_pieces(w) + (n > 0 ? piece_count(n) : 0);
}

size_t run_context_piece_at(const struct run_context *w, size_t p, size_t *n)
{
    size_t n_model = run_context_model_pieces(w);
    assert(p < run_context_pieces(w));
    return p < n_model ? piece_at(w->mixing.n_floats, p, n)
                       : w->mixing.n_floats + piece_at(outer_floats(w), p - n_model, n);
}

int run_context_take_model(struct run_context *w, const float *copy)
{
    struct mixing *m = &w->mixing;
    assert(w->ready && !w->lacks);
    int err = mixing_take_model(m, (const uint8_t *)copy);
    run_context_moved(w);
    if (err == 0 && outer_floats(w) > 0
        && !outer_optimiser_take(&w->outer, copy + m->n_floats, m->x, m->x0))
        env_note(w->env, NOTE_WARNING,
                 "the outer momentum of the other members is not plausible: this peer begins "
                 "with 0");
    else if (w->outer.u != NULL && (err != 0 || outer_floats(w) == 0))
        outer_optimiser_reset(&w->outer);
    return err;
}

/* ---- queries ---- */

/* Copies and checks the sketch of a delta. The sender chose its length, so the length is checked
 * before the copy. */
static bool copy_sketch(const struct run_context *w, const struct wire_delta *d,
                        struct sketch_message *out)
{
    *out = (struct sketch_message){
        .tag = d->sketch_generation, .u = d->mean_dist2, .q = d->mean_norm2, .n = d->sketch.n};
    if (d->sketch.n > SKETCH_BYTES_MAX)
        return false;
    if (d->sketch.n > 0)
        memcpy(out->bytes, d->sketch.p, d->sketch.n);
    return mixing_sketch_valid(&w->mixing, out);
}

bool run_context_valid(const struct run_context *w, const struct wire_delta *d,
                       struct sketch_message *sketch)
{
    return mixing_valid(&w->mixing, d->codec, d->payload.p, d->payload.n)
           && copy_sketch(w, d, sketch);
}

void run_context_codec(const struct run_context *w, const char *rung, bool settling,
                       char text[WIRE_CODEC_MAX + 1])
{
    const char *spec = !w->ready      ? ""
                       : settling     ? w->run.final_compress
                       : rung != NULL ? rung
                                      : w->run.compress;
    size_t n = strnlen(spec, WIRE_CODEC_MAX);
    memcpy(text, spec, n);
    text[n] = '\0';
}

uint64_t run_context_window(const struct run_context *w)
{
    return mixing_figures(&w->mixing)->own_window;
}

bool run_context_known(const struct run_context *w, uint64_t begun)
{
    return mixing_figures(&w->mixing)->own_begun > begun;
}

uint64_t run_context_begun(const struct run_context *w, bool anew)
{
    return mixing_begun(&w->mixing, anew);
}

double run_context_rounded(const struct run_context *w, double relative)
{
    return hypot(relative, mixing_figures(&w->mixing)->rounding);
}

double run_context_distance(const struct run_context *w, uint64_t settling)
{
    const struct sketch_figures *f = mixing_figures(&w->mixing);
    double shrunk = w->mixing.local2 / f->own_local2;
    if (!run_context_known(w, settling))
        return (double)INFINITY;
    /* The bound on the distance is not reduced for models that are rounded to 16 bits. Their
     * distance does not shrink as fast as the distance between the unrounded vectors x. */
    if (w->mixing.rounded != NULL || !mixing_undisturbed(&w->mixing) || !(shrunk < 0.25)
        || f->own_begun < settling + 2)
        return run_context_rounded(w, f->own_relative);
    return run_context_rounded(w, 2 * sqrt(shrunk) * f->own_relative);
}

bool run_context_refutes(const struct run_context *w, uint64_t settling, double bound,
                         uint64_t round)
{
    /* A measured distance refutes the bound only if it exceeds the bound by this factor. Measured
     * distances have errors of 10 to 20 %, so a smaller excess proves nothing. */
    const double factor = 2;
    return run_context_known(w, settling) && run_context_measured(w) > round
           && mixing_figures(&w->mixing)->own_relative > factor * bound;
}

uint64_t run_context_measured(const struct run_context *w)
{
    return mixing_figures(&w->mixing)->own_round;
}

void run_context_settle(struct run_context *w, bool apart)
{
    assert(w->ready && !w->lacks);
    if (w->settling2 == 0)
        w->settling2 = run_context_norm2(w);
    mixing_settle(&w->mixing, apart);
}

double run_context_norm2(struct run_context *w)
{
    if (w->norm2 < 0)
        w->norm2 = vec_norm2(w->mixing.x, w->mixing.dim);
    return w->norm2;
}

void run_context_moved(struct run_context *w)
{
    w->norm2 = -1;
}

bool run_context_vanished(struct run_context *w)
{
    const double least = 1e-3;
    return w->settling2 > 0 && run_context_norm2(w) <= least * least * w->settling2;
}
