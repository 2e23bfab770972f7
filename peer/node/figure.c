/* peer/node/figure.c -- the rows of the table of figures (the values that hearsay reports), and the
 * functions that read these values. */
#include "peer/node/figure.h"

#include "gossip/wire/wire.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- When a value is known ---- */

/* Without a run, the figures `round` and `rounds` are 0, and Prometheus shows no value for them. */
static bool in_run(const struct figure_values *v, enum figure_output output)
{
    return output != FIGURE_PROMETHEUS || v->has_run;
}

static bool with_run(const struct figure_values *v, enum figure_output output)
{
    (void)output;
    return v->has_run;
}

static bool with_disk(const struct figure_values *v, enum figure_output output)
{
    (void)output;
    return v->has_disk_free;
}

/* Returns whether an output gets the round and the age of the measured drift. These are known only
 * if there is a measurement. The Python output always gets them, because its integer fields have no
 * value for "not known". */
static bool with_drift(const struct figure_values *v, enum figure_output output)
{
    return output == FIGURE_PYTHON || isfinite(v->node.drift);
}

/* A line of metrics.jsonl shows an evaluation only if the evaluation belongs to the round of the
 * line. */
static bool in_evaluated_round(const struct figure_values *v, enum figure_output output)
{
    return output != FIGURE_METRICS || (v->node.evaluated && v->node.accuracy_samples > 0);
}

static bool with_accuracy(const struct figure_values *v, enum figure_output output)
{
    bool shown = output == FIGURE_PYTHON || output == FIGURE_METRICS || isfinite(v->node.accuracy);
    return shown && in_evaluated_round(v, output);
}

/* ---- The table ---- */

/* VALUE(field): the row shows this field of struct figure_values. */
#define VALUE(field)                                                                               \
    .kind = _Generic(((struct figure_values *)0)->field,                                           \
        uint64_t: FIGURE_U64,                                                                      \
        uint32_t: FIGURE_U32,                                                                      \
        bool: FIGURE_BOOL,                                                                         \
        double: FIGURE_REAL,                                                                       \
        const char *: FIGURE_TEXT,                                                                 \
        char *: FIGURE_CHARS),                                                                     \
    .offset = offsetof(struct figure_values, field)
/* AT(output, n): the row is at place n of this output. */
#define AT(output, n) .place[FIGURE_##output] = (n)

/* clang-format off */
const struct figure figure_all[] = {
    /* Fields of a line of metrics.jsonl. */
    {.name = "round", .unit = "rounds", VALUE(node.round), .known = in_run, .metric = "round",
     AT(METRICS, 1), AT(LOCAL, 6), AT(STATUS, 2), AT(PROMETHEUS, 1), AT(PYTHON, 1),
     .help = "Rounds of training that this peer has done or skipped, or that were over before it joined."},
    {.name = "rounds", .unit = "rounds", VALUE(node.n_rounds), .known = in_run, .metric = "run_rounds",
     AT(METRICS, 2), AT(STATUS, 3), AT(PROMETHEUS, 2), AT(PYTHON, 2),
     .help = "Total number of training rounds of the run."},
    {.name = "phase", .kind = FIGURE_PHASE,
     AT(METRICS, 3), AT(STATUS, 1), AT(PYTHON, 23),
     .help = "Phase of this peer: joining, training, no-quorum, consensus, finishing or left."},
    {.name = "time_s", .unit = "s", VALUE(time_s),
     AT(METRICS, 4),
     .help = "Time since this start of the process; virtual time in a simulation."},
    {.name = "loss", VALUE(node.loss), .metric = "loss",
     AT(METRICS, 5), AT(LOCAL, 5), AT(STATUS, 4), AT(PROMETHEUS, 10), AT(PYTHON, 9),
     .help = "Mean training loss of the last local steps."},
    {.name = "drift", VALUE(node.drift), .metric = "drift",
     AT(METRICS, 6), AT(STATUS, 6), AT(PROMETHEUS, 14), AT(PYTHON, 6),
     .help = "Estimated consensus distance of the models, absolute."},
    {.name = "relative_drift", VALUE(node.relative_drift), .metric = "relative_drift",
     AT(METRICS, 7), AT(LOCAL, 13), AT(STATUS, 7), AT(PROMETHEUS, 15), AT(PYTHON, 7),
     .help = "Estimated consensus distance, relative to the norm of the mean model."},
    {.name = "drift_round", .unit = "rounds", VALUE(node.drift_round), .known = with_drift, .metric = "drift_round",
     AT(METRICS, 8), AT(STATUS, 8), AT(PROMETHEUS, 16), AT(PYTHON, 8),
     .help = "Round of the drift estimate. Rounds of the consensus phase count, too.",
     .about = "Round of the drift estimate. Rounds of the consensus phase count, too. Null without an estimate."},
    {.name = "drift_age", .unit = "rounds", VALUE(node.drift_age), .known = with_drift, .metric = "drift_age_rounds",
     AT(METRICS, 9), AT(STATUS, 9), AT(PROMETHEUS, 17),
     .help = "Number of rounds since the round of the drift estimate.",
     .about = "Number of rounds since the round of the drift estimate. Null without an estimate."},
    {.name = "own_distance", VALUE(node.own_distance), .metric = "own_distance",
     AT(METRICS, 10), AT(LOCAL, 14), AT(PROMETHEUS, 21),
     .help = "Estimated distance of this peer's model from the mean model, absolute."},
    {.name = "statistics_disagreement", VALUE(node.statistics_apart), .metric = "statistics_disagreement",
     AT(METRICS, 11), AT(PROMETHEUS, 22),
     .help = "Largest relative distance of the running statistics between this peer and a neighbour.",
     .about = "Largest relative distance of the running statistics between this peer and a neighbour. Null for models without running statistics."},
    {.name = "gamma", VALUE(node.gamma), .metric = "gamma",
     AT(METRICS, 12), AT(PROMETHEUS, 23), AT(PYTHON, 13),
     .help = "Consensus step size, mean over the edges."},
    {.name = "rung", VALUE(node.rung),
     AT(METRICS, 13), AT(LOCAL, 20),
     .help = "Codec that --compress auto has chosen for training.",
     .about = "Codec that `--compress auto` has chosen for training, else null."},
    {.name = "drift_excess", VALUE(node.excess), .metric = "drift_excess",
     AT(METRICS, 14), AT(LOCAL, 21), AT(PROMETHEUS, 19),
     .help = "Drift divided by the length of a round's local update and by a factor that depends on the graph (--compress auto).",
     .about = "The [normalised drift](consensus-distance.md#normalised-drift) with `--compress auto`, else null."},
    {.name = "drift_target", VALUE(node.drift_target), .metric = "drift_target",
     AT(METRICS, 15), AT(LOCAL, 22), AT(PROMETHEUS, 20),
     .help = "Target of the normalised drift (hearsay_drift_excess), with --compress auto (--drift-target).",
     .about = "Target of the normalised drift (`--drift-target`) with `--compress auto`, else null."},
    {.name = "bytes_sent", .unit = "bytes", .type = FIGURE_COUNTER, VALUE(node.bytes_sent), .metric = "bytes_total", .label = "direction=\"sent\"",
     AT(METRICS, 16), AT(LOCAL, 8), AT(STATUS, 10), AT(PROMETHEUS, 44), AT(PYTHON, 16),
     .help = "Bytes through the sockets of this process since its start, by direction: sent or received.",
     .about = "Bytes sent through the sockets since this start."},
    {.name = "bytes_received", .unit = "bytes", .type = FIGURE_COUNTER, VALUE(node.bytes_received), .metric = "bytes_total", .label = "direction=\"received\"",
     AT(METRICS, 17), AT(LOCAL, 9), AT(STATUS, 11), AT(PROMETHEUS, 45), AT(PYTHON, 17),
     .help = "Bytes through the sockets of this process since its start, by direction: sent or received.",
     .about = "Bytes received through the sockets since this start."},
    {.name = "compute_s", .unit = "s", .type = FIGURE_COUNTER, VALUE(node.compute_s), .metric = "activity_seconds_total", .label = "activity=\"compute\"",
     AT(METRICS, 18), AT(LOCAL, 10), AT(PROMETHEUS, 46), AT(PYTHON, 19),
     .help = "Time of local steps (compute), of waiting for other peers (wait), and of applying, mixing and encoding (mix).",
     .about = "Total time of local steps."},
    {.name = "wait_s", .unit = "s", .type = FIGURE_COUNTER, VALUE(node.wait_s), .metric = "activity_seconds_total", .label = "activity=\"wait\"",
     AT(METRICS, 19), AT(LOCAL, 11), AT(PROMETHEUS, 47), AT(PYTHON, 21),
     .help = "Time of local steps (compute), of waiting for other peers (wait), and of applying, mixing and encoding (mix).",
     .about = "Total time of waiting for other peers."},
    {.name = "mix_s", .unit = "s", .type = FIGURE_COUNTER, VALUE(node.mix_s), .metric = "activity_seconds_total", .label = "activity=\"mix\"",
     AT(METRICS, 20), AT(LOCAL, 12), AT(PROMETHEUS, 48), AT(PYTHON, 20),
     .help = "Time of local steps (compute), of waiting for other peers (wait), and of applying, mixing and encoding (mix).",
     .about = "Total time of applying, mixing and encoding deltas."},
    {.name = "live", .unit = "members", VALUE(node.n_live), .metric = "live_members", .python = "n_live",
     AT(METRICS, 21), AT(STATUS, 12), AT(PROMETHEUS, 26), AT(PYTHON, 14),
     .help = "Live members, this peer included."},
    {.name = "edges", .unit = "edges", VALUE(node.n_edges), .python = "n_edges",
     AT(METRICS, 22), AT(PYTHON, 15),
     .help = "Open edges of this peer."},
    {.name = "settle_rounds", .unit = "rounds", VALUE(node.settle_rounds), .metric = "settle_rounds",
     AT(METRICS, 23), AT(LOCAL, 7), AT(PROMETHEUS, 6), AT(PYTHON, 3),
     .help = "Rounds of the consensus phase that are done."},
    {.name = "local_steps", .unit = "steps", VALUE(node.local_steps), .metric = "local_steps",
     AT(METRICS, 24), AT(PROMETHEUS, 8),
     .help = "Local steps of the last round; 0 in the consensus phase."},
    {.name = "steps_done", .unit = "steps", .type = FIGURE_COUNTER, VALUE(node.steps_done), .metric = "local_steps_done_total",
     AT(METRICS, 25), AT(PROMETHEUS, 9),
     .help = "Local steps that this peer did.",
     .about = "Local steps of this peer in total."},
    {.name = "rounds_done", .unit = "rounds", .type = FIGURE_COUNTER, VALUE(node.rounds_done), .metric = "rounds_done_total",
     AT(METRICS, 26), AT(LOCAL, 23), AT(STATUS, 15), AT(PROMETHEUS, 3), AT(PYTHON, 4),
     .help = "Rounds whose local steps this peer did."},
    {.name = "rounds_skipped", .unit = "rounds", .type = FIGURE_COUNTER, VALUE(node.rounds_skipped), .metric = "rounds_skipped_total",
     AT(METRICS, 27), AT(LOCAL, 25), AT(STATUS, 16), AT(PROMETHEUS, 4), AT(PYTHON, 5),
     .help = "Rounds that this peer skipped to catch up with the other peers."},
    {.name = "joined_round", .unit = "rounds", VALUE(node.joined_round), .metric = "joined_round",
     AT(METRICS, 28), AT(LOCAL, 26), AT(STATUS, 17), AT(PROMETHEUS, 5),
     .help = "Round at which this peer joined.",
     .about = "Round at which this peer joined: `round` less `rounds_done` and `rounds_skipped`."},
    {.name = "rung_by", VALUE(node.rung_by),
     AT(METRICS, 29),
     .help = "Reason for the present codec with --compress auto: drift (models differ), link (bandwidth) or price (larger deltas delay rounds).",
     .about = "Reason for the present codec with `--compress auto`: `drift` (models differ), `link` (bandwidth) or `price` (larger deltas delay rounds). Else null."},
    {.name = "goodput", .unit = "bytes/s", VALUE(node.goodput), .metric = "goodput_bytes_per_second",
     AT(METRICS, 30), AT(PROMETHEUS, 24),
     .help = "Estimated bandwidth of the slowest edge, not counting its latency (--compress auto).",
     .about = "Estimated bandwidth of the slowest edge with `--compress auto`. Null if unknown or too high to measure."},
    {.name = "bytes_ahead", .unit = "bytes", .type = FIGURE_COUNTER, VALUE(node.bytes_ahead), .metric = "ahead_bytes_total",
     AT(METRICS, 31), AT(PROMETHEUS, 25),
     .help = "Payload bytes of deltas sent before the local steps of their round ended (--overlap layer)."},
    {.name = "accuracy", VALUE(node.accuracy), .known = in_evaluated_round, .metric = "accuracy_ratio",
     AT(METRICS, 32), AT(LOCAL, 1), AT(STATUS_JSON, 1), AT(STATUS, 5), AT(PROMETHEUS, 11), AT(PYTHON, 10),
     .help = "Accuracy of the last evaluation on the test set, from 0 to 1.",
     .about = "Accuracy of the last evaluation on the test set, from 0 to 1. Null without an evaluation."},
    {.name = "test_loss", VALUE(node.test_loss), .known = in_evaluated_round, .metric = "test_loss",
     AT(METRICS, 33), AT(LOCAL, 2), AT(STATUS_JSON, 3), AT(PROMETHEUS, 13), AT(PYTHON, 11),
     .help = "Mean loss of the last evaluation on the test set.",
     .about = "Mean loss of the last evaluation on the test set. Null without an evaluation."},
    {.name = "accuracy_round", .unit = "rounds", VALUE(node.accuracy_round), .known = with_accuracy, .metric = "accuracy_round",
     AT(METRICS, 34), AT(LOCAL, 3), AT(STATUS_JSON, 2), AT(PROMETHEUS, 12), AT(PYTHON, 12),
     .help = "Round of the last evaluated model. Rounds of the consensus phase count, too.",
     .about = "Round of the last evaluated model. Rounds of the consensus phase count, too. Null without an evaluation."},
    {.name = "accuracy_samples", .unit = "samples", VALUE(node.accuracy_samples), .known = in_evaluated_round,
     AT(METRICS, 35), AT(LOCAL, 4),
     .help = "Number of samples of the last evaluation, or of bytes for text.",
     .about = "Number of samples of the last evaluation, or of bytes for text. Null without an evaluation."},

    /* Counters and states of the node, and texts about training that failed. */
    {.name = "open_edges", .unit = "edges", VALUE(node.n_edges), .metric = "open_edges",
     AT(STATUS_JSON, 5), AT(PROMETHEUS, 28),
     .help = "Open edges of this peer."},
    {.name = "holds", VALUE(node.holds), .metric = "below_quorum",
     AT(STATUS_JSON, 7), AT(STATUS, 19), AT(PROMETHEUS, 29),
     .help = "1 while this peer does no local steps, because it is below the quorum; else 0.",
     .about = "True while this peer does no local steps, because it is below the quorum."},
    {.name = "resets", .unit = "resets", .type = FIGURE_COUNTER, VALUE(node.resets), .metric = "edge_resets_total",
     AT(SUMMARY, 1), AT(LOCAL, 17), AT(STATUS_JSON, 12), AT(PROMETHEUS, 32),
     .help = "Number of times that an edge began a new epoch."},
    {.name = "violations", .unit = "messages", .type = FIGURE_COUNTER, VALUE(node.violations), .metric = "violations_total",
     AT(SUMMARY, 2), AT(LOCAL, 18), AT(STATUS_JSON, 14), AT(STATUS, 14), AT(PROMETHEUS, 33),
     .help = "Received protocol violations: messages that no correct peer sends."},
    {.name = "distrusted", .unit = "edges", .type = FIGURE_COUNTER, VALUE(node.distrusted), .metric = "distrusted_total",
     AT(SUMMARY, 3), AT(STATUS_JSON, 15), AT(PROMETHEUS, 34),
     .help = "Number of times that an edge was closed because the neighbour sent a model that no correct peer can have.",
     .about = "Number of times that an edge was closed because of an [impossible model](faults.md#byzantine-members)."},
    {.name = "exchanges", .unit = "exchanges", .type = FIGURE_COUNTER, VALUE(node.exchanges), .metric = "exchanges_total",
     AT(SUMMARY, 4), AT(LOCAL, 19), AT(STATUS_JSON, 11), AT(PROMETHEUS, 31),
     .help = "Exchanges that both ends have applied, summed over all edges."},
    {.name = "empty_deltas", .unit = "deltas", .type = FIGURE_COUNTER, VALUE(node.empty_deltas), .metric = "empty_deltas_total",
     AT(METRICS, 36), AT(LOCAL, 29), AT(STATUS_JSON, 24), AT(PROMETHEUS, 49),
     .help = "Deltas of this peer without values, because the model had moved too little (--trigger)."},
    {.name = "strangers", .unit = "connections", .type = FIGURE_COUNTER, VALUE(node.strangers),
     AT(SUMMARY, 7), AT(STATUS_JSON, 13), AT(STATUS, 13),
     .help = "Connections refused before authentication."},
    {.name = "diverged", VALUE(node.diverged), .metric = "diverged",
     AT(SUMMARY, 9), AT(SIM, 1), AT(LOCAL, 15), AT(STATUS_JSON, 16), AT(PROMETHEUS, 35),
     .help = "1 if training diverged, else 0.",
     .about = "Null, or a text that describes how training diverged. In Prometheus: 1 if training diverged, else 0."},
    {.name = "unlearnt", VALUE(node.unlearnt),
     AT(SUMMARY, 10), AT(SIM, 2), AT(LOCAL, 16), AT(STATUS_JSON, 17),
     .help = "Reason why the model is no better than guessing.",
     .about = "Null, or the reason why the run [learnt nothing](verdicts.md#divergence)."},

    /* Figures of the run, of the process and of its files. */
    {.name = "min_peers", .unit = "members", VALUE(min_peers), .known = with_run, .metric = "run_min_peers",
     AT(PROMETHEUS, 27),
     .help = "Members that the run waits for before its first round."},
    {.name = "final_drift", VALUE(final_drift), .known = with_run, .metric = "final_drift",
     AT(STATUS_JSON, 4), AT(PROMETHEUS, 18),
     .help = "Relative drift at which the consensus phase ends; 0: no consensus phase."},
    {.name = "codec", VALUE(codec),
     AT(STATUS_JSON, 6), AT(STATUS, 20), AT(PYTHON, 22),
     .help = "Codec of this peer's present deltas."},
    {.name = "busy_s", .unit = "s", VALUE(busy_s),
     AT(STATUS_JSON, 9),
     .help = "Time since the present job of the worker began; 0: the worker is idle."},
    {.name = "age_s", .unit = "s", VALUE(age_s), .metric = "round_age_seconds",
     AT(STATUS_JSON, 10), AT(STATUS, 18), AT(PROMETHEUS, 7),
     .help = "Time since this peer's last round ended."},
    {.name = "checkpoints", .unit = "checkpoints", .type = FIGURE_COUNTER, VALUE(checkpoints), .metric = "checkpoints_total",
     AT(SUMMARY, 5), AT(STATUS_JSON, 18), AT(PROMETHEUS, 36),
     .help = "Checkpoints that this process has stored."},
    {.name = "checkpoint_s", .unit = "s", .type = FIGURE_COUNTER, VALUE(checkpoint_s), .metric = "checkpoint_seconds_total",
     AT(SUMMARY, 6), AT(STATUS_JSON, 19), AT(PROMETHEUS, 37),
     .help = "Time during which checkpoints delayed the training."},
    {.name = "checkpoints_failed", .unit = "checkpoints", VALUE(checkpoints_failed), .metric = "checkpoints_failed",
     AT(STATUS_JSON, 20), AT(PROMETHEUS, 38),
     .help = "Checkpoints that failed since the last stored checkpoint."},
    {.name = "lines_missing", .unit = "lines", VALUE(lines_missing), .metric = "lines_missing",
     AT(STATUS_JSON, 21), AT(PROMETHEUS, 39),
     .help = "Lines of metrics.jsonl that are not on the disk: waiting in memory, or lost."},
    {.name = "model_unstored", VALUE(model_unstored), .metric = "model_unstored",
     AT(STATUS_JSON, 22), AT(PROMETHEUS, 40),
     .help = "1 while the model is in memory only, because writing it failed.",
     .about = "True while the model is in memory only, because writing it failed."},
    {.name = "disk_free_bytes", .unit = "bytes", VALUE(disk_free_bytes), .known = with_disk, .metric = "disk_free_bytes",
     AT(STATUS_JSON, 23), AT(PROMETHEUS, 41),
     .help = "Free space on the disk of --out.",
     .about = "Free space on the disk of `--out`."},
    {.name = "ready", VALUE(ready), .metric = "ready",
     AT(PROMETHEUS, 30),
     .help = "1 in the phases training, consensus and finishing; else 0."},
    {.name = "uptime_s", .unit = "s", VALUE(uptime_s), .metric = "uptime_seconds",
     AT(PROMETHEUS, 42),
     .help = "Time since this process began."},
    {.name = "snapshot_age_s", .unit = "s", VALUE(snapshot_age_s), .metric = "snapshot_age_seconds",
     AT(PROMETHEUS, 43),
     .help = "Age of the figures on this page, about 1 s at most."},
    {.name = "bytes_copied", .unit = "bytes", .type = FIGURE_COUNTER, VALUE(bytes_copied),
     AT(PYTHON, 18),
     .help = "Bytes copied between the program's tensors and the memory of libhearsay."},

    /* Fields whose values are set by the writer of the output. */
    {.name = "verdict", .kind = FIGURE_OTHER,
     AT(SUMMARY, 8), AT(LOCAL, 27),
     .help = "How the run ended.",
     .about = "How the run ended ([fields](#summaryjson))."},
    {.name = "waiting", .kind = FIGURE_OTHER,
     AT(STATUS_JSON, 8),
     .help = "What this peer waits for.",
     .about = "What this peer waits for ([fields](#statusjson)), or null."},
    {.name = "interrupted", .kind = FIGURE_OTHER,
     AT(LOCAL, 24),
     .help = "True if the peer was stopped."},
    {.name = "model", .kind = FIGURE_OTHER,
     AT(LOCAL, 28),
     .help = "Name of the model file that the peer stored."},
    {.name = NULL},
};
/* clang-format on */

/* ---- Values ---- */

/* Number of figures of FIGURE_STATUS that have a field in struct wire_status. The figures at later
 * places are sent by name. */
enum { STATUS_FIELDS = 20 };

static const void *value_at(const struct figure *f, const struct figure_values *v)
{
    return (const char *)v + f->offset;
}

void figure_init(struct figure_values *v)
{
    memset(v, 0, sizeof *v);
    for (const struct figure *f = figure_all; f->name != NULL; f++) {
        const double unknown = (double)NAN;
        if (f->kind == FIGURE_REAL && f->type == FIGURE_GAUGE)
            memcpy((char *)v + f->offset, &unknown, sizeof unknown);
    }
}

const struct figure *figure_at(enum figure_output output, uint32_t place)
{
    for (const struct figure *f = figure_all; f->name != NULL; f++)
        if (f->place[output] == place && place > 0)
            return f;
    return NULL;
}

const struct figure *figure_named(const char *name)
{
    const struct figure *f = figure_all;
    while (f->name != NULL && strcmp(f->name, name) != 0)
        f++;
    assert(f->name != NULL);
    return f;
}

static struct figure_value real(double x)
{
    return isfinite(x) ? (struct figure_value){.is = FIGURE_IS_REAL, .real = x}
                       : (struct figure_value){.is = FIGURE_IS_UNKNOWN};
}

static struct figure_value text(const char *s)
{
    return s != NULL && s[0] != '\0' ? (struct figure_value){.is = FIGURE_IS_TEXT, .text = s}
                                     : (struct figure_value){.is = FIGURE_IS_UNKNOWN};
}

/* Returns the value of a figure that a peer has sent by name. */
static struct figure_value sent(const struct figure *f, const struct wire_status *s)
{
    for (uint32_t i = 0; i < s->n_figures; i++) {
        const struct wire_status_figure *x = &s->figures[i];
        if (strcmp(x->name, f->name) != 0 || x->is_real != (f->kind == FIGURE_REAL))
            continue;
        if (x->is_real)
            return real(x->real);
        return f->kind == FIGURE_BOOL
                   ? (struct figure_value){.is = FIGURE_IS_BOOL, .yes = x->whole != 0}
                   : (struct figure_value){.is = FIGURE_IS_WHOLE, .whole = x->whole};
    }
    return (struct figure_value){.is = FIGURE_IS_UNKNOWN};
}

struct figure_value figure_get(const struct figure *f, const struct figure_values *v,
                               enum figure_output output)
{
    const void *at = value_at(f, v);
    if (output == FIGURE_STATUS && v->status != NULL && f->place[output] > STATUS_FIELDS)
        return sent(f, v->status);
    if (f->known != NULL && !f->known(v, output))
        return (struct figure_value){.is = FIGURE_IS_UNKNOWN};
    switch (f->kind) {
    case FIGURE_OTHER:
        break;
    case FIGURE_U64:
        return (struct figure_value){.is = FIGURE_IS_WHOLE, .whole = *(const uint64_t *)at};
    case FIGURE_U32:
        return (struct figure_value){.is = FIGURE_IS_WHOLE, .whole = *(const uint32_t *)at};
    case FIGURE_BOOL:
        return (struct figure_value){.is = FIGURE_IS_BOOL, .yes = *(const bool *)at};
    case FIGURE_REAL:
        return real(*(const double *)at);
    case FIGURE_TEXT:
        return text(*(const char *const *)at);
    case FIGURE_CHARS:
        return text(at);
    case FIGURE_PHASE:
        return text(figure_phase(v->node.phase, v->node.holds));
    }
    return (struct figure_value){.is = FIGURE_IS_UNKNOWN};
}

double figure_number(const struct figure *f, const struct figure_values *v)
{
    struct figure_value x = figure_get(f, v, FIGURE_PROMETHEUS);
    switch (x.is) {
    case FIGURE_IS_WHOLE:
        return (double)x.whole;
    case FIGURE_IS_REAL:
        return x.real;
    case FIGURE_IS_BOOL:
        return x.yes;
    case FIGURE_IS_TEXT:
        return 1;
    case FIGURE_IS_UNKNOWN:
        break;
    }
    return f->kind == FIGURE_CHARS || f->kind == FIGURE_TEXT ? 0 : (double)NAN;
}

/* ---- STATUS messages ---- */

void figure_send(struct wire_status *s, const struct figure *f, const struct figure_values *v)
{
    struct figure_value x = figure_get(f, v, FIGURE_STATUS);
    if (x.is == FIGURE_IS_UNKNOWN)
        return;
    assert(x.is != FIGURE_IS_TEXT && s->n_figures < WIRE_FIGURES_MAX);
    struct wire_status_figure *to = &s->figures[s->n_figures++];
    *to = (struct wire_status_figure){.is_real = x.is == FIGURE_IS_REAL,
                                      .whole = x.is == FIGURE_IS_BOOL ? x.yes : x.whole,
                                      .real = x.real};
    snprintf(to->name, sizeof to->name, "%s", f->name);
}

/* The figures that have a field of their own in a STATUS message: COPY(field of struct
 * node_progress, field of struct wire_status). */
#define STATUS_COPIES(COPY)                                                                        \
    COPY(holds, holds)                                                                             \
    COPY(round, round)                                                                             \
    COPY(n_rounds, n_rounds)                                                                       \
    COPY(loss, loss)                                                                               \
    COPY(accuracy, accuracy)                                                                       \
    COPY(drift, drift)                                                                             \
    COPY(relative_drift, relative_drift)                                                           \
    COPY(drift_round, drift_round)                                                                 \
    COPY(drift_age, drift_age)                                                                     \
    COPY(bytes_sent, bytes_sent)                                                                   \
    COPY(bytes_received, bytes_received)                                                           \
    COPY(strangers, n_strangers)                                                                   \
    COPY(violations, n_violations)                                                                 \
    COPY(n_live, n_live)                                                                           \
    COPY(rounds_done, rounds_done)                                                                 \
    COPY(rounds_skipped, rounds_skipped)                                                           \
    COPY(joined_round, joined_round)

void figure_to_status(struct wire_status *s, const struct figure_values *v)
{
    const struct figure *f;
#define COPY(ours, theirs) s->theirs = v->node.ours;
    STATUS_COPIES(COPY)
#undef COPY
    s->phase = v->node.phase;
    s->age_s = v->age_s;
    for (uint32_t i = STATUS_FIELDS + 1; (f = figure_at(FIGURE_STATUS, i)) != NULL; i++)
        figure_send(s, f, v);
}

void figure_of_status(struct figure_values *v, const struct wire_status *s)
{
    figure_init(v);
#define COPY(ours, theirs) v->node.ours = s->theirs;
    STATUS_COPIES(COPY)
#undef COPY
    v->node.phase = (enum node_phase)s->phase;
    v->age_s = s->age_s;
    v->has_run = s->n_rounds > 0;
    v->codec = s->codec;
    v->status = s;
}

const char *figure_phase(enum node_phase phase, bool holds)
{
    switch (phase) {
    case NODE_JOINING:
        return "joining";
    case NODE_TRAINING:
        return holds ? "no-quorum" : "training";
    case NODE_CONSENSUS:
        return "consensus";
    case NODE_FINISHING:
        return "finishing";
    case NODE_LEFT:
        return "left";
    }
    return "unknown"; /* A peer may send a phase number that this version does not know. */
}
