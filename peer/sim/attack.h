/* peer/sim/attack.h -- Byzantine members of a simulated world, and the table of their attacks.
 *
 * An attacker holds the cluster key. It is a real node with sessions, edges and rounds, and its
 * messages are well-formed. Only its mixer differs (gossip/mixers/mixer.h): its deltas describe a
 * false model that the attack chooses.
 *
 * A job of an attacker does two things. It sets the attacker's own model x to the mean of the
 * models of its honest neighbours, so that its consensus distance and its sketches (random
 * projections of the model) look like those of an honest peer. For each edge it then encodes the
 * false model (the claim) for the victim as the delta Q(claim - a), where a is the attacker's
 * replica on this edge.
 *
 * Attackers know the current models of the victim and of its honest neighbours, and know which
 * peers are attackers. Each victim receives a claim of its own.
 */
#ifndef PEER_SIM_ATTACK_H
#define PEER_SIM_ATTACK_H

#include "gossip/mixers/mixer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Input of an attack on one victim. */
struct attack_scene
{
    /* Model that the attacker would have if it were honest, dim floats. */
    const float *own;
    const float *victim;        /* Model of the victim, dim floats. */
    const float *const *honest; /* Models of the victim's n honest neighbours, dim floats each. */
    /* n: number of honest neighbours of the victim. n_liars: number of the victim's Byzantine
     * neighbours, including this attacker. */
    size_t n, n_liars;
    size_t dim;
    /* Seed of the attacker's random numbers that differ from round to round. */
    uint64_t key;
    uint64_t fixed; /* Seed of the attacker's random numbers that are the same in all rounds. */
};

/* Statements in messages (round, sketch, consensus distance) that an attack falsifies in addition
 * to its model. */
enum attack_lie {
    /* The attacker falsifies only its claimed model, and no other statement in its messages. */
    ATTACK_MODEL,
    ATTACK_ROUNDS, /* All messages claim that the attacker has done all rounds. */
    /* Deltas carry no sketch (random projection of the model), so the consensus distance cannot be
     * estimated. */
    ATTACK_MUTE,
    /* Sketches (random projections of the model) are replaced by noise with ten times the norm of
     * the model. */
    ATTACK_SKETCH,
    /* The attacker claims that its consensus distance and its neighbours' distances are under the
     * run's target. It reports distances of 0. */
    ATTACK_SETTLED,
    ATTACK_UNSETTLED, /* The attacker never reports a consensus distance under the target. */
};

struct attack
{
    const char *name;
    const char *about;
    /* Writes the claimed model to `out`, dim floats. NULL: the attacker sends a message of NaNs. */
    void (*claim)(const struct attack_scene *s, float *out);
    enum attack_lie lie;
};

/* All attacks, terminated by a row without a name. */
extern const struct attack attack_all[];

/* Parses "KIND" or "KIND:PEERS", where PEERS is a list such as "3", "0,7" or "5-14". Without a
 * list the last peer attacks. Sets liar[i] for each of n peers. Returns 0, or -EINVAL with a
 * message in `error`; also if no honest peer would remain. */
enum { ATTACK_ERROR_MAX = 200 };
int attack_read(const char *spec, uint32_t n, const struct attack **attack, bool *liar,
                char error[ATTACK_ERROR_MAX]);

/* One attacker in a simulated world. Its node uses the attacker's mixer instead of the run's. */
struct attacker;
struct sim_world;
/* Returns a new attacker, or NULL if memory is exhausted. */
struct attacker *attacker_new(struct sim_world *w, uint32_t peer);
void attacker_free(struct attacker *a); /* Frees the attacker. a may be NULL. */
const struct mixer *attacker_mixer(const struct attacker *a);
/* Takes ownership of `bytes`, an outgoing message of *n bytes, and returns the message to send
 * instead, with its length in *n. An attacker that lies about its round forges messages that state
 * the round, once it has joined. All other messages are returned unchanged. Aborts if memory is
 * exhausted, like the whole simulator. */
uint8_t *attacker_forge(const struct attacker *a, uint8_t *bytes, size_t *n);

#endif
