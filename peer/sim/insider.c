/* peer/sim/insider.c -- simulates allow-lists and tokens, and attackers that hold the cluster key:
 * they copy an identity, or announce members that do not exist.
 */
#include "peer/sim/faults.h"
#include "peer/sim/state.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void sim_admit(struct sim_world *w, uint32_t peer, const uint8_t (*id)[WIRE_ID_BYTES], size_t n,
               int64_t in_us)
{
    struct sim_event e = {.at_us = w->now_us + in_us, .type = NODE_ADMIT};
    if (!sim_lives(&w->peers[peer]))
        return;
    e.n_bytes = n * sizeof *id;
    e.bytes = malloc(e.n_bytes + 1);
    if (e.bytes == NULL)
        abort();
    if (n > 0)
        memcpy(e.bytes, id, e.n_bytes);
    sim_post(w, &w->peers[peer], e);
}

void sim_invite(const uint8_t issuer[WIRE_ID_BYTES], const uint8_t id[WIRE_ID_BYTES],
                int64_t until_us, struct certificate *c)
{
    uint8_t msg[SIGNED_MAX];
    *c = (struct certificate){.expires_ms =
                                  (uint64_t)((SIM_UNIX_S * INT64_C(1000000) + until_us) / 1000)};
    memcpy(c->issuer, issuer, sizeof c->issuer);
    for (size_t k = 0; k < sizeof c->key; k++)
        c->key[k] = (uint8_t)(issuer[k] ^ 0x5a);
    sim_sign(c->issuer, msg, wire_token_signed(msg, sizeof msg, c), c->issued);
    sim_sign(c->key, msg, wire_presented_signed(msg, sizeof msg, id), c->presented);
}

int sim_restart_as_clone(struct sim_world *w, uint32_t peer, uint32_t of)
{
    memcpy(w->peers[peer].id, w->peers[of].id, WIRE_ID_BYTES);
    checkpoints_wipe(&w->peers[peer]);
    return sim_restart(w, peer);
}

/* ---- forged members ---- */

static void make_ghost(uint64_t key, uint32_t number, struct record *r)
{
    uint8_t msg[SIGNED_MAX];
    *r = (struct record){.n_addresses = 1, .incarnation = 1, .boot = number + 1};
    for (size_t k = 0; k < WIRE_ID_BYTES; k++)
        r->id[k] = (uint8_t)rng_at(key ^ number, k + 1);
    snprintf(r->name, sizeof r->name, "ghost-%u", number);
    snprintf(r->address[0], sizeof r->address[0], "nobody:%u", 1 + number);
    sim_sign(r->id, msg, wire_record_signed(msg, sizeof msg, r), r->signature);
}

static void make_vouch(const uint8_t *voucher, const uint8_t *member, struct vouch *v)
{
    uint8_t msg[SIGNED_MAX];
    memcpy(v->voucher, voucher, WIRE_ID_BYTES);
    memcpy(v->member, member, WIRE_ID_BYTES);
    sim_sign(voucher, msg, wire_vouch_signed(msg, sizeof msg, v), v->signature);
}

/* Sends the n false member records of ghost[] over one link, with an endorsement of each record
 * except the first. Peer p endorses the records with an even index. A record with an odd index i is
 * endorsed by the false member of record i - 1. At most WIRE_VOUCHES_MAX endorsements are sent. */
static void say_ghosts(struct sim_world *w, struct sim_peer *p, uint32_t link,
                       const struct record *ghost, uint32_t n)
{
    struct vouch v[WIRE_VOUCHES_MAX];
    struct wire_members m = {
        .n_records = n, .records = (struct record *)(uintptr_t)ghost, .vouches = v};
    for (uint32_t i = 1; i < n && m.n_vouches < WIRE_VOUCHES_MAX; i++)
        make_vouch(i % 2 == 0 ? p->id : ghost[i - 1].id, ghost[i].id, &v[m.n_vouches++]);
    uint8_t *bytes = malloc(WIRE_CONTROL_MAX);
    if (bytes == NULL)
        abort();
    size_t len = wire_put_members(bytes, WIRE_CONTROL_MAX, &m);
    assert(len > 0);
    session_send(w, p, &(struct node_send){.link = link}, bytes, len);
}

void sim_flood(struct sim_world *w, uint32_t peer, uint32_t n, uint64_t key)
{
    struct sim_peer *p = &w->peers[peer];
    struct record *ghost = calloc(WIRE_BATCH_MAX, sizeof *ghost);
    if (ghost == NULL)
        abort();
    for (uint32_t at = 0; at < n && sim_lives(p); at += WIRE_BATCH_MAX) {
        uint32_t some = n - at < WIRE_BATCH_MAX ? n - at : WIRE_BATCH_MAX;
        for (uint32_t i = 0; i < some; i++)
            make_ghost(key, at + i, &ghost[i]);
        for (uint32_t k = 0; k < w->n_links; k++)
            if (w->links[k].end[0] == peer || w->links[k].end[1] == peer)
                say_ghosts(w, p, k, ghost, some);
    }
    free(ghost);
}
