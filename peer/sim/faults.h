/* peer/sim/faults.h -- fault injection for a simulated world; call it between two steps.
 *
 * With sim_config.sessions the network has sessions like TCP. A dial reaches the other host and
 * is answered; then the session is up at the dialling end, and one lag later at the other:
 *
 *     dialler                        dialled
 *        | ---- SYN, first message --> |   no process: refused
 *     up | <------- second message --- |   no answer: given up after 3 s
 *        | ---------- third message -> | up
 *        | <=========== data ========> |   held where the path is cut
 *        | -- FIN (process gone) ----> |   held too: half-open
 *        | <---------- data ---------- |   to an end that is gone: reset
 *
 * Data sent into a cut wait until the cut heals, like TCP retransmissions. After 30 s the
 * sender's kernel ends the session. A host that is off sends nothing, not even resets.
 * Control and bulk messages each keep their order, because they use separate lanes.
 */
#ifndef PEER_SIM_FAULTS_H
#define PEER_SIM_FAULTS_H

#include "peer/sim/world.h"

/* Kills a peer as with SIGKILL: its node is gone and its sessions end abnormally. */
void sim_kill(struct sim_world *w, uint32_t peer);
/* Switches a peer's host off: other peers get no notice. sim_restart() switches it on. */
void sim_power_off(struct sim_world *w, uint32_t peer);
/* Restarts a peer with the same name, identity and checkpoints, and no other memory. Returns 0
 * or an error of node_open(). */
int sim_restart(struct sim_world *w, uint32_t peer);
/* Restarts a peer with a new identity and an empty disk. */
int sim_restart_as_new(struct sim_world *w, uint32_t peer);
/* Asks a peer to leave, as with SIGTERM. */
void sim_ask_to_leave(struct sim_world *w, uint32_t peer);

/* Stops or continues a peer's loop, as with SIGSTOP and SIGCONT. Its kernel still receives; the
 * loop gets everything afterwards. */
void sim_stop(struct sim_world *w, uint32_t peer, bool stopped);
/* sim_slow() multiplies the time of a peer's jobs by `times` (1: normal). sim_hang() makes its
 * jobs last until they are released. */
void sim_slow(struct sim_world *w, uint32_t peer, double times);
void sim_hang(struct sim_world *w, uint32_t peer, bool hung);

/* Fills a peer's disk: while it is full, no write succeeds. */
void sim_fill_disk(struct sim_world *w, uint32_t peer, bool full);

/* Gives a peer, after in_us, the allow-list id[0..n), sorted (NODE_ADMIT). A process that is
 * started gets its allow-list only in this way. */
void sim_admit(struct sim_world *w, uint32_t peer, const uint8_t (*id)[WIRE_ID_BYTES], size_t n,
               int64_t in_us);
/* Creates the certificate that a token of `issuer` gives to identity `id`, valid until until_us
 * of world time. */
void sim_invite(const uint8_t issuer[WIRE_ID_BYTES], const uint8_t id[WIRE_ID_BYTES],
                int64_t until_us, struct certificate *c);
/* Restarts a peer with the identity of peer `of` and an empty disk. */
int sim_restart_as_clone(struct sim_world *w, uint32_t peer, uint32_t of);
/* Makes a peer send n forged members and endorsements of them over all its sessions, in addition
 * to its normal messages. Requires sim_config.sessions. */
void sim_flood(struct sim_world *w, uint32_t peer, uint32_t n, uint64_t key);

/* Sets the probability that a delta is lost together with its session, replacing
 * sim_config.cut_rate. */
void sim_lose(struct sim_world *w, double rate);
/* Cuts or restores the path from one peer to another. Cuts are counted: each one is undone
 * separately. Requires sim_config.sessions. */
void sim_cut(struct sim_world *w, uint32_t from, uint32_t to, bool cut);
/* Ends every session between two peers. Each end is notified after a_us or b_us; a negative
 * value means never, as with a middlebox that lost its state. Requires sim_config.sessions. */
void sim_reset(struct sim_world *w, uint32_t a, uint32_t b, int64_t a_us, int64_t b_us);

#endif
