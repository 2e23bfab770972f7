/* peer/run_log/monitor.c -- fills the snapshots that the HTTP server (peer/http) shows, from node,
 * driver and run log. */
#include "peer/run_log/monitor.h"

#include "peer/http/snapshot_graph.h"
#include "peer/secure/hash.h"
#include "peer/uv/accept.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

enum { EVERY_MS = 1000 };

/* ---- The address of the HTTP server ---- */

int diary_monitor_split(const char *given, char host[UV_RESOLVE_HOST_MAX + 1], uint16_t *port)
{
    char text[DIARY_MONITOR_ADDRESS];
    bool bare = given[0] != '\0' && strspn(given, "0123456789") == strlen(given);
    const char *before = bare ? "127.0.0.1:" : given[0] == ':' ? "127.0.0.1" : "";
    int n = snprintf(text, sizeof text, "%s%s", before, given);
    return n < (int)sizeof text ? uv_resolve_split(text, true, host, port) : -EINVAL;
}

static int look_up(const char *given, struct sockaddr_storage *out, socklen_t *n,
                   char error[DIARY_MONITOR_ERROR])
{
    char host[UV_RESOLVE_HOST_MAX + 1], service[8];
    uint16_t port;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *found;
    if (diary_monitor_split(given, host, &port) < 0) {
        snprintf(error, DIARY_MONITOR_ERROR, "--metrics: found '%.80s', expected PORT or HOST:PORT",
                 given);
        return -EINVAL;
    }
    snprintf(service, sizeof service, "%u", (unsigned)port);
    int wrong = getaddrinfo(host, service, &hints, &found);
    if (wrong != 0) {
        snprintf(error, DIARY_MONITOR_ERROR, "--metrics: cannot look up '%.80s': %s", host,
                 gai_strerror(wrong));
        return -EINVAL;
    }
    memcpy(out, found->ai_addr, found->ai_addrlen);
    *n = found->ai_addrlen;
    freeaddrinfo(found);
    return 0;
}

int diary_monitor_try(const char *given, char error[DIARY_MONITOR_ERROR])
{
    struct sockaddr_storage a;
    union uv_address address = {0};
    socklen_t n;
    int err = look_up(given, &a, &n, error);
    if (err < 0)
        return err;
    assert(n <= sizeof address);
    memcpy(&address, &a, n);
    err = uv_accept_try(&address);
    if (err < 0)
        snprintf(error, DIARY_MONITOR_ERROR, "--metrics: cannot listen on %.80s: %s", given,
                 uv_strerror(err));
    return err;
}

/* Adds the host names under which operators may reach this peer: those in the options, and the
 * machine's host name. */
static void add_hosts(struct hosts *h, const char *given, const struct node_config *c)
{
    char host[UV_RESOLVE_HOST_MAX + 1];
    size_t n = sizeof host;
    uint16_t port;
    if (diary_monitor_split(given, host, &port) == 0)
        hosts_add(h, host);
    n = sizeof host;
    if (uv_os_gethostname(host, &n) == 0)
        hosts_add(h, host);
    for (uint32_t i = 0; i < c->n_advertise; i++)
        hosts_add(h, c->advertise[i]);
    for (uint32_t i = 0; i < c->n_bootstrap; i++)
        hosts_add(h, c->bootstrap[i]);
}

int diary_monitor_open(struct diary_monitor *m, const char *given, const struct run_log *diary,
                       const struct node_config *c, char error[DIARY_MONITOR_ERROR])
{
    struct hosts hosts = {.n = 0};
    char host[UV_RESOLVE_TEXT], at[UV_RESOLVE_TEXT + 16], text[2 * sizeof at + 64];
    char why[SERVER_ERROR_MAX];
    struct sockaddr_storage a;
    socklen_t n;
    *m = (struct diary_monitor){.diary = diary, .id = c->id};
    if (given == NULL)
        return 0;
    int err = look_up(given, &a, &n, error);
    if (err < 0)
        return err;
    add_hosts(&hosts, given, c);
    err = server_open(&m->server, (const struct sockaddr *)&a, n, &hosts, why);
    if (err < 0) {
        snprintf(error, DIARY_MONITOR_ERROR, "--metrics: cannot listen on %.80s: %s%s", given, why,
                 err == -EADDRINUSE ? "; choose a free port with --metrics" : "");
        return err;
    }
    uv_resolve_host((const struct sockaddr *)&a, host);
    bool six = strchr(host, ':') != NULL;
    snprintf(at, sizeof at, "%s%s%s:%u", six ? "[" : "", host, six ? "]" : "",
             (unsigned)server_port(m->server));
    snprintf(text, sizeof text, "a live page is at http://%s/, figures are at http://%s/metrics",
             at, at);
    diary->note(diary->self, NOTE_INFO, "monitor", text);
    return 0;
}

/* ---- Filling a snapshot ---- */

static void fill_run(struct snapshot *s, const struct run *run)
{
    uint8_t hash[HASH_BYTES];
    s->figures.has_run = run != NULL;
    if (run == NULL)
        return;
    size_t n = run_text(run, s->run);
    hash_128(s->run, n, hash);
    snapshot_hex(s->run_id, hash, SNAPSHOT_RUN_ID / 2);
    s->figures.min_peers = run->min_peers;
    s->figures.final_drift = run->final_drift;
}

static void fill_members(struct snapshot *s, const struct node *n)
{
    size_t count = node_members(n);
    memset(s->in_state, 0, sizeof s->in_state);
    s->n_members = 0;
    for (size_t i = 0; i < count && s->n_members < WIRE_MEMBERS_MAX; i++) {
        struct node_member m;
        struct snapshot_member *out = &s->member[s->n_members++];
        node_member(n, i, &m);
        *out = (struct snapshot_member){.state = m.state,
                                        .vertex = SNAPSHOT_NO_VERTEX,
                                        .own = m.own,
                                        .connected = m.connected,
                                        .has_round = m.has_round,
                                        .round = m.round};
        snprintf(out->name, sizeof out->name, "%s", m.name);
        snapshot_hex(out->id, m.id, WIRE_ID_BYTES);
        s->in_state[m.state]++;
    }
}

/* Fills in the graph of the topology. It has the same vertices, topology and seed as the graph from
 * which this node takes its own edges. */
static void fill_graph(struct diary_monitor *m, struct snapshot *s, const struct node *n)
{
    uint32_t at[WIRE_MEMBERS_MAX];
    const struct run *run = node_run(n);
    size_t count = node_vertices(n, at);
    for (size_t v = 0; v < count && run != NULL; v++)
        s->member[at[v]].vertex = (uint16_t)v;
    snapshot_graph_make(&m->graph, node_topology(n), (uint32_t)count, run != NULL ? run->seed : 0);
    s->graph = m->graph;
}

static const char *name_of(const struct snapshot *s, const char *id)
{
    for (uint32_t i = 0; i < s->n_members; i++)
        if (strcmp(s->member[i].id, id) == 0)
            return s->member[i].name;
    return "";
}

static void fill_edges(struct snapshot *s, const struct wire_status *status, struct uv_driver *d)
{
    const struct node *n = uv_driver_node(d);
    s->n_edges = status->n_edges;
    for (uint32_t i = 0; i < status->n_edges; i++) {
        const struct wire_status_edge *e = &status->edges[i];
        struct snapshot_edge *out = &s->edge[i];
        *out = (struct snapshot_edge){
            .state = e->state, .round = e->round, .resets = e->resets, .gamma = (double)e->gamma};
        snapshot_hex(out->id, e->id, WIRE_ID_BYTES);
        snprintf(out->name, sizeof out->name, "%s", name_of(s, out->id));
        node_neighbour(n, i, &out->neighbour);
        uv_driver_traffic(d, e->id, &out->bytes_sent, &out->bytes_received);
    }
}

static void fill_refusals(struct snapshot *s, const struct node *n, const struct uv_driver *d)
{
    const char *what;
    s->n_violations = s->n_refused = 0;
    while (s->n_violations < SNAPSHOT_KINDS
           && (what = node_violation(n, s->n_violations, &s->violation[s->n_violations].n)) != NULL)
        s->violation[s->n_violations++].what = what;
    for (int kind = 0; kind < REJECTION_LOG_KINDS; kind++)
        s->refused[s->n_refused++] =
            (struct snapshot_count){.what = rejection_log_word((enum rejection_log_kind)kind),
                                    .n = uv_driver_refused(d, (enum rejection_log_kind)kind)};
}

static void fill_files(struct figure_values *v, const struct run_log *r, const struct uv_driver *d)
{
    struct statvfs disk;
    v->checkpoints = uv_driver_checkpoints(d, &v->checkpoint_s);
    v->checkpoints_failed = uv_driver_unkept(d);
    v->lines_missing = diary_lines_missing(&r->lines);
    v->model_unstored = r->unstored;
    v->has_disk_free = r->dir != NULL && statvfs(r->dir, &disk) == 0;
    v->disk_free_bytes = v->has_disk_free ? (uint64_t)disk.f_bavail * (uint64_t)disk.f_frsize : 0;
}

static void fill(struct diary_monitor *m, struct snapshot *s)
{
    struct wire_status status;
    struct uv_driver *d = m->driver;
    const struct node *n = uv_driver_node(d);
    struct figure_values *v = &s->figures;
    figure_init(v);
    node_progress(n, &v->node);
    node_status(n, &status);
    uv_driver_totals(d, &v->node.bytes_sent, &v->node.bytes_received);
    v->node.strangers = uv_driver_counts(d)->strangers;
    snprintf(s->name, sizeof s->name, "%s", m->diary->name);
    snapshot_hex(s->id, m->id, WIRE_ID_BYTES);
    memcpy(s->codec, status.codec, sizeof s->codec);
    v->age_s = status.age_s;
    fill_run(s, node_run(n));
    fill_members(s, n);
    fill_edges(s, &status, d);
    fill_graph(m, s, n);
    node_wait(n, &s->wait);
    fill_refusals(s, n, d);
    fill_files(v, m->diary, d);
    history_copy(&s->history, &m->history);
    v->time_s = run_log_seconds(m->diary);
    s->taken_us = uv_worker_clock_us();
}

/* Publishes a new snapshot, once per second. */
static void on_tick(uv_timer_t *timer)
{
    struct diary_monitor *m = timer->data;
    fill(m, server_blank(m->server));
    server_publish(m->server);
}

/* ---- Starting and stopping ---- */

/* The timer is unreferenced, so that it does not keep the event loop running on its own. */
void diary_monitor_start(struct diary_monitor *m, uv_loop_t *loop, struct uv_driver *d)
{
    if (m->server == NULL)
        return;
    m->driver = d;
    m->ticks = true;
    uv_timer_init(loop, &m->timer);
    m->timer.data = m;
    uv_timer_start(&m->timer, on_tick, 0, EVERY_MS);
    uv_unref((uv_handle_t *)&m->timer);
}

void diary_monitor_round(struct diary_monitor *m, const struct node_progress *p, double time_s)
{
    if (m->server == NULL)
        return;
    history_add(&m->history, &(struct history_point){.round = p->round,
                                                     .settle_rounds = p->settle_rounds,
                                                     .time_s = time_s,
                                                     .loss = p->loss,
                                                     .accuracy = p->evaluated ? p->accuracy : NAN,
                                                     .accuracy_round = p->accuracy_round,
                                                     .relative_drift = p->relative_drift,
                                                     .drift_round = p->drift_round,
                                                     .bytes_sent = p->bytes_sent});
}

void diary_monitor_stop(struct diary_monitor *m)
{
    if (m->ticks)
        uv_close((uv_handle_t *)&m->timer, NULL);
    m->ticks = false;
}

void diary_monitor_close(struct diary_monitor *m)
{
    server_close(m->server);
    m->server = NULL;
}
