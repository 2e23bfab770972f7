/* peer/sim/faults.c -- fault injection: kills, stops, cuts and resets, and their effect on
 * sessions. */
#include "peer/sim/faults.h"

#include "peer/sim/state.h"

#include <assert.h>

/* ---- processes ---- */

void sim_end_peer(struct sim_world *w, struct sim_peer *p, bool clean)
{
    p->ended = true;
    w->n_ended++;
    for (uint32_t k = 0; k < w->n_links; k++) {
        if (w->links[k].end[0] != p->index && w->links[k].end[1] != p->index)
            continue;
        if (w->config.sessions)
            session_drop_end(w, k, sim_side(&w->links[k], p), clean);
        else
            network_break(w, k, clean);
    }
}

/* Queues the events that waited while the peer was stopped or its worker hung. The peer gets them
 * at the present time, in their old order. */
static void let_go(struct sim_world *w, struct sim_peer *p)
{
    struct sim_queue was = p->late;
    p->late = (struct sim_queue){0};
    for (size_t i = 0; i < was.n; i++) {
        was.at[i].at_us = w->now_us;
        sim_heap_push(&w->heap, was.at[i]);
    }
    was.n = 0;
    sim_queue_close(&was);
}

static void kill_peer(struct sim_world *w, struct sim_peer *p)
{
    if (p->node == NULL)
        return;
    if (!p->ended)
        sim_end_peer(w, p, false);
    sim_close_node(w, p);
    checkpoints_lose_write(p);
    p->stopped = p->hung = false;
    let_go(w, p);
}

void sim_kill(struct sim_world *w, uint32_t peer)
{
    kill_peer(w, &w->peers[peer]);
}

void sim_power_off(struct sim_world *w, uint32_t peer)
{
    assert(w->config.sessions);
    w->peers[peer].off = true;
    kill_peer(w, &w->peers[peer]);
}

int sim_restart(struct sim_world *w, uint32_t peer)
{
    struct sim_peer *p = &w->peers[peer];
    assert(p->node == NULL);
    p->boot++;
    p->sent = p->received = 0;
    p->off = false;
    w->n_ended--;
    int err = sim_start_peer(w, p);
    session_heal(w);
    return err;
}

int sim_restart_as_new(struct sim_world *w, uint32_t peer)
{
    sim_draw_id(&w->peers[peer]);
    checkpoints_wipe(&w->peers[peer]);
    return sim_restart(w, peer);
}

void sim_ask_to_leave(struct sim_world *w, uint32_t peer)
{
    if (sim_lives(&w->peers[peer]))
        sim_post(w, &w->peers[peer], (struct sim_event){.at_us = w->now_us, .type = NODE_STOP});
}

/* ---- loops and workers ---- */

void sim_stop(struct sim_world *w, uint32_t peer, bool stopped)
{
    struct sim_peer *p = &w->peers[peer];
    p->stopped = stopped && sim_lives(p);
    if (!p->stopped)
        let_go(w, p);
}

void sim_hang(struct sim_world *w, uint32_t peer, bool hung)
{
    struct sim_peer *p = &w->peers[peer];
    p->hung = hung && sim_lives(p);
    if (!p->hung && !p->stopped)
        let_go(w, p);
}

void sim_slow(struct sim_world *w, uint32_t peer, double times)
{
    w->peers[peer].fault = times;
}

void sim_set_clock(struct sim_world *w, uint32_t peer, double ppm)
{
    assert(w->n_events == 0 && ppm >= -1e5 && ppm <= 1e5);
    w->peers[peer].clock_error = ppm * 1e-6;
}

void sim_fill_disk(struct sim_world *w, uint32_t peer, bool full)
{
    w->peers[peer].full = full;
}

/* ---- paths and sessions ---- */

void sim_lose(struct sim_world *w, double rate)
{
    w->config.cut_rate = rate;
}

void sim_cut(struct sim_world *w, uint32_t from, uint32_t to, bool cut)
{
    uint16_t *c = &w->cut[from * w->config.n_peers + to];
    assert(w->config.sessions && (cut || *c > 0));
    *c = (uint16_t)(cut ? *c + 1 : *c - 1);
    if (*c == 0)
        session_heal(w);
}

void sim_reset(struct sim_world *w, uint32_t a, uint32_t b, int64_t a_us, int64_t b_us)
{
    assert(w->config.sessions);
    for (uint32_t k = 0; k < w->n_links; k++) {
        struct sim_link *l = &w->links[k];
        bool forth = l->end[0] == a && l->end[1] == b, back = l->end[0] == b && l->end[1] == a;
        if ((!forth && !back) || (l->state[0] == SIM_END_GONE && l->state[1] == SIM_END_GONE))
            continue;
        l->hole |= a_us < 0 || b_us < 0;
        if (a_us >= 0)
            session_reset_end(w, k, forth ? 0 : 1, a_us);
        if (b_us >= 0)
            session_reset_end(w, k, forth ? 1 : 0, b_us);
    }
}
