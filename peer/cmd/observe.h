/* peer/cmd/observe.h -- finds the members of a cluster and asks them for status and models, for
 * `status` and `drift`.
 *
 *   bootstrap names --> sessions --MEMBERS--> more members --> sessions
 *   each session: STATUS_REQ --> STATUS; on request MODEL_REQ --> MODEL (whole, or layer sketches)
 */
#ifndef PEER_CMD_OBSERVE_H
#define PEER_CMD_OBSERVE_H

#include "gossip/wire/wire.h"
#include "peer/cmd/cmd.h"
#include "peer/run/run.h"
#include "peer/uv/client.h"

enum { CMD_OBSERVE_MS = 5000 }; /* Time that all peers together have to answer, in milliseconds. */

struct cmd_observed
{
    /* Membership record. Zero except for the id until a member has sent it. */
    struct record record;
    bool known, dialled, failed, up, answered;
    /* calling: a call to the announced addresses is in progress. called: the call has ended. */
    bool calling, called;
    /* Result of the call to the announced addresses, if `called`. NODE_WHY_UNKNOWN: the member
     * answered. */
    enum node_why call;
    bool closed; /* The last session ended with a CLOSE message, not with a timeout or an error. */
    uint32_t session;
    struct wire_status status; /* Newest status received from this member. */
    /* Time at which `status` arrived, by uv_hrtime(), in nanoseconds. 0: no status received. */
    uint64_t status_ns;
    /* The member was asked for its model at least once. It may have gone since. */
    bool asked;
    bool due; /* The newest model request was sent to this member. */
    /* Model, or sketches of its layers, n_floats long. Owned. NULL until it arrives. */
    float *model;
    size_t n_floats;
    uint64_t model_round;
};

struct cmd_observe
{
    const struct options *o;
    struct uv_client *client;
    uint8_t psk[CHANNEL_KEY];
    /* Key pair from the file of --identity, if the option was given. */
    struct channel_identity identity;
    /* Name of a peer that refused this identity because its allow-list does not contain it. "":
     * none. */
    char refused_by[WIRE_NAME_MAX + 1];
    /* Members found so far. Sorted by name when cmd_observe() returns. */
    struct cmd_observed *member;
    uint32_t n;
    /* The array member[] is sorted, so the tags of earlier dials are no longer indices of it. */
    bool sorted;
    /* Number of lookups and dials of bootstrap names in progress. */
    uint32_t n_pending;
    struct wire_model_req question; /* Newest model request. */
    bool wants_models;              /* At least one model request was made. */
    bool has_run;
    struct run run; /* First run description received from a peer. */
};

/* Finds all members and asks each reachable one for its status. Returns CMD_OK, CMD_USAGE for
 * bad options, or CMD_FAILED if no peer answered. Errors are reported on stderr. */
int cmd_observe(struct cmd_observe *w, const struct options *o);
/* Asks every member with a session for its model at or after round q->round, or for sketches of
 * its layers (only members that train or have trained can send these). Waits until each has sent
 * it or has gone. Returns false if some did neither within `ms` milliseconds, or if the command
 * was stopped (peer/cmd/stop.h). */
bool cmd_observe_models(struct cmd_observe *w, const struct wire_model_req *q, uint32_t ms);
/* Returns the number of members that were asked for a model at least once and have sent none
 * since the newest request. */
uint32_t cmd_observe_missing(const struct cmd_observe *w);
/* Asks all members for their status again and waits at most `ms` milliseconds. A member that
 * does not answer keeps its last status. */
void cmd_observe_refresh(struct cmd_observe *w, uint32_t ms);
/* Waits `seconds` and processes the messages that arrive. Returns false if a signal arrived. */
bool cmd_observe_pause(struct cmd_observe *w, double seconds);
/* Dials again every member without a session, except members that have left. */
void cmd_observe_redial(struct cmd_observe *w);
void cmd_observe_close(struct cmd_observe *w);

#endif
