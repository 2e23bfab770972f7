/* peer/sim/session.c -- the simulated network with sessions like TCP: an end is informed of the
 * start and the end of a session only by packets that arrive. */
#include "peer/sim/state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool path_cut(const struct sim_world *w, uint32_t from, uint32_t to)
{
    return w->peers[from].off || w->peers[to].off || w->cut[from * w->config.n_peers + to] > 0;
}

bool session_blocked(const struct sim_world *w, const struct sim_link *l, int from_side)
{
    return l->hole || path_cut(w, l->end[from_side], l->end[1 - from_side]);
}

/* ---- transport from one end to the other ---- */

static void hold(struct sim_world *w, int side, struct sim_event e)
{
    struct sim_link *l = &w->links[e.link];
    sim_queue_add(&w->held, e);
    if (l->unacked_us[side] != 0)
        return;
    l->unacked_us[side] = w->now_us > 0 ? w->now_us : 1;
    sim_heap_push(&w->heap, (struct sim_event){.at_us = w->now_us + SIM_UNACKED_US,
                                               .peer = l->end[side],
                                               .boot = l->boot[side],
                                               .kind = SIM_UNACKED,
                                               .link = e.link});
}

/* Returns the time in microseconds at which a line has sent n more bytes. The line is a link, or
 * the uplink or downlink of a host. The line is busy until free_us, and sends bytes_per_s bytes per
 * second (0: no limit). */
static int64_t through(int64_t now_us, int64_t free_us, double bytes_per_s, size_t n)
{
    int64_t from = free_us > now_us ? free_us : now_us;
    return bytes_per_s > 0 ? from + (int64_t)(1e6 * (double)n / bytes_per_s) : from;
}

/* Returns the largest rate of a TCP connection on a path with loss, in bytes per second:
 * segment / round trip * sqrt(3/2 / loss) (Mathis, Semke, Mahdavi, Ott 1997, eq. 3). */
static double lossy_rate(const struct sim_path *path)
{
    double trip_s = 1e-6 * (double)(2 * path->latency_us + path->jitter_us);
    if (path->loss <= 0 || trip_s <= 0)
        return path->bytes_per_s;
    double rate = SIM_SEGMENT / trip_s * sqrt(1.5 / path->loss);
    rate = rate > SIM_LEAST_BYTES_PER_S ? rate : SIM_LEAST_BYTES_PER_S;
    return path->bytes_per_s > 0 && path->bytes_per_s < rate ? path->bytes_per_s : rate;
}

/* Returns the additional delay of a message, in microseconds, if its last segment is lost at
 * random. TCP detects such a loss only by a timer, and each further loss doubles the timeout. 0:
 * the segment is not lost. */
static int64_t resend_us(struct sim_world *w, const struct sim_path *path)
{
    int64_t us = 0, timer = SIM_RESEND_US + 2 * path->latency_us + path->jitter_us;
    for (; path->loss > 0 && us < SIM_UNACKED_US && rng_unit(&w->rng) < path->loss; timer *= 2)
        us += timer;
    return us;
}

/* Sends an event to the other end of the link, or stores it in w->held if the path is cut. The
 * event arrives after its transmission time and the latency of the path. A control message may
 * overtake bulk messages; otherwise messages arrive in order. */
static void transmit(struct sim_world *w, int side, struct sim_event e)
{
    struct sim_link *l = &w->links[e.link];
    e.side = side;
    e.peer = l->end[1 - side];
    e.boot = l->boot[1 - side];
    if (session_blocked(w, l, side)) {
        hold(w, side, e);
        return;
    }
    struct sim_peer *from = &w->peers[l->end[side]], *to = &w->peers[e.peer];
    struct sim_path path;
    sim_path(w, from->index, to->index, &path);
    size_t n = sim_line_bytes(&path, e.n_bytes);
    int64_t free_us = through(w->now_us, l->wire_us[side], lossy_rate(&path), n);
    if (path.uplink > 0) {
        from->up_us = through(w->now_us, from->up_us, path.uplink, n);
        free_us = free_us > from->up_us ? free_us : from->up_us;
    }
    if (path.downlink > 0) {
        to->down_us = through(w->now_us, to->down_us, path.downlink, n);
        free_us = free_us > to->down_us ? free_us : to->down_us;
    }
    l->wire_us[side] = free_us;
    e.at_us = free_us + sim_lag(w, &path) + resend_us(w, &path);
    sim_hear(w, &w->peers[e.peer], e.link, w->now_us, e.at_us);
    bool control = e.kind == SIM_DATA && !e.flag;
    int64_t clear = l->clear_us[side];
    if (!control && l->bulk_us[side] > clear)
        clear = l->bulk_us[side];
    if (e.at_us < clear)
        e.at_us = clear;
    if (control)
        l->clear_us[side] = e.at_us;
    else
        l->bulk_us[side] = e.at_us;
    if (e.kind != SIM_DATA)
        l->clear_us[side] = e.at_us;
    sim_heap_push(&w->heap, e);
}

static void send_fin(struct sim_world *w, uint32_t link, int side, bool clean)
{
    enum sim_end other = w->links[link].state[1 - side];
    if (other == SIM_END_UP || other == SIM_END_DRAINING || other == SIM_END_NONE)
        transmit(w, side, (struct sim_event){.kind = SIM_FIN, .link = link, .flag = clean});
}

void session_heal(struct sim_world *w)
{
    struct sim_queue was = w->held;
    w->held = (struct sim_queue){0};
    for (size_t i = 0; i < was.n; i++) {
        struct sim_link *l = &w->links[was.at[i].link];
        int side = was.at[i].side;
        if (!session_blocked(w, l, side))
            l->unacked_us[side] = 0;
        transmit(w, side, was.at[i]);
    }
    free(was.at);
}

/* Discards the messages from one end of a link that are held because the path is cut. */
static void drop_held(struct sim_world *w, uint32_t link, int side)
{
    size_t n = 0;
    for (size_t i = 0; i < w->held.n; i++) {
        struct sim_event *e = &w->held.at[i];
        if (e->link == link && e->side == side)
            free(e->bytes);
        else
            w->held.at[n++] = *e;
    }
    w->held.n = n;
    w->links[link].unacked_us[side] = 0;
}

/* ---- ends ---- */

static bool has_end(const struct sim_world *w, const struct sim_link *l, int side)
{
    const struct sim_peer *p = &w->peers[l->end[side]];
    return sim_lives(p) && p->boot == l->boot[side]
           && (l->state[side] == SIM_END_UP || l->state[side] == SIM_END_DRAINING);
}

static void tell_down(struct sim_world *w, uint32_t link, int side, bool clean)
{
    w->links[link].state[side] = SIM_END_GONE;
    sim_deliver(w, &w->peers[w->links[link].end[side]],
                &(struct sim_event){.type = NODE_LINK_DOWN, .link = link, .flag = clean});
}

void session_drop_end(struct sim_world *w, uint32_t link, int side, bool clean)
{
    struct sim_link *l = &w->links[link];
    if (l->state[side] == SIM_END_GONE || l->state[side] == SIM_END_NONE)
        return;
    l->state[side] = SIM_END_GONE;
    if (w->peers[l->end[side]].off)
        drop_held(w, link, side);
    else
        send_fin(w, link, side, clean);
}

static void soon(struct sim_world *w, uint32_t link, int side, enum sim_kind kind, int64_t in_us)
{
    sim_heap_push(&w->heap, (struct sim_event){.at_us = w->now_us + in_us,
                                               .peer = w->links[link].end[side],
                                               .boot = w->links[link].boot[side],
                                               .kind = kind,
                                               .link = link});
}

void session_reset_end(struct sim_world *w, uint32_t link, int side, int64_t in_us)
{
    soon(w, link, side, SIM_RESET, in_us);
}

void session_break(struct sim_world *w, uint32_t link)
{
    for (int k = 0; k < 2; k++)
        session_reset_end(w, link, k, 0);
}

void session_hang_up(struct sim_world *w, struct sim_peer *p, uint32_t link, bool violation)
{
    struct sim_link *l = &w->links[link];
    int side = sim_side(l, p);
    if (!has_end(w, l, side) || l->state[side] == SIM_END_DRAINING)
        return;
    l->state[side] = SIM_END_DRAINING;
    soon(w, link, side, SIM_DRAINED, violation ? 0 : SIM_DRAIN_US);
    send_fin(w, link, side, !violation);
}

void session_send(struct sim_world *w, struct sim_peer *p, const struct node_send *s,
                  uint8_t *bytes, size_t n)
{
    struct sim_link *l = &w->links[s->link];
    int side = sim_side(l, p);
    if (!has_end(w, l, side) || l->state[side] != SIM_END_UP) {
        free(bytes);
        return;
    }
    p->sent += sim_socket_bytes(n);
    transmit(w, side,
             (struct sim_event){.kind = SIM_DATA,
                                .type = NODE_RECV,
                                .link = s->link,
                                .flag = s->bulk,
                                .bytes = bytes,
                                .n_bytes = n});
}

/* ---- session start ---- */

void session_dial(struct sim_world *w, struct sim_peer *p, const struct node_dial *d)
{
    struct sim_peer *to = sim_peer_at(w, d->address);
    if (to == NULL || to == p) {
        struct sim_path path;
        sim_path(w, p->index, p->index, &path);
        sim_post(w, p,
                 (struct sim_event){.at_us = w->now_us + 2 * sim_lag(w, &path),
                                    .type = NODE_DIAL_FAILED,
                                    .tag = d->tag,
                                    .flag = true});
        return;
    }
    uint32_t link = sim_new_link(w, (struct sim_link){.end = {p->index, to->index},
                                                      .boot = {p->boot, to->boot},
                                                      .tag = d->tag,
                                                      .dialled_us = w->now_us});
    soon(w, link, 0, SIM_GIVE_UP, SIM_GIVE_UP_US);
    transmit(w, 0, (struct sim_event){.kind = SIM_SYN, .link = link});
}

static void fail_dial(struct sim_world *w, struct sim_peer *p, uint32_t link, bool refused)
{
    struct sim_link *l = &w->links[link];
    if (l->over || l->state[0] != SIM_END_NONE)
        return;
    l->over = true;
    l->state[0] = SIM_END_GONE;
    drop_held(w, link, 0);
    if (sim_lives(p) && p->boot == l->boot[0])
        sim_deliver(w, p,
                    &(struct sim_event){.type = NODE_DIAL_FAILED, .tag = l->tag, .flag = refused});
}

static void take_syn(struct sim_world *w, struct sim_peer *p, struct sim_event *e)
{
    struct sim_link *l = &w->links[e->link];
    if (p->off)
        return;
    l->boot[1] = p->boot;
    memcpy(l->id[1], p->id, WIRE_ID_BYTES);
    bool listens = sim_lives(p);
    if (listens && w->now_us - l->dialled_us >= SIM_GIVE_UP_US)
        return;
    transmit(w, 1, (struct sim_event){.kind = listens ? SIM_REPLY : SIM_REFUSED, .link = e->link});
}

/* Marks the session up at one end and queues LINK_UP for its node. The state changes at once,
 * because a reset from the other end may arrive before the node gets LINK_UP. */
static void go_up(struct sim_world *w, struct sim_peer *p, uint32_t link, int side)
{
    struct sim_link *l = &w->links[link];
    bool in_time = w->now_us - l->dialled_us < SIM_GIVE_UP_US && !l->over;
    if (!sim_lives(p) || p->boot != l->boot[side] || l->state[side] != SIM_END_NONE || !in_time) {
        /* If the dialling peer was stopped for a time, the answer may arrive after the dial has
         * timed out. The dial then fails. */
        if (side == 0)
            fail_dial(w, p, link, false);
        if (l->state[side] == SIM_END_NONE)
            l->state[side] = SIM_END_GONE;
        send_fin(w, link, side, false);
        return;
    }
    l->state[side] = SIM_END_UP;
    if (side == 0)
        transmit(w, 0, (struct sim_event){.kind = SIM_ACCEPTED, .link = link});
    else
        sim_count_handshake(&w->peers[l->end[0]], p);
    sim_deliver(
        w, p,
        &(struct sim_event){
            .type = NODE_LINK_UP, .link = link, .tag = side == 0 ? l->tag : 0, .flag = side == 0});
}

/* ---- events at an end ---- */

static void take_data(struct sim_world *w, struct sim_peer *p, struct sim_event *e, int side)
{
    struct sim_link *l = &w->links[e->link];
    if (has_end(w, l, side) && l->state[side] == SIM_END_UP)
        sim_deliver(w, p, e);
    else if (l->state[side] != SIM_END_DRAINING && !p->off)
        /* This end has closed the session, so it answers the data with a reset. */
        send_fin(w, e->link, side, false);
}

static void take_fin(struct sim_world *w, struct sim_event *e, int side)
{
    struct sim_link *l = &w->links[e->link];
    bool has = has_end(w, l, side);
    /* The session has ended before the dialled end knew of the start of the session. */
    if (l->state[side] == SIM_END_NONE && side == 1)
        l->state[side] = SIM_END_GONE;
    if (!has)
        return;
    if (l->state[1 - side] == SIM_END_DRAINING && l->state[side] == SIM_END_UP)
        send_fin(w, e->link, side, true);
    tell_down(w, e->link, side, e->flag);
}

static void take_unacked(struct sim_world *w, struct sim_event *e, int side)
{
    struct sim_link *l = &w->links[e->link];
    int64_t since = l->unacked_us[side];
    if (since == 0 || w->now_us - since < SIM_UNACKED_US - 1)
        return;
    drop_held(w, e->link, side);
    if (has_end(w, l, side))
        tell_down(w, e->link, side, false);
}

void session_take(struct sim_world *w, struct sim_peer *p, struct sim_event *e)
{
    int side = sim_side(&w->links[e->link], p);
    switch (e->kind) {
    case SIM_SYN:
        take_syn(w, p, e);
        break;
    case SIM_REPLY:
    case SIM_ACCEPTED:
        go_up(w, p, e->link, side);
        break;
    case SIM_DATA:
        take_data(w, p, e, side);
        break;
    case SIM_FIN:
        take_fin(w, e, side);
        break;
    case SIM_REFUSED:
    case SIM_GIVE_UP:
        fail_dial(w, p, e->link, e->kind == SIM_REFUSED);
        break;
    case SIM_DRAINED:
    case SIM_RESET:
        if (has_end(w, &w->links[e->link], side))
            tell_down(w, e->link, side, e->kind == SIM_DRAINED);
        break;
    case SIM_UNACKED:
        take_unacked(w, e, side);
        break;
    case SIM_FOR_NODE:
        break;
    }
}
