/* peer/http/status.c -- builds the JSON object of /status.json. */
#include "peer/http/status.h"

#include "peer/http/health.h"
#include "peer/uv/metrics.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS = 9 };

static json_t *text_or_null(const char *text)
{
    return text != NULL && text[0] != '\0' ? json_string(text) : json_null();
}

static void set(json_t *j, const char *name, json_t *value)
{
    (void)json_object_set_new(j, name, value);
}

/* ---- Lists of members and edges ---- */

/* Makes the list of members. Only this peer's loss is given: members do not send their losses to
 * each other. */
static json_t *members_of(const struct snapshot *s)
{
    json_t *all = json_array();
    for (uint32_t i = 0; i < s->n_members; i++) {
        const struct snapshot_member *m = &s->member[i];
        bool own = m->own && s->figures.has_run;
        json_t *round = own            ? uv_metrics_whole(s->figures.node.round)
                        : m->has_round ? uv_metrics_whole(m->round)
                                       : json_null();
        json_t *vertex =
            m->vertex != SNAPSHOT_NO_VERTEX ? uv_metrics_whole(m->vertex) : json_null();
        json_array_append_new(
            all, json_pack("{s:s, s:s, s:s, s:b, s:b, s:o, s:o, s:o}", "name", m->name, "id", m->id,
                           "state", snapshot_member_state(m->state), "self", m->own, "connected",
                           m->connected, "round", round, "loss",
                           m->own ? uv_metrics_figure(s->figures.node.loss) : json_null(), "vertex",
                           vertex));
    }
    return all;
}

static json_t *edges_of(const struct snapshot *s)
{
    json_t *all = json_array();
    for (uint32_t i = 0; i < s->n_edges; i++) {
        const struct snapshot_edge *e = &s->edge[i];
        const struct node_neighbour *b = &e->neighbour;
        json_array_append_new(
            all,
            json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name", e->name, "id",
                      e->id, "state", uv_metrics_edge(e->state), "round",
                      uv_metrics_whole(e->round), "gamma", uv_metrics_figure(e->gamma), "resets",
                      uv_metrics_whole(e->resets), "bytes_sent", uv_metrics_whole(e->bytes_sent),
                      "bytes_received", uv_metrics_whole(e->bytes_received), "neighbour_round",
                      b->has_beat ? uv_metrics_whole(b->beat) : json_null(), "neighbour_busy_s",
                      uv_metrics_figure(b->busy_s)));
    }
    return all;
}

static const char *name_of(const struct snapshot *s, const char *id)
{
    for (uint32_t i = 0; i < s->n_members; i++)
        if (strcmp(s->member[i].id, id) == 0)
            return s->member[i].name;
    return NULL;
}

/* Returns what the peer waits for. JSON null: it does not wait. */
static json_t *waiting_of(const struct snapshot *s)
{
    const struct node_wait *w = &s->wait;
    const char *what = snapshot_wait(w->what);
    bool counts = w->what == NODE_WAITS_MEMBERS || w->what == NODE_WAITS_QUORUM;
    bool neighbour = w->what == NODE_WAITS_NEIGHBOUR, others = w->what == NODE_WAITS_OTHERS;
    char id[SNAPSHOT_ID + 1];
    if (what == NULL)
        return json_null();
    snapshot_hex(id, w->id, WIRE_ID_BYTES);
    bool named = neighbour || (others && name_of(s, id) != NULL);
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "for", what, "since_s",
                     uv_metrics_figure(w->since_s), "name",
                     named ? text_or_null(name_of(s, id)) : json_null(), "id",
                     named ? json_string(id) : json_null(), "round",
                     neighbour ? uv_metrics_whole(w->beat) : json_null(), "limit_s",
                     others ? uv_metrics_figure(w->limit_s) : json_null(), "have",
                     counts ? uv_metrics_whole(w->have) : json_null(), "need",
                     counts ? uv_metrics_whole(w->need) : json_null());
}

static json_t *counts_of(const struct snapshot_count *count, uint32_t n)
{
    json_t *all = json_object();
    for (uint32_t i = 0; i < n; i++)
        set(all, count[i].what, uv_metrics_whole(count[i].n));
    return all;
}

/* ---- The graph of the peers ---- */

/* Appends the graph. Edges are pairs of vertices, and the members list says which member is which
 * vertex. The topology spec needs no escaping, because a canonical spec has no character that JSON
 * escapes. */
static void add_graph(struct text *t, const struct snapshot_graph *g)
{
    if (g->topology[0] == '\0') {
        text_add(t, ",\"graph\":null");
        return;
    }
    text_add(t, ",\"graph\":{\"topology\":\"%s\",\"vertices\":%" PRIu32, g->topology,
             g->n_vertices);
    text_add(t, ",\"n_edges\":%" PRIu32 ",\"edges\":%s", g->n_edges, g->whole ? "[" : "null}");
    for (uint32_t i = 0; g->whole && i < g->n_edges; i++)
        text_add(t, "%s[%d,%d]", i > 0 ? "," : "", g->edge[i][0], g->edge[i][1]);
    if (g->whole)
        text_add(t, "]}");
}

/* ---- The history of figures ---- */

static void add_real(struct text *t, const char *name, double x)
{
    if (isfinite(x))
        text_add(t, ",\"%s\":%.*g", name, DIGITS, x);
    else
        text_add(t, ",\"%s\":null", name);
}

static void add_point(struct text *t, const char *before, const struct history_point *p)
{
    text_add(t, "%s{\"round\":%" PRIu64 ",\"settle_rounds\":%" PRIu64, before, p->round,
             p->settle_rounds);
    add_real(t, "time_s", p->time_s);
    add_real(t, "loss", p->loss);
    add_real(t, "accuracy", p->accuracy);
    if (isfinite(p->accuracy))
        text_add(t, ",\"accuracy_round\":%" PRIu64, p->accuracy_round);
    else
        text_add(t, ",\"accuracy_round\":null");
    add_real(t, "relative_drift", p->relative_drift);
    if (isfinite(p->relative_drift))
        text_add(t, ",\"drift_round\":%" PRIu64, p->drift_round);
    else
        text_add(t, ",\"drift_round\":null");
    text_add(t, ",\"bytes_sent\":%" PRIu64 "}", p->bytes_sent);
}

static void update_points(struct status_history *h, const struct history *from)
{
    if (h->thinned != from->thinned || h->n > from->n || h->points.failed) {
        text_clear(&h->points);
        h->n = 0;
        h->thinned = from->thinned;
    }
    for (; h->n < from->n; h->n++)
        add_point(&h->points, h->n > 0 ? "," : "", &from->point[h->n]);
}

static void add_history(struct text *t, struct status_history *h, const struct history *from)
{
    const struct history_point *newest = history_newest(from);
    update_points(h, from);
    t->failed |= h->points.failed;
    text_add(t, ",\"history\":[");
    if (h->n > 0)
        text_add_bytes(t, h->points.p, h->points.n);
    if (newest != NULL)
        add_point(t, h->n > 0 ? "," : "", newest);
    text_add(t, "]");
}

/* ---- The whole JSON object ---- */

/* Sets name, run and health of the peer, which are known before the first snapshot. */
static void set_standing(json_t *j, const struct snapshot *s, int64_t now_us)
{
    char text[HEALTH_TEXT];
    set(j, "healthy", json_boolean(health_live(s, now_us, text)));
    set(j, "ready", json_boolean(health_ready(s, now_us, text)));
    set(j, "standing", json_string(text));
    set(j, "name", text_or_null(s->name));
    set(j, "id", text_or_null(s->id));
    set(j, "version", json_string(HEARSAY_VERSION));
    set(j, "run_id", s->figures.has_run ? json_string(s->run_id) : json_null());
    set(j, "run", s->figures.has_run ? json_string(s->run) : json_null());
    set(j, "min_peers", s->figures.has_run ? uv_metrics_whole(s->figures.min_peers) : json_null());
}

static json_t *object_of(const struct snapshot *s, int64_t now_us)
{
    bool begun = s->number > 0;
    struct figure_values v;
    snapshot_figures(&v, s, now_us);
    json_t *j = begun ? uv_metrics_object(&v) : json_object();
    set_standing(j, s, now_us);
    set(j, "snapshot_age_s", uv_metrics_figure(begun ? v.snapshot_age_s : (double)NAN));
    if (begun) {
        (void)uv_metrics_add(j, &v, FIGURE_STATUS_JSON);
        set(j, "waiting", waiting_of(s));
    }
    set(j, "violations_by_reason", counts_of(s->violation, s->n_violations));
    set(j, "refused_connections", counts_of(s->refused, s->n_refused));
    set(j, "members", members_of(s));
    /* The list `edges` has every edge, open or not, as in the output of `hearsay status`. The key
     * open_edges gives the number of open edges only. */
    set(j, "edges", edges_of(s));
    set(j, "timers", uv_metrics_timers());
    return j;
}

void status_write(struct text *t, struct status_history *h, const struct snapshot *s,
                  int64_t now_us)
{
    json_t *j = object_of(s, now_us);
    char *object = j != NULL ? json_dumps(j, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS)) : NULL;
    json_decref(j);
    t->failed |= object == NULL;
    /* The object is written without its closing brace, because more keys follow. */
    if (object != NULL)
        text_add(t, "%.*s", (int)strlen(object) - 1, object);
    add_graph(t, &s->graph);
    add_history(t, h, &s->history);
    text_add(t, "}\n");
    free(object);
}
