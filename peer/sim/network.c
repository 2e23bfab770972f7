/* peer/sim/network.c -- path latencies, addresses and names for both kinds of network, and the
 * plain network, in which a session is up or down at both ends at once. session.c implements the
 * network with sessions like TCP.
 */
#include "peer/sim/state.h"

#include "peer/secure/channel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void sim_path(struct sim_world *w, uint32_t from, uint32_t to, struct sim_path *path)
{
    *path = (struct sim_path){.latency_us = w->config.latency_us,
                              .jitter_us = w->config.jitter_us,
                              .bytes_per_s = w->config.bytes_per_s};
    if (w->config.path != NULL)
        w->config.path(w->config.self, from, to, path);
}

int64_t sim_lag(struct sim_world *w, const struct sim_path *path)
{
    int64_t j = path->jitter_us;
    return path->latency_us + (j > 0 ? (int64_t)rng_below(&w->rng, (uint64_t)j) : 0);
}

uint64_t sim_socket_bytes(size_t n)
{
    uint64_t records = (n + CHANNEL_PLAIN_MAX - 1) / CHANNEL_PLAIN_MAX;
    return n + records * (CHANNEL_HEADER + 1 + 16);
}

size_t sim_line_bytes(const struct sim_path *path, size_t n)
{
    if (path->headers == 0)
        return n;
    size_t sealed = (size_t)sim_socket_bytes(n);
    size_t segments = sealed > SIM_SEGMENT ? (sealed + SIM_SEGMENT - 1) / SIM_SEGMENT : 1;
    return sealed + segments * path->headers;
}

struct sim_peer *sim_peer_at(struct sim_world *w, const char *address)
{
    unsigned index;
    if (sscanf(address, "peer-%u:1", &index) != 1 || index >= w->config.n_peers)
        return NULL;
    return &w->peers[index];
}

uint32_t sim_new_link(struct sim_world *w, struct sim_link link)
{
    if (w->n_links == w->cap_links) {
        w->cap_links = w->cap_links > 0 ? 2 * w->cap_links : 256;
        w->links = realloc(w->links, w->cap_links * sizeof *w->links);
        if (w->links == NULL)
            abort();
    }
    for (int k = 0; k < 2; k++)
        memcpy(link.id[k], w->peers[link.end[k]].id, WIRE_ID_BYTES);
    w->links[w->n_links] = link;
    return w->n_links++;
}

/* Ends a session at both ends. `clean`: one peer has ended by itself, and the messages that it has
 * sent still arrive, such as the message that it has finished. */
void network_break(struct sim_world *w, uint32_t number, bool clean)
{
    struct sim_link *l = &w->links[number];
    if (!l->up)
        return;
    l->up = false;
    l->drains = clean && (w->peers[l->end[0]].ended || w->peers[l->end[1]].ended);
    for (int k = 0; k < 2; k++) {
        int64_t at = l->drains && l->clear_us[1 - k] > w->now_us ? l->clear_us[1 - k] : w->now_us;
        if (w->peers[l->end[k]].node != NULL)
            sim_post(w, &w->peers[l->end[k]],
                     (struct sim_event){
                         .at_us = at, .type = NODE_LINK_DOWN, .link = number, .flag = clean});
    }
}

void sim_hear(struct sim_world *w, struct sim_peer *to, uint32_t link, int64_t from_us,
              int64_t at_us)
{
    for (int64_t t = from_us + SIM_HEARD_US; t < at_us; t += SIM_HEARD_US)
        sim_post(w, to,
                 (struct sim_event){.at_us = t, .type = NODE_HEARD, .link = link, .flag = true});
}

/* Sends a message in the plain network. The message arrives after the latency plus the time that
 * its bytes take at the link's bandwidth. No message overtakes an earlier one. */
static void plain_send(struct sim_world *w, struct sim_peer *p, uint32_t number, uint8_t *bytes,
                       size_t n)
{
    struct sim_link *l = &w->links[number];
    int k = sim_side(l, p);
    struct sim_path path;
    sim_path(w, p->index, l->end[1 - k], &path);
    int64_t at = w->now_us + sim_lag(w, &path);
    if (path.bytes_per_s > 0)
        at += (int64_t)(1e6 * (double)n / path.bytes_per_s);
    if (at < l->clear_us[k])
        at = l->clear_us[k];
    l->clear_us[k] = at;
    p->sent += sim_socket_bytes(n);
    sim_hear(w, &w->peers[l->end[1 - k]], number, w->now_us, at);
    sim_post(w, &w->peers[l->end[1 - k]],
             (struct sim_event){
                 .at_us = at, .type = NODE_RECV, .link = number, .bytes = bytes, .n_bytes = n});
}

void network_send(struct sim_world *w, struct sim_peer *p, const struct node_send *s)
{
    size_t n_body = 0;
    const uint8_t *body = s->body ? packet_bytes(s->body, &n_body) : NULL;
    if (!w->config.sessions && !w->links[s->link].up)
        return;
    if (body != NULL && w->config.cut_rate > 0 && rng_unit(&w->rng) < w->config.cut_rate) {
        if (w->config.sessions)
            session_break(w, s->link);
        else
            network_break(w, s->link, false);
        return;
    }
    size_t n = s->n_head + n_body;
    uint8_t *bytes = malloc(n);
    if (bytes == NULL)
        abort();
    memcpy(bytes, s->head, s->n_head);
    if (n_body > 0)
        memcpy(bytes + s->n_head, body, n_body);
    if (p->attacker != NULL)
        bytes = attacker_forge(p->attacker, bytes, &n);
    if (w->config.sessions)
        session_send(w, p, s, bytes, n);
    else
        plain_send(w, p, s->link, bytes, n);
}

void network_dial(struct sim_world *w, struct sim_peer *p, const struct node_dial *d)
{
    struct sim_peer *to = sim_peer_at(w, d->address);
    struct sim_path path;
    sim_path(w, p->index, to != NULL ? to->index : p->index, &path);
    int64_t at = w->now_us + 2 * sim_lag(w, &path);
    if (to == NULL || to == p || !sim_lives(to)) {
        sim_post(
            w, p,
            (struct sim_event){.at_us = at, .type = NODE_DIAL_FAILED, .tag = d->tag, .flag = true});
        return;
    }
    uint32_t number = sim_new_link(
        w, (struct sim_link){.end = {p->index, to->index}, .up = true, .clear_us = {at, at}});
    sim_count_handshake(p, to);
    sim_post(w, p,
             (struct sim_event){
                 .at_us = at, .type = NODE_LINK_UP, .link = number, .tag = d->tag, .flag = true});
    sim_post(w, to, (struct sim_event){.at_us = at, .type = NODE_LINK_UP, .link = number});
}

void sim_count_handshake(struct sim_peer *dialler, struct sim_peer *dialled)
{
    dialler->sent += CHANNEL_MSG1 + CHANNEL_MSG3;
    dialler->received += CHANNEL_MSG2;
    dialled->sent += CHANNEL_MSG2;
    dialled->received += CHANNEL_MSG1 + CHANNEL_MSG3;
}

void network_resolved(struct sim_world *w, struct sim_peer *p, const struct sim_event *e,
                      const char *address[NODE_SEEDS_MAX], struct node_event *ev)
{
    ev->resolved.seed = e->tag;
    ev->resolved.n = w->config.resolve(w->config.self, p->index, p->seed_name[e->tag], address);
    ev->resolved.address = address;
}
