/* peer/http/prometheus.c -- writes the figures of a snapshot, and metrics with several values, in
 * Prometheus' text format. */
#include "peer/http/prometheus.h"

#include "gossip/exchange/edge.h"
#include "peer/http/health.h"
#include "peer/uv/metrics.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char gauge[] = "gauge", counter[] = "counter";

static void write_head(struct text *t, const char *name, const char *type, const char *help)
{
    text_add(t, "# HELP hearsay_%s %s\n# TYPE hearsay_%s %s\n", name, help, name, type);
}

/* ---- Metrics from the rows of figure_all[] ---- */

/* Appends the sample line (name and value) of a figure. */
static void write_sample(struct text *t, const struct figure *f, double number)
{
    text_add(t, "hearsay_%s", f->metric);
    if (f->label != NULL)
        text_add(t, "{%s}", f->label);
    text_add(t, " %.16g\n", number);
}

/* Appends all figures whose values are known. The figures of one metric are adjacent in
 * figure_all[] and share one pair of HELP and TYPE lines. */
static void write_figures(struct text *t, const struct figure_values *v)
{
    const struct figure *f;
    const char *metric = "";
    for (uint32_t i = 1; (f = figure_at(FIGURE_PROMETHEUS, i)) != NULL; i++) {
        double number = figure_number(f, v);
        if (!isfinite(number))
            continue;
        if (strcmp(f->metric, metric) != 0)
            write_head(t, f->metric, f->type == FIGURE_COUNTER ? counter : gauge, f->help);
        metric = f->metric;
        write_sample(t, f, number);
    }
}

/* ---- Metrics with labels or several values ---- */

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

/* Appends a sample line of the form hearsay_NAME{LABEL="VALUE"} NUMBER. */
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
    if (!s->figures.has_run)
        return;
    write_head(t, "run_info", gauge,
               "The run of this peer: its id and some of its options, as labels.");
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
    write_head(t, "build_info", gauge, "Version of this program, as a label.");
    write_one(t, "build_info", "version", HEARSAY_VERSION, 1);
    write_head(t, "peer_info", gauge, "Name and identity of this peer, as labels.");
    text_add(t, "hearsay_peer_info");
    write_label(t, "{", "name", s->name);
    write_label(t, ",", "id", s->id);
    text_add(t, "} 1\n");
    write_run(t, s);
    if (s->codec[0] == '\0')
        return;
    write_head(t, "codec_info", gauge,
               "Codec of this peer's deltas and the reason for its choice, as labels.");
    text_add(t, "hearsay_codec_info");
    write_label(t, "{", "codec", s->codec);
    write_label(t, ",", "by", s->figures.node.rung_by != NULL ? s->figures.node.rung_by : "run");
    text_add(t, "} 1\n");
}

static void write_phase(struct text *t, const struct node_progress *p)
{
    static const char *const phase[] = {"joining",   "training",  "no-quorum",
                                        "consensus", "finishing", "left"};
    const char *now = figure_phase(p->phase, p->holds);
    write_head(t, "phase", gauge, "1 for the phase that this peer is in, else 0.");
    for (size_t i = 0; i < sizeof phase / sizeof *phase; i++)
        write_one(t, "phase", "phase", phase[i], strcmp(phase[i], now) == 0);
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
    write_head(t, "members", gauge, "Number of members that this peer knows, by state.");
    for (uint32_t i = 0; i < SNAPSHOT_STATES; i++)
        write_one(t, "members", "state", snapshot_member_state((enum member_state)i),
                  s->in_state[i]);
}

/* Appends a sample of an edge. The labels contain the full identity of the neighbour: two samples
 * of a metric with equal labels would make Prometheus reject the page. */
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
    write_head(t, "edge_open", gauge,
               "1 if this edge is open, so that models are mixed over it; else 0.");
    for (const struct snapshot_edge *e = s->edge; e < end; e++)
        write_edge(t, "edge_open", e, NULL, e->state == EDGE_OPEN);
    write_head(t, "edge_round", gauge,
               "Exchanges over this edge that both ends have applied since its last reset.");
    for (const struct snapshot_edge *e = s->edge; e < end; e++)
        write_edge(t, "edge_round", e, NULL, (double)e->round);
    write_head(t, "edge_gamma", gauge, "Consensus step size of this edge.");
    for (const struct snapshot_edge *e = s->edge; e < end; e++)
        write_edge(t, "edge_gamma", e, NULL, e->gamma);
    write_head(t, "edge_bytes_total", counter,
               "Bytes sent to or received from this neighbour, counted at the sockets.");
    for (const struct snapshot_edge *e = s->edge; e < end; e++) {
        write_edge(t, "edge_bytes_total", e, "sent", (double)e->bytes_sent);
        write_edge(t, "edge_bytes_total", e, "received", (double)e->bytes_received);
    }
}

void prometheus_write(struct text *t, const struct snapshot *s, int64_t now_us)
{
    struct figure_values v;
    snapshot_figures(&v, s, now_us);
    v.ready = health_ready(s, now_us, NULL);
    /* Before the first snapshot is published, the peer is not ready, and no other metric is
     * known. */
    if (s->number == 0) {
        const struct figure *ready = figure_named("ready");
        write_head(t, ready->metric, gauge, ready->help);
        write_sample(t, ready, 0);
        return;
    }
    write_info(t, s);
    write_phase(t, &v.node);
    write_figures(t, &v);
    write_members(t, s);
    write_counts(t, "violations_by_reason_total",
                 "Received protocol violations (messages that no correct peer sends), by reason.",
                 s->violation, s->n_violations);
    write_counts(t, "refused_connections_total",
                 "Connections that ended before they became sessions, by reason.", s->refused,
                 s->n_refused);
    write_edges(t, s);
}
