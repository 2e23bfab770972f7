/* peer/cmd/status.c -- `hearsay status`: prints the state, edges and progress of all members.
 *
 *   --json: {"members": [{"name", "id", "state": "alive|left|unreachable",
 *     "addresses": [...], "callable": whether this command can call the member there (null: not
 *     known), "call_error": why not, or null, the rows FIGURE_STATUS of figure_all[],
 *     "edges": [{"name", "state", "round", "gamma", "resets"}]}],
 *     "gathering": {"here", "min_peers"} or null,
 *     "run": the run description or null, "timers": [{"name", "seconds", "purpose"}]}
 *
 * Each peer reports its own figures. A figure that a peer did not report is null or missing.
 */
#include "gossip/exchange/edge.h"
#include "peer/cmd/observe.h"
#include "peer/cmd/progress.h"
#include "peer/cmd/status_member.h"
#include "peer/node/node.h"
#include "peer/node/session/sessions.h"
#include "peer/uv/metrics.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
const struct option_row cmd_status_rows[] = {
    ROWS_BOOTSTRAP,
    ROWS_KEY,
    CMD_ROW_OBSERVER,
    {.name = "watch", .kind = OPTION_FLAG, .help = "refresh the status until all peers have left, or until Ctrl-C"},
    {.name = "interval", .kind = OPTION_REAL, .arg = "SECONDS", .fallback = "2", .min = 0.2, .max = 3600,
     .help = "with --watch: time between two refreshes"},
    {.name = "count", .kind = OPTION_UINT, .arg = "N", .fallback = "0", .max = 1e9,
     .help = "with --watch: end after N refreshes; 0: no limit"},
    CMD_ROW_JSON,
    {.name = NULL},
};
/* clang-format on */

/* Returns the state of a member as this command sees it: "alive" if the member answered, else
 * "left" if its membership record says so, else "unreachable". */
static const char *state_of(const struct cmd_observed *m)
{
    if (m->answered)
        return "alive";
    return m->record.state == RECORD_LEFT ? "left" : "unreachable";
}

static const char *name_of(const struct cmd_observe *w, const uint8_t id[WIRE_ID_BYTES])
{
    for (uint32_t i = 0; i < w->n; i++) {
        if (memcmp(w->member[i].record.id, id, WIRE_ID_BYTES) == 0 && w->member[i].known)
            return w->member[i].record.name;
    }
    return "?";
}

/* ---- Printing JSON ---- */

static json_t *edges_array(const struct cmd_observe *w, const struct wire_status *s)
{
    json_t *edges = json_array();
    for (uint32_t i = 0; i < s->n_edges; i++) {
        const struct wire_status_edge *e = &s->edges[i];
        json_array_append_new(
            edges,
            json_pack("{s:s, s:s, s:o, s:o, s:o}", "name", name_of(w, e->id), "state",
                      uv_metrics_edge(e->state), "round", uv_metrics_whole(e->round), "gamma",
                      uv_metrics_number((double)e->gamma), "resets", uv_metrics_whole(e->resets)));
    }
    return edges;
}

static void add_figures(json_t *j, const struct cmd_observe *w, const struct wire_status *s)
{
    struct figure_values v;
    figure_of_status(&v, s);
    (void)uv_metrics_add(j, &v, FIGURE_STATUS);
    json_object_set_new(j, "edges", edges_array(w, s));
}

/* Returns the JSON object "gathering": the number of members present, and the number that the run
 * needs to begin. Returns null if no peer waits for the first round. */
static json_t *gathering_object(const struct cmd_observe *w)
{
    uint32_t n = 0;
    bool gathers = false;
    for (uint32_t i = 0; i < w->n; i++) {
        n += w->member[i].answered;
        gathers |= w->member[i].answered && w->member[i].status.phase == NODE_JOINING;
    }
    if (!gathers || !w->has_run || n >= w->run.min_peers)
        return json_null();
    return json_pack("{s:I, s:I}", "here", (json_int_t)n, "min_peers",
                     (json_int_t)w->run.min_peers);
}

static void print_json(const struct cmd_observe *w)
{
    json_t *members = json_array();
    for (uint32_t i = 0; i < w->n; i++) {
        const struct cmd_observed *m = &w->member[i];
        char id[2 * WIRE_ID_BYTES + 1];
        for (int k = 0; k < WIRE_ID_BYTES; k++)
            snprintf(id + 2 * k, 3, "%02x", m->record.id[k]);
        json_t *j =
            json_pack("{s:s, s:s, s:s}", "name", m->record.name, "id", id, "state", state_of(m));
        json_t *addresses = json_array();
        for (uint32_t k = 0; k < m->record.n_addresses; k++)
            json_array_append_new(addresses, json_string(m->record.address[k]));
        json_object_set_new(j, "addresses", addresses);
        bool works = m->called && m->call == NODE_WHY_UNKNOWN;
        json_object_set_new(j, "callable", m->called ? json_boolean(works) : json_null());
        json_object_set_new(j, "call_error",
                            m->called && !works ? json_string(connection_diagnostics_why(m->call))
                                                : json_null());
        if (m->answered)
            add_figures(j, w, &m->status);
        json_array_append_new(members, j);
    }
    char run[WIRE_RUN_MAX + 1];
    if (w->has_run)
        run_text(&w->run, run);
    json_t *all =
        json_pack("{s:o, s:o, s:s?, s:o}", "members", members, "gathering", gathering_object(w),
                  "run", w->has_run ? run : NULL, "timers", uv_metrics_timers());
    json_dumpf(all, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
    putchar('\n');
    json_decref(all);
}

/* ---- Printing the table ---- */

/* Writes the round and the number of rounds, such as "764/12500", or "-" if the peer has no run
 * yet. */
static const char *rounds_of(char out[CMD_PROGRESS_TEXT], const struct wire_status *s)
{
    if (s->n_rounds == 0)
        return strcpy(out, "-");
    snprintf(out, CMD_PROGRESS_TEXT, "%6llu/%-6llu", (unsigned long long)s->round,
             (unsigned long long)s->n_rounds);
    return out;
}

static void print_row(const struct cmd_observe *w, const struct cmd_observed *m)
{
    char a[CMD_PROGRESS_TEXT], b[CMD_PROGRESS_TEXT], c[CMD_PROGRESS_TEXT], d[CMD_PROGRESS_TEXT],
        e[CMD_PROGRESS_TEXT], age[CMD_PROGRESS_TEXT], r[CMD_PROGRESS_TEXT];
    const struct wire_status *s = &m->status;
    printf("%-16s %-11s %-21s ", m->known ? m->record.name : "?", state_of(m),
           m->record.n_addresses ? m->record.address[0] : "-");
    if (m->answered) {
        printf("%-9s %13s %-8s %7llu %-8s %-8s %-24s %-16s %-9s %-9s",
               cmd_progress_phase(figure_phase((enum node_phase)s->phase, s->holds), s->round,
                                  s->n_rounds),
               rounds_of(r, s), cmd_progress_number(age, "%.1f s", s->age_s),
               (unsigned long long)s->rounds_skipped, cmd_progress_number(a, "%.4f", s->loss),
               cmd_progress_percent(b, s->accuracy),
               cmd_progress_drift_aged(c, s->relative_drift, s->drift_round, s->drift_age),
               s->codec[0] != '\0' ? s->codec : "-", cmd_progress_bytes(d, s->bytes_sent),
               cmd_progress_bytes(e, s->bytes_received));
        for (uint32_t i = 0; i < s->n_edges; i++) {
            printf("%s%s", i ? "," : " ", name_of(w, s->edges[i].id));
            if (s->edges[i].state != EDGE_OPEN)
                printf("(%s)", uv_metrics_edge(s->edges[i].state));
        }
    }
    putchar('\n');
}

/* Prints a line for each member that cannot be called at its announced addresses. */
static void print_addresses(const struct cmd_observe *w)
{
    for (uint32_t i = 0; i < w->n; i++) {
        const struct cmd_observed *m = &w->member[i];
        if (!m->called || m->call == NODE_WHY_UNKNOWN)
            continue;
        printf("%s cannot be called from here at", m->record.name);
        for (uint32_t k = 0; k < m->record.n_addresses; k++)
            printf("%s %s", k > 0 ? "," : "", m->record.address[k]);
        printf(", its announced address: %s\n", connection_diagnostics_why(m->call));
    }
}

/* Prints a summary of the cluster in two or three lines. --watch shows the same summary. */
static void print_head(const struct cmd_observe *w)
{
    static struct watch_member member[WIRE_MEMBERS_MAX];
    char run[CMD_STATUS_RUN_MAX];
    uint64_t now = uv_hrtime();
    for (uint32_t i = 0; i < w->n; i++)
        cmd_status_member(&member[i], &w->member[i], now);
    cmd_status_run(run, w);
    struct watch_facts f = {
        .member = member, .n = w->n, .min_peers = w->has_run ? w->run.min_peers : 0, .run = run};
    watch_head(stdout, &f, 0, "\n");
    putchar('\n');
}

int cmd_status(const struct options *o)
{
    static struct cmd_observe w;
    bool watch = options_flag(o, "watch");
    if (!watch && (options_given(o, "interval") || options_given(o, "count")))
        return cmd_fail(o, CMD_USAGE, "--%s needs --watch",
                        options_given(o, "interval") ? "interval" : "count");
    if (watch && options_flag(o, "json"))
        return cmd_fail(o, CMD_USAGE, "--json and --watch exclude each other");
    if (watch)
        return cmd_status_watch(o);
    int code = cmd_observe(&w, o);
    if (code == CMD_OK && options_flag(o, "json")) {
        print_json(&w);
    } else if (code == CMD_OK) {
        print_head(&w);
        printf("%-16s %-11s %-21s %-9s %13s %-8s %7s %-8s %-8s %-24s %-16s %-9s %-9s %s\n", "name",
               "state", "address", "phase", "round", "age", "skipped", "loss", "accuracy",
               "relative drift", "codec", "sent", "received", "neighbours");
        for (uint32_t i = 0; i < w.n; i++)
            print_row(&w, &w.member[i]);
        print_addresses(&w);
    }
    cmd_observe_close(&w);
    int flushed = cmd_finish(o);
    return code != CMD_OK ? code : flushed;
}
