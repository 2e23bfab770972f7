/* peer/http/prometheus.c -- names, types and help texts of all metrics, and their values. */
#include "peer/http/prometheus.h"

#include "gossip/exchange/edge.h"
#include "peer/http/health.h"
#include "peer/uv/metrics.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Metrics without labels -------------------------------------------- */

enum figure {
    ROUND,
    RUN_ROUNDS,
    ROUNDS_DONE,
    ROUNDS_SKIPPED,
    JOINED_ROUND,
    SETTLE_ROUNDS,
    ROUND_AGE,
    LOCAL_STEPS,
    STEPS_DONE,
    LOSS,
    ACCURACY,
    ACCURACY_ROUND,
    TEST_LOSS,
    DRIFT,
    RELATIVE_DRIFT,
    DRIFT_ROUND,
    DRIFT_AGE,
    FINAL_DRIFT,
    DRIFT_EXCESS,
    DRIFT_TARGET,
    OWN_DISTANCE,
    STATISTICS,
    GAMMA,
    GOODPUT,
    BYTES_AHEAD,
    LIVE,
    MIN_PEERS,
    OPEN_EDGES,
    BELOW_QUORUM,
    READY,
    EXCHANGES,
    RESETS,
    VIOLATIONS,
    DISTRUSTED,
    DIVERGED,
    CHECKPOINTS,
    CHECKPOINT_SECONDS,
    CHECKPOINTS_FAILED,
    LINES_MISSING,
    MODEL_UNSTORED,
    DISK_FREE,
    UPTIME,
    SNAPSHOT_AGE,
    FIGURES
};

static const char gauge[] = "gauge", counter[] = "counter";

/* clang-format off */
static const struct
{
    const char *name, *type, *help;
} row[FIGURES] = {
    [ROUND] = {"round", gauge, "Rounds of the run that this peer counts as over: joined, done or skipped."},
    [RUN_ROUNDS] = {"run_rounds", gauge, "Rounds of the whole run."},
    [ROUNDS_DONE] = {"rounds_done_total", counter, "Rounds whose local steps this peer did."},
    [ROUNDS_SKIPPED] = {"rounds_skipped_total", counter, "Rounds that this peer passed over to catch up with the others."},
    [JOINED_ROUND] = {"joined_round", gauge, "The round at which this peer joined."},
    [SETTLE_ROUNDS] = {"settle_rounds", gauge, "Rounds of the consensus phase that are done."},
    [ROUND_AGE] = {"round_age_seconds", gauge, "Time since this peer's last round ended."},
    [LOCAL_STEPS] = {"local_steps", gauge, "Local steps of the last round."},
    [STEPS_DONE] = {"local_steps_done_total", counter, "Local steps that this peer did."},
    [LOSS] = {"loss", gauge, "Mean training loss of the last local steps."},
    [ACCURACY] = {"accuracy_ratio", gauge, "Share of held-out samples that the last evaluation got right."},
    [ACCURACY_ROUND] = {"accuracy_round", gauge, "The round of that evaluation; rounds of the consensus phase count on."},
    [TEST_LOSS] = {"test_loss", gauge, "Mean loss on held-out samples at the last evaluation."},
    [DRIFT] = {"drift", gauge, "Estimated consensus distance of the models, absolute."},
    [RELATIVE_DRIFT] = {"relative_drift", gauge, "Estimated consensus distance, relative to the norm of the mean model."},
    [DRIFT_ROUND] = {"drift_round", gauge, "Round that the drift estimate describes; rounds of the consensus phase are added."},
    [DRIFT_AGE] = {"drift_age_rounds", gauge, "Rounds that have been done since that one."},
    [FINAL_DRIFT] = {"final_drift", gauge, "Relative drift at which the consensus phase ends; 0: no consensus phase."},
    [DRIFT_EXCESS] = {"drift_excess", gauge, "Drift in units of what exact exchange would have (--compress auto)."},
    [DRIFT_TARGET] = {"drift_target", gauge, "The drift excess that the run asks for while training (--drift-target)."},
    [OWN_DISTANCE] = {"own_distance", gauge, "Estimated distance of this peer's model from the mean."},
    [STATISTICS] = {"statistics_disagreement", gauge, "Relative distance of running statistics over the worst edge."},
    [GAMMA] = {"gamma", gauge, "Consensus step size, mean over the edges."},
    [GOODPUT] = {"goodput_bytes_per_second", gauge, "Transmission time of the slowest edge without its latency."},
    [BYTES_AHEAD] = {"ahead_bytes_total", counter, "Bytes of deltas that went out before their round's local steps were over."},
    [LIVE] = {"live_members", gauge, "Members that live and count, this peer included."},
    [MIN_PEERS] = {"run_min_peers", gauge, "Members that the run waits for before its first round."},
    [OPEN_EDGES] = {"open_edges", gauge, "Edges over which models are mixed."},
    [BELOW_QUORUM] = {"below_quorum", gauge, "1 while this peer holds its local steps, as too few members live."},
    [READY] = {"ready", gauge, "1 while this peer trains or serves, as /readyz says."},
    [EXCHANGES] = {"exchanges_total", counter, "Exchanges that were committed, over all edges."},
    [RESETS] = {"edge_resets_total", counter, "Edges that began a new epoch."},
    [VIOLATIONS] = {"violations_total", counter, "Messages that no correct peer sends."},
    [DISTRUSTED] = {"distrusted_total", counter, "Times that an edge was closed because what came over it could be no model of the run."},
    [DIVERGED] = {"diverged", gauge, "1 where training ran away."},
    [CHECKPOINTS] = {"checkpoints_total", counter, "Checkpoints that this process has stored."},
    [CHECKPOINT_SECONDS] = {"checkpoint_seconds_total", counter, "Time that checkpoints took from training."},
    [CHECKPOINTS_FAILED] = {"checkpoints_failed", gauge, "Checkpoints that could not be stored since the last one that was."},
    [LINES_MISSING] = {"lines_missing", gauge, "Lines of metrics.jsonl that wait for the disk, or are lost."},
    [MODEL_UNSTORED] = {"model_unstored", gauge, "1 while the model is in memory only, because writing it failed."},
    [DISK_FREE] = {"disk_free_bytes", gauge, "Room on the disk of --out."},
    [UPTIME] = {"uptime_seconds", gauge, "Time since this process began."},
    [SNAPSHOT_AGE] = {"snapshot_age_seconds", gauge, "Time since the peer's loop was last heard of: about 1 at most."},
};
/* clang-format on */

static void fill_training(double f[FIGURES], const struct node_progress *p)
{
    f[ROUNDS_DONE] = (double)p->rounds_done;
    f[ROUNDS_SKIPPED] = (double)p->rounds_skipped;
    f[JOINED_ROUND] = (double)p->joined_round;
    f[SETTLE_ROUNDS] = (double)p->settle_rounds;
    f[LOCAL_STEPS] = p->local_steps;
    f[STEPS_DONE] = (double)p->steps_done;
    f[LOSS] = p->loss;
    f[ACCURACY] = p->accuracy;
    f[TEST_LOSS] = p->test_loss;
    f[DRIFT] = p->drift;
    f[RELATIVE_DRIFT] = p->relative_drift;
    f[DRIFT_ROUND] = isfinite(p->drift) ? (double)p->drift_round : NAN;
    f[DRIFT_AGE] = isfinite(p->drift) ? (double)p->drift_age : NAN;
    f[DRIFT_EXCESS] = p->excess;
    f[DRIFT_TARGET] = p->drift_target;
    f[OWN_DISTANCE] = p->own_distance;
    f[STATISTICS] = p->statistics_apart;
    f[GAMMA] = p->gamma;
    f[GOODPUT] = p->goodput;
    f[BYTES_AHEAD] = (double)p->bytes_ahead;
    f[DIVERGED] = p->diverged[0] != '\0';
}

static void fill(double f[FIGURES], const struct snapshot *s, int64_t now_us)
{
    const struct node_progress *p = &s->figures;
    double late_s = (double)(now_us - s->taken_us) * 1e-6;
    fill_training(f, p);
    f[ROUND] = s->has_run ? (double)p->round : NAN;
    f[RUN_ROUNDS] = s->has_run ? (double)p->n_rounds : NAN;
    f[ROUND_AGE] = s->age_s + late_s;
    f[ACCURACY_ROUND] = isfinite(p->accuracy) ? (double)s->accuracy_round : NAN;
    f[FINAL_DRIFT] = s->has_run ? s->final_drift : NAN;
    f[LIVE] = p->n_live;
    f[MIN_PEERS] = s->has_run ? (double)s->min_peers : NAN;
    f[OPEN_EDGES] = p->n_edges;
    f[BELOW_QUORUM] = p->holds;
    f[READY] = health_ready(s, now_us, NULL);
    f[EXCHANGES] = (double)p->exchanges;
    f[RESETS] = (double)p->resets;
    f[VIOLATIONS] = (double)p->violations;
    f[DISTRUSTED] = (double)p->distrusted;
    f[CHECKPOINTS] = (double)s->checkpoints;
    f[CHECKPOINT_SECONDS] = s->checkpoint_s;
    f[CHECKPOINTS_FAILED] = (double)s->unkept;
    f[LINES_MISSING] = (double)s->lines_missing;
    f[MODEL_UNSTORED] = s->unstored;
    f[DISK_FREE] = s->disk_free_bytes;
    f[UPTIME] = s->time_s + late_s;
    f[SNAPSHOT_AGE] = late_s;
}

static void write_head(struct text *t, const char *name, const char *type, const char *help)
{
    text_add(t, "# HELP hearsay_%s %s\n# TYPE hearsay_%s %s\n", name, help, name, type);
}

static void write_figures(struct text *t, const double f[FIGURES])
{
    for (int i = 0; i < FIGURES; i++) {
        if (!isfinite(f[i]))
            continue;
        write_head(t, row[i].name, row[i].type, row[i].help);
        text_add(t, "hearsay_%s %.16g\n", row[i].name, f[i]);
    }
}

/* ---- Metrics with labels ----------------------------------------------- */

/* Appends a label value in quotes, escaped as Prometheus' text format requires. */
static void write_value(struct text *t, const char *value)
{
    text_add(t, "\"");
    for (; *value != '\0'; value++) {
        if (*value == '\n')
            text_add(t, "\\n");
        else if (*value == '"' || *value == '\\')
            text_add(t, "\\%c", *value);
        else
            text_add_bytes(t, value, 1);
    }
    text_add(t, "\"");
}

static void write_label(struct text *t, const char *before, const char *label, const char *value)
{
    text_add(t, "%s%s=", before, label);
    write_value(t, value);
}

/* Appends a line hearsay_NAME{LABEL="VALUE"} NUMBER. */
static void write_one(struct text *t, const char *name, const char *label, const char *value,
                      double number)
{
    text_add(t, "hearsay_%s", name);
    write_label(t, "{", label, value);
    text_add(t, "} %.16g\n", number);
}

/* Gets the value of a key from the run description. "": the key is missing, or its value is too
 * long for a label. */
static void run_value(char out[RUN_SPEC_MAX], const char *run, const char *key)
{
    size_t n = strlen(key);
    out[0] = '\0';
    for (const char *line = run; line != NULL && *line != '\0';) {
        const char *end = strchr(line, '\n');
        size_t len = end != NULL ? (size_t)(end - line) : strlen(line);
        if (len > n && len - n - 1 < RUN_SPEC_MAX && memcmp(line, key, n) == 0 && line[n] == '=')
            snprintf(out, RUN_SPEC_MAX, "%.*s", (int)(len - n - 1), line + n + 1);
        line = end != NULL ? end + 1 : NULL;
    }
}

static void write_run(struct text *t, const struct snapshot *s)
{
    static const char *const key[] = {"model", "data", "topology", "compress", "mixer", "policy"};
    char value[RUN_SPEC_MAX];
    if (!s->has_run)
        return;
    write_head(t, "run_info", gauge, "The run that this peer takes part in, by some of its keys.");
    text_add(t, "hearsay_run_info");
    write_label(t, "{", "run_id", s->run_id);
    for (size_t i = 0; i < sizeof key / sizeof *key; i++) {
        run_value(value, s->run, key[i]);
        write_label(t, ",", key[i], value);
    }
    text_add(t, "} 1\n");
}

static void write_info(struct text *t, const struct snapshot *s)
{
    write_head(t, "build_info", gauge, "The release of this program.");
    write_one(t, "build_info", "version", HEARSAY_VERSION, 1);
    write_head(t, "peer_info", gauge, "This peer: its name and its identity.");
    text_add(t, "hearsay_peer_info");
    write_label(t, "{", "name", s->name);
    write_label(t, ",", "id", s->id);
    text_add(t, "} 1\n");
    write_run(t, s);
    if (s->codec[0] == '\0')
        return;
    write_head(t, "codec_info", gauge, "Codec of this peer's deltas, and what chose it.");
    text_add(t, "hearsay_codec_info");
    write_label(t, "{", "codec", s->codec);
    write_label(t, ",", "by", s->figures.rung_by != NULL ? s->figures.rung_by : "run");
    text_add(t, "} 1\n");
}

static void write_phase(struct text *t, const struct node_progress *p)
{
    static const char *const phase[] = {"joining",   "training",  "no-quorum",
                                        "consensus", "finishing", "left"};
    const char *now = uv_metrics_phase(p->phase, p->holds);
    write_head(t, "phase", gauge, "1 for the phase that this peer is in, else 0.");
    for (size_t i = 0; i < sizeof phase / sizeof *phase; i++)
        write_one(t, "phase", "phase", phase[i], strcmp(phase[i], now) == 0);
}

static void write_totals(struct text *t, const struct node_progress *p)
{
    write_head(t, "bytes_total", counter, "Bytes at the sockets of this process.");
    write_one(t, "bytes_total", "direction", "sent", (double)p->bytes_sent);
    write_one(t, "bytes_total", "direction", "received", (double)p->bytes_received);
    write_head(
        t, "activity_seconds_total", counter,
        "Time of local steps (compute), of waiting for others (wait), and of applying, mixing "
        "and encoding (mix).");
    write_one(t, "activity_seconds_total", "activity", "compute", p->compute_s);
    write_one(t, "activity_seconds_total", "activity", "wait", p->wait_s);
    write_one(t, "activity_seconds_total", "activity", "mix", p->mix_s);
}

static void write_counts(struct text *t, const char *name, const char *help,
                         const struct snapshot_count *count, uint32_t n)
{
    if (n > 0)
        write_head(t, name, counter, help);
    for (uint32_t i = 0; i < n; i++)
        write_one(t, name, "reason", count[i].what, (double)count[i].n);
}

static void write_members(struct text *t, const struct snapshot *s)
{
    write_head(t, "members", gauge, "Members that this peer knows, by what it holds of them.");
    for (uint32_t i = 0; i < SNAPSHOT_STATES; i++)
        write_one(t, "members", "state", snapshot_member_state((enum member_state)i),
                  s->in_state[i]);
}

/* Appends a sample of an edge. The labels have the whole identity of the neighbour, because
 * Prometheus rejects a page on which two samples of a metric have equal labels. */
static void write_edge(struct text *t, const char *name, const struct snapshot_edge *e,
                       const char *direction, double number)
{
    if (!isfinite(number))
        return;
    text_add(t, "hearsay_%s", name);
    write_label(t, "{", "neighbour", e->name);
    write_label(t, ",", "id", e->id);
    if (direction != NULL)
        write_label(t, ",", "direction", direction);
    text_add(t, "} %.16g\n", number);
}

static void write_edges(struct text *t, const struct snapshot *s)
{
    const struct snapshot_edge *end = s->edge + s->n_edges;
    if (s->n_edges == 0)
        return;
    write_head(t, "edge_open", gauge, "1 where models are mixed over this edge, else 0.");
    for (const struct snapshot_edge *e = s->edge; e < end; e++)
        write_edge(t, "edge_open", e, NULL, e->state == EDGE_OPEN);
    write_head(t, "edge_round", gauge, "Exchanges that were committed in the edge's epoch.");
    for (const struct snapshot_edge *e = s->edge; e < end; e++)
        write_edge(t, "edge_round", e, NULL, (double)e->round);
    write_head(t, "edge_gamma", gauge, "Consensus step size of this edge.");
    for (const struct snapshot_edge *e = s->edge; e < end; e++)
        write_edge(t, "edge_gamma", e, NULL, e->gamma);
    write_head(t, "edge_bytes_total", counter,
               "Bytes at the sockets of sessions with this neighbour.");
    for (const struct snapshot_edge *e = s->edge; e < end; e++) {
        write_edge(t, "edge_bytes_total", e, "sent", (double)e->bytes_sent);
        write_edge(t, "edge_bytes_total", e, "received", (double)e->bytes_received);
    }
}

void prometheus_write(struct text *t, const struct snapshot *s, int64_t now_us)
{
    double f[FIGURES];
    if (s->number == 0) { /* The event loop has not started yet, so only "not ready" is known. */
        write_head(t, row[READY].name, row[READY].type, row[READY].help);
        text_add(t, "hearsay_%s 0\n", row[READY].name);
        return;
    }
    fill(f, s, now_us);
    write_info(t, s);
    write_phase(t, &s->figures);
    write_figures(t, f);
    write_totals(t, &s->figures);
    write_members(t, s);
    write_counts(t, "violations_by_reason_total",
                 "Messages that no correct peer sends, by what was wrong.", s->violation,
                 s->n_violations);
    write_counts(t, "refused_connections_total",
                 "Connections that became no session, by how they ended.", s->refused,
                 s->n_refused);
    write_edges(t, s);
}
