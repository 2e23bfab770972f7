/* peer/node/env.h -- the environment of all modules of a node: time, random numbers, member table,
 * outbox, scratch memory.
 *
 * Each node has one struct env. The modules of the node (sessions, edges, phases, job, ...) have a
 * pointer to it, and do not know the node that contains them. Only env.c writes the struct, with
 * two exceptions: the member table is changed by its own functions (gossip/members/members.h), and
 * any module may use the scratch memory within one call.
 *
 * The outbox collects the effects of the current step. env_send() copies the head of a message to a
 * buffer that may move when it grows. Pointers to the heads are therefore set in env_end_step().
 *
 *   env_begin_step() --> env_send(), env_hang_up(), env_note(), ... --> env_end_step()
 *
 * *Node time* is the driver's clock without the time for which the process was paused. A process is
 * paused by SIGSTOP, by a machine that sleeps, or by a machine that is too busy to run it. During a
 * pause the process receives nothing, so the pause must not make other peers look silent, and must
 * not end a timeout. Node time therefore stops during a pause. All times inside the node are node
 * times.
 *
 *   driver time  0 ---- 10 s (paused until 50 s) 50 ---- 60
 *   node time    0 ---- 10                       10 ---- 20
 */
#ifndef PEER_NODE_ENV_H
#define PEER_NODE_ENV_H

#include "gossip/wire/wire.h"
#include "nn/math/rng.h"
#include "peer/node/node.h"
#include "peer/node/timers.h"
#include "topology/topology.h"

/* Scratch memory and results that all nodes of one thread share. Zero-initialised by its owner. A
 * simulator runs a thousand nodes in one thread. Scratch memory is used within one step only, so
 * one copy is enough, and stays in the processor's caches. */
struct shared_scratch
{
    uint8_t message[WIRE_CONTROL_MAX]; /* Buffer for one control message. */
    struct wire_batch batch; /* Lists of the MEMBERS message that is being read or written. */

    /* Last result of env_spectrum(). n 0: no result yet. */
    struct
    {
        char topology[RUN_VALUE_MAX]; /* Specification of the topology. */
        uint32_t n;                   /* Number of vertices of the topology. */
        uint64_t seed;                /* Random seed of the graph. */
        struct spectrum is;           /* Results computed from the eigenvalues of the graph. */
    } spectrum;
};

struct env
{
    struct node_config config; /* Copy of the configuration that node_open() was given. */
    int64_t now_us;            /* Node time of the current step. */
    int64_t driver_us;         /* Time of this step on the driver's clock, pauses included. */
    struct rng rng;            /* Random stream for jitter and nonces. */
    struct members *members;
    bool over;                    /* True: the node has ended and produces no more effects. */
    int exit_code;                /* Exit code of the node. Valid once the node has ended. */
    char name[WIRE_NAME_MAX + 1]; /* Last result of env_name() for an unknown identity. */

    struct node_effects *fx; /* Effects of the current step. Borrowed from the driver. */
    /* Buffer with the heads (all but the large payloads) of the messages of the step. */
    uint8_t *heads;
    /* Number of used and of allocated bytes of the buffer for message heads. */
    size_t n_heads, cap_heads;
    /* Offset of the head of message fx->sends[i] in the buffer for heads. */
    size_t head_at[NODE_SENDS_MAX];

    /* Scratch memory. */
    uint32_t vertices[WIRE_MEMBERS_MAX]; /* Buffer for results of members_vertices(). */
    /* Scratch memory for one call. Owned by this node, or shared with other nodes
     * (config.commons). */
    struct shared_scratch *commons;
};

/* Initialises *v, which must be zeroed, and opens the member table. Returns 0, -EINVAL or -ENOMEM.
 * env_close() must be called also after an error. */
int env_open(struct env *v, const struct node_config *config);
void env_close(struct env *v);

/* Begins a step at driver_us on the clock of the driver, with empty effects *fx. due_us: node time
 * by which the driver should have reported NODE_TIMER; 0: no time was set. A step more than
 * PAUSE_US (200 ms) after due_us shows that the process was paused. Returns the length of the pause
 * in microseconds, or 0. */
int64_t env_begin_step(struct env *v, int64_t driver_us, int64_t due_us, struct node_effects *fx);
/* Returns the driver time of a node time. INT64_MAX means never, and is returned unchanged. */
int64_t env_driver_us(const struct env *v, int64_t node_us);
/* Ends the step: sets the pointers in *fx to the heads of all messages. */
void env_end_step(struct env *v);

/* Adds a message to the effects, for the link with the driver's number `link`. `head` is copied.
 * `body` may be NULL, and must stay valid until the next step. If the step has NODE_SENDS_MAX
 * messages, the message is dropped. If memory is exhausted, the node ends with exit code 1. */
void env_send(struct env *v, uint32_t link, bool bulk, const uint8_t *head, size_t n_head,
              struct packet *body);
/* Adds a hang-up to the effects. `violation`: the link ends at once, without a CLOSE. Returns false
 * if the step has NODE_LINKS_MAX hang-ups already. */
bool env_hang_up(struct env *v, uint32_t link, bool violation);
/* env_note(v, level, format, ...) adds a message for the user to the effects, with the name of the
 * calling file as its module. If the step has NODE_NOTES_MAX notes, the note is dropped. */
#define env_note(v, level, ...) env_note_from(v, __FILE__, level, __VA_ARGS__)
/* env_debug(v, format, ...) adds a debug note. If config.log_debug is false, the arguments are not
 * evaluated. */
#define env_debug(v, ...)                                                                          \
    ((v)->config.log_debug ? env_note_from(v, __FILE__, NOTE_DEBUG, __VA_ARGS__) : (void)0)
/* Adds a note in the name of the file `path`. Used only by env_note() and env_debug(). */
void env_note_from(struct env *v, const char *path, enum note_level level, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Returns an empty MEMBERS message with arrays in the scratch memory. Valid until the next use
 * of commons->batch. */
struct wire_members env_batch(struct env *v);

/* Sets *s to the spectrum of the graph `topology` with n vertices and this seed. The last result is
 * stored for all nodes of the thread, so a call with the same arguments copies it. Returns 0 or a
 * negative errno. */
int env_spectrum(struct env *v, const char *topology, uint32_t n, uint64_t seed,
                 struct spectrum *s);

/* Ends the node with this exit code. Effects of the current step are still carried out. Later calls
 * have no effect. */
void env_end(struct env *v, int exit_code);

/* Returns a random duration between 0.8 and 1.2 times d, so that timers of different peers do not
 * expire at the same time. */
int64_t env_jitter(struct env *v, int64_t d);
/* Returns the name of the member `id` for a note, valid until the next call. For an unknown
 * identity: "peer " and its first four bytes in hexadecimal. */
const char *env_name(struct env *v, const uint8_t id[WIRE_ID_BYTES]);
/* Returns whether two identities of WIRE_ID_BYTES bytes are equal. */
bool env_same_id(const uint8_t *a, const uint8_t *b);

#endif
