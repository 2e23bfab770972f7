/* peer/sim/attack.h -- members that lie: who holds the cluster key, and sends what ruins a model.
 *
 * An attacker is a real node: it has sessions, edges and rounds like any other, and its
 * messages are in order. Only its mixer is another one (gossip/mixers/mixer.h): what a
 * delta says its model is, is an attack's:
 *
 *   its job    own x = the mean of its honest neighbours' (so that nobody waits for it,
 *              and its sketches tell nothing)
 *              for each edge: claim(victim) -> encoded as Q(claim - a)
 *
 * Attackers know everything: the victim's model as it is now, those of the victim's
 * honest neighbours, and each other. Each victim is told something of its own.
 */
#ifndef PEER_SIM_ATTACK_H
#define PEER_SIM_ATTACK_H

#include "gossip/mixers/mixer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What an attack is made of. */
struct attack_scene
{
    const float *own;           /* What the attacker's model would be, were it honest; */
    const float *victim;        /* that of whom it lies to, */
    const float *const *honest; /* and those of that peer's honest neighbours, n of them. */
    size_t n, n_liars;          /* How many of its neighbours lie, this one among them. */
    size_t dim;
    uint64_t key;   /* Names the attacker's random draws of this round; */
    uint64_t fixed; /* those that stay the same in all rounds. */
};

/* What an attack lies about beside its model. */
enum attack_lie {
    ATTACK_MODEL,     /* Nothing else. */
    ATTACK_ROUNDS,    /* It says everywhere that it has done all rounds. */
    ATTACK_MUTE,      /* It sends no sketch, so that the drift cannot be counted. */
    ATTACK_SKETCH,    /* Its sketches are noise of ten times the model's length. */
    ATTACK_SETTLED,   /* All around it are near, and so is it: distances are 0. */
    ATTACK_UNSETTLED, /* It never knows that it is near. */
};

struct attack
{
    const char *name;
    const char *about;
    /* Write what is claimed to out, dim floats. NULL: a message that is no number. */
    void (*claim)(const struct attack_scene *s, float *out);
    enum attack_lie lie;
};

/* Ends with a row without a name. */
extern const struct attack attack_all[];

/* Read "KIND" or "KIND:WHO", where WHO lists peers: "3", "0,7", "5-14". Without it the last
 * peer attacks. liar[i] says for each of n peers whether it does. 0, or -EINVAL with a
 * sentence: also where nobody would be left. */
enum { ATTACK_ERROR_MAX = 200 };
int attack_read(const char *spec, uint32_t n, const struct attack **attack, bool *liar,
                char error[ATTACK_ERROR_MAX]);

/* One attacker in a world. Its mixer goes into the node's config. */
struct attacker;
struct sim_world;
/* NULL without memory. */
struct attacker *attacker_new(struct sim_world *w, uint32_t peer);
void attacker_free(struct attacker *a); /* NULL is allowed. */
const struct mixer *attacker_mixer(const struct attacker *a);
/* What goes out in place of its message of *n bytes, which this takes: of those that say how far
 * it is, others, of *n bytes now. Aborts without memory, as the simulator does. */
uint8_t *attacker_forge(const struct attacker *a, uint8_t *bytes, size_t *n);

#endif
