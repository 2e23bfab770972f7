/* peer/sim/faults.h -- what goes wrong in a simulated world, called between two steps of it.
 *
 * With sim_config.sessions the network is one of sessions as TCP has them. A
 * dial reaches the other host, is answered, and only then is a session up at
 * the dialling end; a lag later, if nothing comes between, at the other:
 *
 *     dialler                        dialled
 *        | ---- SYN, first message --> |   no process: refused
 *     up | <------- second message --- |   silent: given up after 3 s
 *        | ---------- third message -> | up
 *        | <=========== data ========> |   held where the path is cut
 *        | -- FIN (process gone) ----> |   held, too: half-open
 *        | <---------- data ---------- |   to an end that is gone: reset
 *
 * What is sent into a cut waits and goes on when that heals, as TCP sends it again;
 * after 30 s the sender's kernel ends the session. A host that is off answers
 * nothing, not even with resets. Control messages and bulk keep their own order
 * only, as they have lanes of their own.
 */
#ifndef PEER_SIM_FAULTS_H
#define PEER_SIM_FAULTS_H

#include "peer/sim/world.h"

/* As SIGKILL: the node is gone, its sessions end abnormally. */
void sim_kill(struct sim_world *w, uint32_t peer);
/* As pulling its plug: nobody is told. sim_restart() turns it on again. */
void sim_power_off(struct sim_world *w, uint32_t peer);
/* Start it again: same name and identity, its checkpoints if it wrote any,
 * nothing else remembered. 0 or an error of node_open(). */
int sim_restart(struct sim_world *w, uint32_t peer);
/* The same with a new identity, and an empty disk. */
int sim_restart_as_new(struct sim_world *w, uint32_t peer);
/* As SIGTERM. */
void sim_ask_to_leave(struct sim_world *w, uint32_t peer);

/* As SIGSTOP and SIGCONT: its kernel takes what comes, its loop gets it all afterwards. */
void sim_stop(struct sim_world *w, uint32_t peer, bool stopped);
/* Its worker: jobs take so many times as long (1: as usual), or end only once it is
 * let go again. */
void sim_slow(struct sim_world *w, uint32_t peer, double times);
void sim_hang(struct sim_world *w, uint32_t peer, bool hung);

/* Its disk: what the node asks to write cannot be stored while it is full. */
void sim_fill_disk(struct sim_world *w, uint32_t peer, bool full);

/* The peer is told, after so long, that these n identities, sorted, may be members (NODE_ADMIT). A
 * process that is started is told by this alone. */
void sim_admit(struct sim_world *w, uint32_t peer, const uint8_t (*id)[WIRE_ID_BYTES], size_t n,
               int64_t in_us);
/* What a token of this issuer makes for the identity `id`, good until that time of a world. */
void sim_invite(const uint8_t issuer[WIRE_ID_BYTES], const uint8_t id[WIRE_ID_BYTES],
                int64_t until_us, struct certificate *c);
/* sim_restart() with the identity of another, and an empty disk. */
int sim_restart_as_clone(struct sim_world *w, uint32_t peer, uint32_t of);
/* Beside what its node does, the peer tells all that it has sessions with of n members that do not
 * exist, and vouches for them. Wants sim_config.sessions. */
void sim_flood(struct sim_world *w, uint32_t peer, uint32_t n, uint64_t key);

/* From now on a delta is lost with its session at this rate, in place of sim_config.cut_rate. */
void sim_lose(struct sim_world *w, double rate);
/* The path from one peer to another. Cuts lie over each other, and are taken back one
 * by one. Wants sim_config.sessions. */
void sim_cut(struct sim_world *w, uint32_t from, uint32_t to, bool cut);
/* Every session between two peers is over: each end hears of it after so long; under 0: it
 * never does by itself, as with a middlebox that has forgotten it. Wants sessions. */
void sim_reset(struct sim_world *w, uint32_t a, uint32_t b, int64_t a_us, int64_t b_us);

#endif
