/* peer/cmd/observe.h -- finds the members of a cluster, and asks them for their status and models.
 * The commands `status` and `drift` use this.
 *
 *   bootstrap names --> sessions --MEMBERS--> more members --> sessions
 *   each session: STATUS_REQ --> STATUS; on request MODEL_REQ --> MODEL (whole, or sketches)
 */
#ifndef PEER_CMD_OBSERVE_H
#define PEER_CMD_OBSERVE_H

#include "gossip/wire/wire.h"
#include "peer/cmd/cmd.h"
#include "peer/run/run.h"
#include "peer/uv/client.h"

/* Longest wait for the status of all members, in milliseconds. */
enum { CMD_OBSERVE_MS = 5000 };

struct cmd_observed
{
    /* Membership record of this member. Only the id is set until a peer sends the record. */
    struct record record;
    bool known, dialled, failed, up, answered;
    /* calling: a call to the member's announced addresses is in progress. called: a call to these
     * addresses has ended. */
    bool calling, called;
    /* Reason why the call to the member's announced addresses failed. NODE_WHY_UNKNOWN: the member
     * answered. Valid if `called` is true. */
    enum node_why call;
    /* True if the member ended the last session with a CLOSE message. False: it ended by a timeout
     * or an error. */
    bool closed;
    uint32_t session;
    struct wire_status status; /* Newest status received from this member. */
    /* Time at which `status` arrived, by uv_hrtime(), in nanoseconds. 0: no status received. */
    uint64_t status_ns;
    /* True if the member was asked for its model at least once. The session may have ended
     * since. */
    bool asked;
    bool due; /* True if the newest model request was sent to this member. */
    /* The member's model, or sketches (random projections) of its layers: n_floats floats. Owned.
     * NULL until the answer arrives. */
    float *model;
    size_t n_floats;
    uint64_t model_round;
};

struct cmd_observe
{
    const struct options *o;
    struct uv_client *client;
    uint8_t psk[CHANNEL_KEY];
    /* Key pair from the file of --identity. Unused if that option was not given. */
    struct channel_identity identity;
    /* Name of a peer that refused this process, because its allow-list does not contain our
     * identity. "": no peer refused. */
    char refused_by[WIRE_NAME_MAX + 1];
    /* Members found so far, n in total. cmd_observe() returns them sorted by name. */
    struct cmd_observed *member;
    uint32_t n;
    /* True if member[] has been sorted. The tags of dials that began earlier are then no longer
     * valid, because they are indices in the unsorted array. */
    bool sorted;
    /* Number of name lookups and dials for bootstrap addresses that are in progress. */
    uint32_t n_pending;
    struct wire_model_req question; /* Newest request for models that was sent to members. */
    bool wants_models;              /* True if at least one model request was made. */
    bool has_run;
    struct run run; /* Run description that the first peer with a run has sent. Valid if has_run. */
};

/* Finds all members and asks each reachable member for its status. Returns CMD_OK, CMD_USAGE if an
 * option is bad, or CMD_FAILED if no peer answered. Errors are reported on stderr. */
int cmd_observe(struct cmd_observe *w, const struct options *o);
/* Asks every member with a session for its model at or after round q->round, or for sketches
 * (random projections) of the model's layers. Only members that train or have trained can send
 * sketches. Waits until each asked member has either sent an answer or lost its session. Returns
 * false if this took longer than `ms` milliseconds, or if the command was stopped
 * (peer/cmd/stop.h). */
bool cmd_observe_models(struct cmd_observe *w, const struct wire_model_req *q, uint32_t ms);
/* Returns the number of members that were asked for a model at least once, but have sent no answer
 * to the newest request. */
uint32_t cmd_observe_missing(const struct cmd_observe *w);
/* Asks all members for their status again, and waits at most `ms` milliseconds for the answers. A
 * member that does not answer keeps its previous status. */
void cmd_observe_refresh(struct cmd_observe *w, uint32_t ms);
/* Waits `seconds` and meanwhile processes the messages that arrive. Returns false if a signal
 * arrived. */
bool cmd_observe_pause(struct cmd_observe *w, double seconds);
/* Dials every member that has no session, except members that have left the cluster. */
void cmd_observe_redial(struct cmd_observe *w);
void cmd_observe_close(struct cmd_observe *w);

#endif
