/* peer/node/node.c -- calls the modules of the node in each step, and passes each event to the
 * module that handles it. */
#include "peer/node/node.h"

#include "nn/math/number.h"
#include "peer/node/edge/parts.h"
#include "peer/node/membership/quorum.h"
#include "peer/node/result/certificate.h"
#include "peer/node/result/final_model.h"
#include "peer/node/result/result_facts.h"
#include "peer/node/state.h"
#include "peer/node/step/models.h"
#include "peer/node/step/phases.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- which run ---- */

/* Closes the run in all modules, in each module before those that it uses (state.h). */
static void close_run(struct node *n)
{
    edges_close_all(n->edges);
    round_protocol_end(n->round_protocol);
    job_drop(n->job);
    model_server_forget(n->orders);
    certificate_forget(n->certificate);
    join_again(n->join);
    run_context_close(&n->workshop);
}

/* Closes a run that this peer has not begun: another run replaces it, or no member has its initial
 * model. */
static void leave_run(struct node *n)
{
    close_run(n);
    phases_forget(n->phases);
}

static void take_run(struct node *n, const struct run *run)
{
    assert(phases_phase(n->phases) == NODE_JOINING && !job_is_running(n->job));
    /* The run of this peer was only a proposal, and another run replaces it. */
    if (n->workshop.ready)
        leave_run(n);
    run_context_take(&n->workshop, run);
    n->others_began = false;
    /* In a run with a certificate, members do not exit when they have finished: they wait for the
     * certificate. A finished member that is silent is therefore declared dead, like any other
     * member, and the others continue without it. */
    members_watch_final(n->env.members, certificate_applies(n), n->env.now_us);
    if (n->workshop.ready)
        round_protocol_begin(n->round_protocol);
    assert(n->workshop.ready || n->env.over);
}

/* ---- callbacks of the sessions (struct sessions_owner) ---- */

/* Sets *s to what this peer reports about itself. Called for each message that contains such a
 * report, so no value is outdated. */
static void standing(void *self, struct standing *s)
{
    const struct node *n = self;
    const struct run_context *w = &n->workshop;
    bool began = phases_phase(n->phases) != NODE_JOINING;
    /* A peer without the run's initial model (`lacks`) reports no run. */
    bool has_run = w->has_run && !w->lacks;
    *s = (struct standing){.has_started = join_has_model(n->join) && began,
                           .gathers = statistics_aggregation_gathers(n->pooling) || w->lacks,
                           .finished = final_model_state(n) != FINAL_MODEL_PENDING,
                           .run = {(const uint8_t *)w->run_text, has_run ? w->n_run_text : 0},
                           .round = phases_round(n->phases),
                           .beat = phases_beat(n->phases),
                           .busy_us = phases_stuck_us(n->phases)};
}

static enum sessions_run their_run(void *self, const struct wire_hello *h, bool dialled)
{
    struct node *n = self;
    bool started = n->workshop.has_run
                   && (resume_has_checkpoint(n->resume) || phases_phase(n->phases) != NODE_JOINING);
    /* others_began, once set, stays set although the sessions to the peers that have begun are
     * lost, as long as another member is alive. */
    bool began = n->others_began || sessions_run_begun(n->sessions);
    n->others_began = n->workshop.has_run && began && member_counts_live(&n->env);
    struct run run;
    enum sessions_run said =
        run_context_judge(&n->workshop, h, dialled, started, n->others_began, &run);
    if (said == SESSIONS_RUN_TAKEN)
        take_run(n, &run);
    if (said == SESSIONS_RUN_TAKEN || said == SESSIONS_RUN_SAME)
        n->others_began |= h->has_started;
    return said;
}

static void session_met(void *self, const struct link *l)
{
    certificate_met(self, l);
}

static void session_lost(void *self, const struct link *l)
{
    edges_lost(((struct node *)self)->edges, l);
    certificate_lost(self, l);
}

static void session_finished(void *self, const struct link *l)
{
    edges_ending(((struct node *)self)->edges, l);
}

/* Returns whether session l may be closed: in training, if this peer has edges and none of them
 * uses the session. In other phases members need sessions to find each other. */
static bool session_surplus(void *self, const struct link *l)
{
    const struct node *n = self;
    return phases_phase(n->phases) == NODE_TRAINING && edges_count(n->edges) > 0
           && edges_of(n->edges, l) == NULL;
}

static void say_status(void *self, const struct link *l)
{
    struct node *n = self;
    struct env *v = &n->env;
    struct wire_status s;
    node_status(n, &s);
    sessions_send(n->sessions, l, false, v->commons->message,
                  wire_put_status(v->commons->message, sizeof v->commons->message, &s), NULL);
}

/* ---- opening and closing ---- */

static int open_machines(struct node *n, const struct node_config *config)
{
    const struct sessions_owner owner = {.self = n,
                                         .standing = standing,
                                         .run = their_run,
                                         .met = session_met,
                                         .lost = session_lost,
                                         .finished = session_finished,
                                         .surplus = session_surplus,
                                         .status = say_status};
    int err = env_open(&n->env, config);
    if (err == 0)
        err = sessions_open(&n->sessions, &n->env, &owner);
    if (err != 0)
        return err;
    run_context_init(&n->workshop, &n->env);
    n->pooling = statistics_aggregation_open(&n->env, n->sessions);
    n->edges = edges_open(&n->env, n->sessions, &n->workshop);
    n->roll = membership_log_open(&n->env, n->sessions, n->edges);
    n->join = join_open(&n->env, n->sessions, &n->workshop);
    n->quorum = quorum_open();
    n->halt = graceful_stop_open();
    n->checkpoint = checkpoint_open(&n->env);
    n->orders = model_server_open(&n->env, n->sessions, &n->workshop);
    n->round_protocol = round_protocol_open(&n->env, n->sessions, &n->workshop);
    n->phases = phases_open(&n->env, n->sessions, &n->workshop, n->edges, n->join, n->checkpoint,
                            n->quorum, n->round_protocol);
    n->job = job_open(&n->env, n->sessions, &n->workshop, n->edges, n->phases, n->orders);
    n->resume =
        resume_open(&n->env, n->sessions, &n->workshop, n->edges, n->join, n->phases, n->job);
    n->certificate = certificate_open();
    n->final_model = final_model_open();
    bool all = n->pooling != NULL && n->phases != NULL && n->job != NULL && n->roll != NULL
               && n->resume != NULL && n->halt != NULL && n->edges != NULL && n->join != NULL
               && n->quorum != NULL && n->checkpoint != NULL && n->orders != NULL
               && n->round_protocol != NULL && n->certificate != NULL && n->final_model != NULL;
    return all ? 0 : -ENOMEM;
}

/* Frees the modules and *n. If open_machines() has failed, some modules are NULL. */
static void close_machines(struct node *n)
{
    free(n->final_model);
    certificate_close(n->certificate);
    graceful_stop_close(n->halt);
    job_close(n->job);
    resume_close(n->resume);
    phases_close(n->phases);
    round_protocol_close(n->round_protocol);
    model_server_close(n->orders);
    checkpoint_close(n->checkpoint);
    quorum_close(n->quorum);
    join_close(n->join);
    membership_log_close(n->roll);
    edges_close(n->edges);
    statistics_aggregation_close(n->pooling);
    sessions_close(n->sessions);
    env_close(&n->env);
    free(n);
}

int node_open(struct node **out, const struct node_config *config)
{
    if (config->n_bootstrap > NODE_SEEDS_MAX || strlen(config->name) > WIRE_NAME_MAX)
        return -EINVAL;
    struct node *n = calloc(1, sizeof *n);
    if (n == NULL)
        return -ENOMEM;
    int err = open_machines(n, config);
    if (err != 0)
        close_machines(n);
    else
        *out = n;
    return err;
}

void node_close(struct node *n)
{
    if (n == NULL)
        return;
    assert(!job_is_running(n->job));
    close_run(n);
    close_machines(n);
}

/* ---- messages ---- */

static void on_hello(struct node *n, const struct link *l, const struct wire_message *m)
{
    sessions_hello(n->sessions, l, &m->hello);
}

static void on_members(struct node *n, const struct link *l, const struct wire_message *m)
{
    sessions_members(n->sessions, l, &m->members);
}

static void on_ping(struct node *n, const struct link *l, const struct wire_message *m)
{
    sessions_ping(n->sessions, l, &m->ping);
}

static void on_edge(struct node *n, const struct link *l, const struct wire_message *m)
{
    edges_edge(n->edges, l, &m->edge);
}

static void on_edge_close(struct node *n, const struct link *l, const struct wire_message *m)
{
    (void)m;
    edges_edge_close(n->edges, l);
}

static void on_delta(struct node *n, const struct link *l, const struct wire_message *m)
{
    edges_delta(n->edges, l, &m->delta);
}

static void on_part(struct node *n, const struct link *l, const struct wire_message *m)
{
    edges_part(n->edges, l, &m->part);
}

static void on_beat(struct node *n, const struct link *l, const struct wire_message *m)
{
    edges_beat(n->edges, l, &m->beat);
}

static void on_probe(struct node *n, const struct link *l, const struct wire_message *m)
{
    sessions_probe(n->sessions, l, &m->probe);
}

static void on_refused(struct node *n, const struct link *l, const struct wire_message *m)
{
    admit_refused(n->sessions, l, &m->refused);
}

static void on_heard(struct node *n, const struct link *l, const struct wire_message *m)
{
    (void)l;
    sessions_vouched(n->sessions, &m->heard);
}

static void on_callback(struct node *n, const struct link *l, const struct wire_message *m)
{
    callback_came(n->sessions, l, &m->callback);
}

static void on_status_req(struct node *n, const struct link *l, const struct wire_message *m)
{
    (void)m;
    sessions_status_req(n->sessions, l);
}

/* Column statistics are used only before there is a run. Later they are ignored: the sender gets
 * the run from a HELLO. */
static void on_moments(struct node *n, const struct link *l, const struct wire_message *m)
{
    if (!n->workshop.has_run)
        statistics_aggregation_take(n->pooling, l, &m->moments);
}

static bool mixes(const struct node *n)
{
    return phases_phase(n->phases) == NODE_TRAINING || phases_phase(n->phases) == NODE_CONSENSUS;
}

/* Handles a message of the round protocol, by which a mixer without edges combines the models. The
 * message can complete a round only while this peer is idle. */
static void on_round(struct node *n, const struct link *l, const struct wire_message *m)
{
    round_protocol_hear(n->round_protocol, l, &m->round_protocol, phases_round(n->phases),
                        mixes(n) && !job_is_running(n->job));
}

/* For each message type: its handler, whether observers may send it, and the error text of an
 * unreadable message. Without a handler, each message of the type is a protocol violation. */
static const struct
{
    void (*handle)(struct node *n, const struct link *l, const struct wire_message *m);
    bool observers_too;
    const char *unreadable;
} handler_of[WIRE_TYPE_END] = {[WIRE_NONE] = {NULL, true, "not a message"},
                               [WIRE_HELLO] = {on_hello, false, "bad HELLO"},
                               [WIRE_MEMBERS] = {on_members, false, "bad MEMBERS"},
                               [WIRE_PING] = {on_ping, true, "bad PING"},
                               [WIRE_EDGE] = {on_edge, false, "bad EDGE"},
                               [WIRE_EDGE_CLOSE] = {on_edge_close, false, "bad EDGE_CLOSE"},
                               [WIRE_DELTA] = {on_delta, false, "bad DELTA"},
                               [WIRE_MODEL_REQ] = {models_asked, true, "bad MODEL_REQ"},
                               [WIRE_MODEL] = {models_came, false, "bad MODEL"},
                               [WIRE_STATUS_REQ] = {on_status_req, true, "bad STATUS_REQ"},
                               [WIRE_STATUS] = {NULL, false, "unexpected message"},
                               [WIRE_BEAT] = {on_beat, false, "bad BEAT"},
                               [WIRE_PROBE] = {on_probe, false, "bad PROBE"},
                               [WIRE_HEARD] = {on_heard, false, "bad HEARD"},
                               [WIRE_REFUSED] = {on_refused, false, "bad REFUSED"},
                               [WIRE_PART] = {on_part, false, "bad PART"},
                               [WIRE_MOMENTS] = {on_moments, false, "bad MOMENTS"},
                               [WIRE_ROUND_PROTOCOL] = {on_round, false, "bad ROUND_PROTOCOL"},
                               [WIRE_CALLBACK] = {on_callback, false, "bad CALLBACK"},
                               [WIRE_FINISH] = {certificate_heard, false, "bad FINISH"}};

/* Parses a received message and calls its handler, or reports a protocol violation. */
static void receive(struct node *n, const struct link *l, const uint8_t *p, size_t len)
{
    struct wire_message m;
    bool readable = wire_read(p, len, &n->env.commons->batch, &m);
    bool in_turn = l->role == LINK_OBSERVER
                       ? handler_of[m.type].observers_too
                       : l->role != LINK_NEW || m.type == WIRE_HELLO || m.type == WIRE_NONE;
    if (!in_turn)
        sessions_violation(n->sessions, l, "message in the wrong phase");
    else if (!readable)
        sessions_violation(n->sessions, l, handler_of[m.type].unreadable);
    else if (handler_of[m.type].handle == NULL)
        sessions_violation(n->sessions, l, "unexpected message");
    else
        handler_of[m.type].handle(n, l, &m);
}

/* ---- events ---- */

/* Resumes the run of this peer's checkpoints, even if other peers have another run. */
static void go_on(struct node *n)
{
    struct run run;
    if (resume_run(n->resume, &run) != 0)
        return;
    take_run(n, &run);
    if (!n->env.over)
        resume_start(n->resume);
}

static void start(struct node *n)
{
    assert(n->next_tick_us == 0 && !n->workshop.has_run);
    phases_start(n->phases);
    join_start(n->join);
    if (n->env.config.n_resume > 0)
        go_on(n);
    else if (statistics_aggregation_start(n->pooling))
        env_note(
            &n->env, NOTE_INFO,
            "the run starts once the column statistics of %u member%s (--min-peers) have arrived",
            n->env.config.run.min_peers, number_plural(n->env.config.run.min_peers));
    else if (n->env.config.found) {
        take_run(n, &n->env.config.run);
        if (!n->env.over)
            resume_restore_certified(n->resume);
    } else
        env_note(&n->env, NOTE_INFO, "waiting for a peer of the bootstrap list to send a run");
    n->next_tick_us = n->env.now_us;
    sessions_start(n->sessions);
}

/* Ends the node by request, as soon as possible: announces that this peer leaves, and writes the
 * model. */
static void stop(struct node *n)
{
    n->stopping = true;
    if (job_is_running(n->job) || n->env.over || graceful_stop_waits(n->halt, n->phases))
        return;
    /* A peer that has voted on the end of the run (finish protocol) does not announce that it
     * leaves. The announcement would reduce the number of voters, and votes that were a minority
     * before could become a quorum. */
    if (!certificate_has_voted(n))
        sessions_leave(n->sessions);
    resume_copy_last(n->resume);
    n->env.fx->write_model = join_has_model(n->join);
    env_end(&n->env, 0);
}

/* Abandons the run, because no live member has its initial model any more. Other peers then send
 * their runs again. If there are no other peers, look_for_initial() proposes this peer's run. */
static void give_up_run(struct node *n)
{
    env_note(&n->env, NOTE_WARNING,
             "no member has the initial model of the run any more: the run is abandoned");
    leave_run(n);
    n->given_up_us = n->env.now_us;
    sessions_run_fixed(n->sessions);
}

static void look_for_initial(struct node *n)
{
    bool alone = n->given_up_us > 0 && n->env.now_us - n->given_up_us > PROPOSE_RUN_US;
    if (n->workshop.has_run)
        n->given_up_us = 0;
    if (!n->workshop.has_run && alone && n->env.config.found) {
        take_run(n, &n->env.config.run);
        sessions_run_fixed(n->sessions);
    }
    if (!n->workshop.lacks || resume_is_waiting(n->resume))
        return;
    enum initial_said said = join_initial(n->join);
    if (said == INITIAL_HERE)
        sessions_run_fixed(n->sessions);
    else if (said == INITIAL_NOWHERE)
        give_up_run(n);
}

/* Before there is a run, exchanges column statistics. One member creates the run from them. */
static void look_for_run(struct node *n)
{
    struct run run;
    if (!n->workshop.has_run && statistics_aggregation_look(n->pooling, &run)) {
        take_run(n, &run);
        sessions_run_fixed(n->sessions);
    }
    if (n->workshop.has_run)
        statistics_aggregation_forget(n->pooling);
}

/* Handles the end of a job. The job of the finishing phase is the last, so its model is written. */
static void worked(struct node *n)
{
    assert(job_is_running(n->job));
    job_over(n->job);
    /* The training program has left the run, so node_step() ends the node. */
    if (job_abandoned(n->job)) {
        n->stopping = true;
        graceful_stop_at_once(n->halt);
        return;
    }
    if (!job_done(n->job))
        return;
    if (job_is_half_done(n->job)) {
        phases_ahead(n->phases);
        return;
    }
    phases_job_done(n->phases, job_takes_steps(n->job));
    n->env.fx->measured = true;
    if (phases_status(n->phases).copies)
        resume_copy(n->resume);
    n->env.fx->write_model |= phases_phase(n->phases) == NODE_FINISHING;
}

static void handle(struct node *n, const struct node_event *ev)
{
    const struct link *l = NULL;
    switch (ev->type) {
    case NODE_START:
        start(n);
        break;
    case NODE_TIMER:
        break;
    case NODE_SENT:
        l = model_server_sent(n->orders, ev->link);
        if (l != NULL)
            models_serve(n, l);
        break;
    case NODE_LINK_UP:
        sessions_up(n->sessions, ev);
        break;
    case NODE_LINK_DOWN:
        sessions_down(n->sessions, ev);
        break;
    case NODE_DIAL_FAILED:
        sessions_dial_failed(n->sessions, ev);
        break;
    case NODE_RESOLVED:
        sessions_resolved(n->sessions, ev);
        break;
    case NODE_RECV:
        l = sessions_heard(n->sessions, ev->link);
        if (l == NULL)
            break;
        edges_heard(n->edges, l);
        receive(n, l, ev->recv.bytes, ev->recv.len);
        break;
    case NODE_HEARD:
        l = sessions_heard(n->sessions, ev->link);
        if (l != NULL && ev->heard.record)
            edges_coming(n->edges, l);
        break;
    case NODE_PART:
        job_part(n->job, ev->part.n);
        break;
    case NODE_SIGNED:
        phases_sign(n->phases);
        break;
    case NODE_WORKED:
        worked(n);
        break;
    case NODE_KEPT:
        final_model_kept(n, ev->kept.why);
        break;
    case NODE_ADMIT:
        admit_list(n->sessions, ev);
        break;
    case NODE_WRITTEN:
        checkpoint_written(n->checkpoint, ev->written.beat);
        env_debug(&n->env, "writing the checkpoint of round %llu has ended",
                  (unsigned long long)ev->written.beat);
        break;
    case NODE_CARRIED:
        job_carried(n->job, ev);
        break;
    case NODE_STOP: /* A second NODE_STOP does not wait for a checkpoint. */
        if (n->stopping)
            graceful_stop_at_once(n->halt);
        stop(n);
        break;
    }
}

/* ---- time ---- */

/* Reports a pause of this process, for example by SIGSTOP, to the failure detector, and warns the
 * user of a long one. Timers need no correction: node time did not advance during the pause. */
static void continue_after_pause(struct node *n, int64_t pause_us)
{
    failure_detector_continue(n->sessions, pause_us);
    /* A joining peer may read its data set within one step, which looks like a pause. */
    if (pause_us > SILENT_US && phases_phase(n->phases) != NODE_JOINING)
        env_note(&n->env, NOTE_WARNING,
                 "round %llu: this process was paused for %.0f s; the other peers may have "
                 "continued without it",
                 (unsigned long long)phases_round(n->phases), (double)pause_us * 1e-6);
}

static void tick(struct node *n)
{
    int64_t now = n->env.now_us;
    if (now < n->next_tick_us)
        return;
    sessions_tick(n->sessions);
    edges_tick(n->edges);
    membership_log_tick(n->roll);
    if (job_is_running(n->job))
        phases_watch_job(n->phases);
    n->next_tick_us = now + TICK_US;
}

/* Chooses the edges again if the members have changed. Does so between two jobs only, because the
 * worker uses the edges. A peer that has dropped its model to fetch another one opens no edge. It
 * still dials its neighbours in the graph, because the monitor rings of the failure detector do not
 * dial them. */
static void update_edges(struct node *n)
{
    if (!n->workshop.ready || n->env.over)
        return;
    if (!join_has_model(n->join)) {
        edges_call(n->edges);
        return;
    }
    if (!job_is_running(n->job) && edges_outdated(n->edges)) {
        edges_rebuild(n->edges);
        job_share(n->job);
    }
    edges_update(n->edges);
}

static void update_phases(struct node *n)
{
    if (job_is_running(n->job) || n->env.over || !n->workshop.ready)
        return;
    if (job_is_half_done(n->job)) {
        job_go_on(n->job);
        return;
    }
    struct phases_input in = {.diverged = job_diverged(n->job),
                              .certificate = certificate_known(n)};
    in.prospect = certificate_awaited(n)    ? CERTIFICATE_AWAITED
                  : certificate_possible(n) ? CERTIFICATE_POSSIBLE
                                            : CERTIFICATE_CLOSED;
    switch (phases_update(n->phases, &in)) {
    /* No job starts now, so models that were requested during the previous job are sent. */
    case PHASES_WAIT:
        if (phases_phase(n->phases) >= NODE_TRAINING)
            model_server_serve_idle(n->orders, phases_round(n->phases), !models_mix(n));
        break;
    case PHASES_BEGUN:
        sessions_hello_all(n->sessions);
        break;
    case PHASES_JOB:
        job_start(n->job);
        break;
    case PHASES_LAST_JOB:
        job_judge(n->job);
        job_last(n->job);
        break;
    /* The node ends only after the model was stored, or could not be stored. */
    case PHASES_END:
        if (final_model_state(n) == FINAL_MODEL_PENDING)
            break;
        sessions_last_news(n->sessions);
        env_end(&n->env, result_facts_code(n));
        break;
    }
}

static int64_t wake_us(const struct node *n)
{
    int64_t job = phases_status(n->phases).wake_us;
    if (n->env.over)
        return INT64_MAX;
    if (certificate_wake_us(n) < job)
        job = certificate_wake_us(n);
    return job > n->env.now_us && job < n->next_tick_us ? job : n->next_tick_us;
}

/* Checks what holds between modules after each step. O(1). */
static void node_check(const struct node *n, const struct node_effects *fx)
{
    const struct run_context *w = &n->workshop;
    enum node_phase phase = phases_phase(n->phases);
    bool runs = job_is_running(n->job);
    assert((!w->ready || w->has_run) && (!w->lacks || w->ready));
    assert(
        w->ready
        || (!runs && edges_count(n->edges) == 0 && !round_protocol_is_active(n->round_protocol)));
    assert((!fx->work || runs) && (!fx->write_model || join_has_model(n->join)));
    if (n->env.over)
        return;
    assert(!runs || phase != NODE_JOINING);
    assert(runs || (!job_is_half_done(n->job) && phases_busy_us(n->phases) == 0));
    assert(final_model_state(n) == FINAL_MODEL_PENDING || (phase == NODE_FINISHING && !runs));
}

/* Handles the event, then calls each module to do what is due. Modules have no timers of their
 * own. */
void node_step(struct node *n, const struct node_event *ev, struct node_effects *fx)
{
    bool was_over = n->env.over;
    int64_t pause_us = env_begin_step(&n->env, ev->now_us, n->next_tick_us, fx);
    model_server_release(n->orders);
    parts_release(n->edges);
    round_protocol_release(n->round_protocol);
    n->clock_ms = ev->io.clock_ms;
    if (ev->type == NODE_WORKED || ev->type == NODE_TIMER) {
        n->bytes_sent = ev->io.bytes_sent;
        n->bytes_received = ev->io.bytes_received;
        n->n_strangers = ev->io.n_strangers;
    }
    if (pause_us > 0 && !n->env.over)
        continue_after_pause(n, pause_us);
    if (!n->env.over)
        handle(n, ev);
    else if (ev->type == NODE_WORKED)
        job_over(n->job);
    if (!n->env.over && n->stopping && !job_is_running(n->job))
        stop(n);
    if (!n->env.over) {
        final_model_update(n);
        certificate_update(n);
        model_server_certify(n->orders, certificate_covers(n));
        tick(n);
        sessions_news(n->sessions);
        look_for_run(n);
        look_for_initial(n);
        if (!resume_is_waiting(n->resume) || resume_look(n->resume)) {
            update_edges(n);
            if (mixes(n) && !n->env.over)
                round_protocol_look(n->round_protocol, phases_round(n->phases),
                                    !job_is_running(n->job));
            update_phases(n);
        }
    }
    if (n->env.over && !was_over)
        phase_log_left(n->phases, n->stopping);
    env_end_step(&n->env);
    node_check(n, fx);
    fx->exit = n->env.over && !job_is_running(n->job);
    fx->exit_code = n->env.exit_code;
    fx->wake_us = env_driver_us(&n->env, wake_us(n));
}

void node_work(struct node *n, int64_t (*clock_us)(void))
{
    job_work(n->job, clock_us);
}

uint64_t node_checkpoint(struct node *n, struct state *s)
{
    return resume_take_copy(n->resume, s);
}
