/* peer/node/env.h -- what every machine of a node stands on: time, chance, members, the outbox.
 *
 * One struct env lies at the bottom of each node. The machines (sessions, edges, phases, job)
 * point to it and know nothing of the node around it. It is written by env.c only, but for
 * the members, which write themselves, and the scratch that is anybody's within one call.
 *
 * The outbox collects what the step asks of the driver. A send's head is copied to one
 * arena, which may move while it grows: until env_end_step() a send knows its place only.
 */
#ifndef PEER_NODE_ENV_H
#define PEER_NODE_ENV_H

#include "nn/math/rng.h"
#include "peer/node/node.h"
#include "peer/node/shared_scratch.h"
#include "peer/node/times.h"

struct env
{
    struct node_config config; /* As it was given. */
    int64_t now_us;            /* Node time of this step (clock.h). */
    struct rng rng;            /* For jitter and nonces. */
    struct members *members;
    bool over; /* The node has ended with exit_code; nothing more is done. */
    int exit_code;

    struct node_effects *fx; /* What this step asks for; borrowed. */
    uint8_t *heads;          /* The arena. */
    size_t n_heads, cap_heads;
    size_t head_at[NODE_SENDS_MAX];

    /* Scratch. */
    uint32_t vertices[WIRE_MEMBERS_MAX]; /* For members_vertices(). */
    struct shared_scratch *commons;      /* Ours, or shared with other nodes. */
};

/* 0, -EINVAL or -ENOMEM; close it in any case. */
int env_open(struct env *v, const struct node_config *config);
void env_close(struct env *v);

void env_begin_step(struct env *v, int64_t now_us, struct node_effects *fx);
void env_end_step(struct env *v);

/* Queue a message for the driver's link of this number. The head is copied, the body,
 * which may be NULL, is borrowed until the next step. */
void env_send(struct env *v, uint32_t link, bool bulk, const uint8_t *head, size_t n_head,
              struct packet *body);
/* False: there is no room for it. */
bool env_hang_up(struct env *v, uint32_t link, bool violation);
void env_note(struct env *v, enum note_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Room for the news of the members, in the scratch. */
struct wire_members env_batch(struct env *v);

/* The end of this node, after what is queued: effects.exit. The first call counts. */
void env_end(struct env *v, int exit_code);

int64_t env_jitter(struct env *v, int64_t d); /* d +- 20 %: no herd. */
bool env_same_id(const uint8_t *a, const uint8_t *b);

#endif
