/* peer/sim/faults.h -- fault injection for a simulated world.
 *
 * These functions may be called between two steps of the world (sim_step()). With
 * sim_config.sessions the network has sessions like TCP. A dial reaches the other host, which
 * answers. The session is then up at the dialling end, and one latency later at the dialled end:
 *
 *     dialler                        dialled
 *        | ---- SYN, first message --> |   no process: the dial is refused
 *     up | <------- second message --- |   no answer: the dial fails after 3 s
 *        | ---------- third message -> | up
 *        | <=========== data ========> |   held while the path is cut
 *        | -- FIN (process gone) ----> |   held while the path is cut: half-open session
 *        | <---------- data ---------- |   if that end is gone, it answers with a reset
 *
 * Data sent over a cut path wait until the path is restored, like TCP retransmissions. After 30 s
 * the sender's kernel ends the session. A host that is off sends nothing, not even resets. Control
 * messages arrive in order, and so do bulk messages, but a control message may overtake a bulk
 * message.
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

/* Stops or continues a peer's event loop, as with SIGSTOP and SIGCONT. While the loop is stopped,
 * the kernel still receives data, and the loop gets all of them when it continues. */
void sim_stop(struct sim_world *w, uint32_t peer, bool stopped);
/* sim_slow() multiplies the time of a peer's jobs by `times`; 1 is the normal time. sim_hang()
 * with hung true delays the end of each job until sim_hang() is called with false. */
void sim_slow(struct sim_world *w, uint32_t peer, double times);
void sim_hang(struct sim_world *w, uint32_t peer, bool hung);

/* Makes the clock of a peer run faster (ppm > 0) or slower (ppm < 0) than world time, by `ppm`
 * parts per million. Requires |ppm| <= 100,000. Call it before the first step of the world. The
 * durations of jobs and the wall-clock times of allow-lists stay in world time. */
void sim_set_clock(struct sim_world *w, uint32_t peer, double ppm);

/* Fills or empties a peer's disk. A peer with a full disk cannot store its model. Checkpoints
 * are not affected. */
void sim_fill_disk(struct sim_world *w, uint32_t peer, bool full);

/* Delivers the sorted allow-list id[0..n) to a peer after in_us microseconds (NODE_ADMIT). A peer
 * that is started again has no allow-list until the next call. */
void sim_admit(struct sim_world *w, uint32_t peer, const uint8_t (*id)[WIRE_ID_BYTES], size_t n,
               int64_t in_us);
/* Creates the certificate with which a join token of `issuer` admits the identity `id`. The
 * certificate is valid until the world time until_us, in microseconds. */
void sim_invite(const uint8_t issuer[WIRE_ID_BYTES], const uint8_t id[WIRE_ID_BYTES],
                int64_t until_us, struct certificate *c);
/* Restarts a peer with the identity of peer `of` and an empty disk. */
int sim_restart_as_clone(struct sim_world *w, uint32_t peer, uint32_t of);
/* Makes a peer send records of n members that do not exist, and endorsements of these members, over
 * all its sessions, in addition to its normal messages. Requires sim_config.sessions. */
void sim_flood(struct sim_world *w, uint32_t peer, uint32_t n, uint64_t key);

/* Sets the probability that a delta is lost together with its session, replacing
 * sim_config.cut_rate. */
void sim_lose(struct sim_world *w, double rate);
/* Cuts or restores the path from one peer to another, in this direction only. Cuts are counted:
 * a path that was cut twice must be restored twice. Requires sim_config.sessions. */
void sim_cut(struct sim_world *w, uint32_t from, uint32_t to, bool cut);
/* Ends every session between peers a and b. Peer a is notified after a_us microseconds and peer b
 * after b_us. A negative value means never, as if a NAT or firewall on the path had forgotten the
 * connection. Requires sim_config.sessions. */
void sim_reset(struct sim_world *w, uint32_t a, uint32_t b, int64_t a_us, int64_t b_us);

#endif
