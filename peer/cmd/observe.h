/* peer/cmd/observe.h -- who is in a cluster and what each says, for `status` and `drift`.
 *
 *   bootstrap names --> sessions --MEMBERS--> more members --> sessions
 *   every session: STATUS_REQ --> STATUS; on demand MODEL_REQ --> MODEL, whole or sketches of its layers
 */
#ifndef PEER_CMD_OBSERVE_H
#define PEER_CMD_OBSERVE_H

#include "gossip/wire/wire.h"
#include "peer/cmd/cmd.h"
#include "peer/run/run.h"
#include "peer/uv/client.h"

enum { CMD_OBSERVE_MS = 5000 }; /* All peers together have so long to answer. */

struct cmd_observed
{
    struct record record; /* Zero but for the id until a member told of it. */
    bool known, dialled, failed, up, answered;
    /* calling: a call to the announced addresses is in progress. called: the call has ended. */
    bool calling, called;
    /* Result of the call, if `called`. NODE_WHY_UNKNOWN: the member answered. */
    enum node_why call;
    bool closed; /* The last session ended with a CLOSE, and not by a timeout. */
    uint32_t session;
    struct wire_status status; /* The newest, */
    uint64_t told_ns;          /* which came then, by uv_hrtime(); 0: none ever. */
    bool asked;                /* For its model; it may be gone since. */
    bool due;                  /* The newest question went to it, too. */
    float *model;              /* Or sketches of it. Owned; NULL until they came. */
    size_t n_floats;
    uint64_t model_round;
};

struct cmd_observe
{
    const struct options *o;
    struct uv_client *client;
    uint8_t psk[CHANNEL_KEY];
    struct channel_identity identity;   /* --identity, if it was given. */
    char refused_by[WIRE_NAME_MAX + 1]; /* A peer that does not admit this identity; or "". */
    struct cmd_observed *member;        /* Sorted by name once cmd_observe() is done. */
    uint32_t n;
    /* member[] is sorted, so the tags of earlier dials are no longer indices of member[]. */
    bool sorted;
    uint32_t n_pending;             /* Lookups and dials of bootstrap names under way. */
    struct wire_model_req question; /* The newest, */
    bool wants_models;              /* if there was any. */
    bool has_run;
    struct run run; /* The first that a peer told of. */
};

/* Find all members and have every one that can be reached answer. Returns an
 * exit code: CMD_USAGE for bad options, CMD_FAILED where nobody answered; both
 * with a line on stderr. */
int cmd_observe(struct cmd_observe *w, const struct options *o);
/* Ask every member that there is a session with for its model at or after q's round, or
 * for sketches of its layers (then only those who train, or have, and speak of layers), and wait
 * until all have sent it or are gone. False: some did neither within `ms`, or the command
 * was stopped (peer/cmd/stop.h). */
bool cmd_observe_models(struct cmd_observe *w, const struct wire_model_req *q, uint32_t ms);
/* So many of those that were ever asked have sent no model since the newest question. */
uint32_t cmd_observe_missing(const struct cmd_observe *w);
/* Ask for the status of all once more, and wait for `ms` at most. Who does not answer keeps what it said last. */
void cmd_observe_again(struct cmd_observe *w, uint32_t ms);
/* Let so many seconds go by, with what comes meanwhile. False: a signal has come. */
bool cmd_observe_pause(struct cmd_observe *w, double seconds);
/* Dial again whom there is no session with, but for those who left. */
void cmd_observe_redial(struct cmd_observe *w);
void cmd_observe_close(struct cmd_observe *w);

#endif
