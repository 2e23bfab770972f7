/* peer/cmd/sim_result.c -- computes the result of a simulation and prints it as text or one JSON
 * object. */
#include "nn/math/number.h"
#include "peer/cmd/drift_mean.h"
#include "peer/cmd/progress.h"
#include "peer/cmd/sim.h"
#include "peer/run_log/summary.h"
#include "peer/uv/metrics.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

struct result
{
    double accuracy_min, accuracy_max, seconds;
    struct cmd_drift_mean estimated;
    struct consensus exact;
    uint64_t rounds, settle_rounds, sent, received;
    /* Statistics of the codecs that --compress auto used at the end of training. */
    struct cmd_progress_codecs rungs;
    struct verdict_facts facts; /* Facts from all peers, from which the verdict is computed. */
    /* Verdict on the run. It uses the exact consensus distance of the models. */
    struct verdict outcome;
};

/* Argument of the callback ended_model(). `which`: numbers of the peers that took part until the
 * end of the run, and so have a final model. */
struct ended
{
    const struct simulation *s;
    uint32_t *which;
};

static const float *ended_model(void *self, size_t i)
{
    const struct ended *e = self;
    const struct segment *segments;
    size_t n_segments, n_params;
    return node_model(sim_node(e->s->world, e->which[i]), &segments, &n_segments, &n_params);
}

/* Returns true if the scenario has killed peer i and has not restarted it. */
static bool is_killed(const struct simulation *s, uint32_t i)
{
    return sim_node(s->world, i) == NULL;
}

/* Returns true if peer i took part until the end of the run, with any verdict. Sets `*code` to the
 * exit code of the peer. */
static bool has_ended(const struct simulation *s, uint32_t i, int *code)
{
    if (!sim_ended(s->world, i, code) || is_killed(s, i))
        *code = CMD_FAILED;
    return *code == CMD_OK || *code == CMD_APART;
}

/* Returns true if the scenario made peer i leave, as SIGTERM does. Such a peer is no longer a
 * member. */
static bool has_left(const struct simulation *s, uint32_t i)
{
    int code;
    return sim_left(s->world, i) && has_ended(s, i, &code) && code == CMD_OK;
}

/* Computes the exact consensus distance of the models of all peers that took part until the end of
 * the run. Byzantine peers, and peers that left, are not included. */
static void compare(const struct simulation *s, struct consensus *c)
{
    struct ended e = {.s = s, .which = calloc(s->n, sizeof *e.which)};
    const struct segment *segments;
    size_t n = 0, n_segments, n_params;
    int code;
    *c = consensus_none;
    for (uint32_t i = 0; i < s->n && e.which != NULL; i++)
        if (has_ended(s, i, &code) && !has_left(s, i) && !s->liar[i])
            e.which[n++] = i;
    /* The consensus distance stays unknown if there are no models or memory is short. */
    if (n > 0
        && node_model(sim_node(s->world, e.which[0]), &segments, &n_segments, &n_params) != NULL)
        (void)!consensus_measure(c, n, segments_trained(segments, n_segments), n_params,
                                 ended_model, &e);
    free(e.which);
}

/* Sets the facts for the verdict on a run that no peer has completed. If peers were asked to leave,
 * the run counts as stopped. */
static void judge_no_end(const struct simulation *s, struct result *r)
{
    struct verdict_facts *f = &r->facts;
    if (s->never_begins[0] != '\0') {
        f->failed = CMD_USAGE;
        f->failure = s->never_begins;
    } else if (f->n_left > 0) {
        f->stopped = true;
        f->rounds_claimed = r->rounds;
    } else {
        f->failed = CMD_FAILED;
        f->failure = "no peer reached the end of the run";
    }
}

/* Computes the verdict from the facts of all honest peers, and from the exact consensus distance of
 * their models. */
static void judge(const struct simulation *s, struct result *r)
{
    for (uint32_t i = 0; i < s->n; i++) {
        char name[32];
        struct verdict_facts own;
        int code;
        if (s->liar[i])
            continue;
        snprintf(name, sizeof name, "peer-%u", i);
        if (is_killed(s, i)) {
            verdict_add_peer(&r->facts, &(struct verdict_peer){.name = name, .died = true});
            continue;
        }
        node_facts(sim_node(s->world, i), &own);
        struct verdict_peer p = {.name = name,
                                 .left = has_left(s, i),
                                 .died = !has_ended(s, i, &code) && s->never_begins[0] == '\0',
                                 .ended = has_ended(s, i, &code),
                                 .diverged = own.diverged,
                                 .unlearnt = own.unlearnt,
                                 .infinite = own.infinite,
                                 .rounds_claimed = own.rounds_claimed,
                                 .rounds_skipped = own.rounds_skipped,
                                 .joined_round = own.joined_round};
        verdict_add_peer(&r->facts, &p);
        if (sim_ended(s->world, i, &code) && !has_ended(s, i, &code)) {
            r->facts.failed = CMD_FAILED;
            r->facts.failure = "at least one peer failed before the end of the run";
        }
        r->facts.quorum = own.quorum;
        r->facts.target = own.target;
        r->facts.n_rounds = own.n_rounds;
    }
    if (r->facts.n_among == 0 && r->facts.failed == CMD_OK)
        judge_no_end(s, r);
    r->facts.exact = true;
    r->facts.distance = r->exact.trained.relative;
    verdict_judge(&r->outcome, &r->facts);
}

/* Collects the figures of all peers. Figures are rounded in the same way as in the lines that
 * `hearsay local` reads from its peers, so that both commands print the same means. */
static void collect(struct simulation *s, struct result *r, json_t *peers)
{
    *r = (struct result){
        .accuracy_min = INFINITY, .accuracy_max = -INFINITY, .seconds = cmd_sim_seconds(s)};
    for (uint32_t i = 0; i < s->n; i++) {
        struct node_progress p;
        char name[32];
        int code;
        snprintf(name, sizeof name, "peer-%u", i);
        if (is_killed(s, i)) {
            json_array_append_new(
                peers, json_pack("{s:s, s:n, s:b}", "name", name, "exit_code", "killed", true));
            continue;
        }
        (void)has_ended(s, i, &code);
        node_progress(sim_node(s->world, i), &p);
        sim_totals(s->world, i, &p.bytes_sent, &p.bytes_received);
        p.accuracy = uv_metrics_rounded(p.accuracy);
        if (!s->liar[i] && !has_left(s, i)) {
            r->accuracy_min = fmin(r->accuracy_min, p.accuracy);
            r->accuracy_max = fmax(r->accuracy_max, p.accuracy);
            cmd_drift_mean_add(&r->estimated, uv_metrics_rounded(p.relative_drift), p.drift_round);
        }
        r->rounds = p.round > r->rounds ? p.round : r->rounds;
        r->settle_rounds = p.settle_rounds > r->settle_rounds ? p.settle_rounds : r->settle_rounds;
        r->sent += p.bytes_sent;
        r->received += p.bytes_received;
        cmd_progress_codecs_add(&r->rungs, p.rung, p.excess);
        struct figure_values v;
        figure_init(&v);
        v.node = p;
        /* Show the results of the last evaluation, even if it was not in the last round. */
        v.node.evaluated = true;
        v.time_s = (double)sim_now_us(s->world) * 1e-6;
        json_t *line = uv_metrics_object(&v);
        json_object_set_new(line, "name", json_string(name));
        json_object_set_new(line, "exit_code", json_integer(code));
        json_object_set_new(line, "attacks", json_boolean(s->liar[i]));
        json_object_set_new(line, "left", json_boolean(has_left(s, i)));
        (void)uv_metrics_add(line, &v, FIGURE_SIM);
        json_object_set_new(line, "model",
                            s->files != NULL && s->files[i].has_model ? json_string(CMD_SIM_MODEL)
                                                                      : json_null());
        json_array_append_new(peers, line);
    }
    compare(s, &r->exact);
    judge(s, r);
}

/* Returns the JSON object that --json prints at the end. Returns NULL if there is no memory. Takes
 * ownership of `peers`. */
static json_t *closing_object(const struct simulation *s, const struct result *r, json_t *peers,
                              bool interrupted)
{
    json_t *j = json_pack(
        "{s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:f, s:f, s:I, s:I, s:I}", "peers",
        peers, "verdict", diary_verdict(&r->outcome, &r->facts), "n_peers", (json_int_t)s->n,
        "accuracy_min", uv_metrics_number(r->accuracy_min), "accuracy_max",
        uv_metrics_number(r->accuracy_max), "drift", uv_metrics_number(r->exact.trained.xi),
        "relative_drift", uv_metrics_number(r->exact.trained.relative), "statistics_drift",
        uv_metrics_number(r->exact.statistics.xi), "statistics_relative_drift",
        uv_metrics_number(r->exact.statistics.relative), "rounds", (json_int_t)r->rounds,
        "settle_rounds", (json_int_t)r->settle_rounds, "seconds", r->seconds, "simulated_s",
        (double)sim_now_us(s->world) * 1e-6, "events", (json_int_t)sim_events(s->world),
        "bytes_sent", (json_int_t)r->sent, "bytes_received", (json_int_t)r->received);
    if (j == NULL)
        return NULL;
    cmd_drift_mean_json(&r->estimated, j);
    json_object_set_new(j, "interrupted", json_boolean(interrupted));
    /* A simulation writes no checkpoints, so the same command starts from the beginning. */
    json_object_set_new(j, "resumes_at", json_null());
    return j;
}

static void print_json(const json_t *j)
{
    json_dumpf(j, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
    putchar('\n');
}

static void print_text(const struct simulation *s, const struct result *r)
{
    char xi[CMD_PROGRESS_TEXT], relative[CMD_PROGRESS_TEXT], estimated[CMD_PROGRESS_TEXT];
    char all[CMD_PROGRESS_TEXT], each[CMD_PROGRESS_TEXT], low[CMD_PROGRESS_TEXT],
        high[CMD_PROGRESS_TEXT];
    printf(
        "%u peer%s, %" PRIu64 " round%s and %" PRIu64
        " of the consensus phase, %.2f s simulated in %.1f s\naccuracy        %s to %s\ndrift      "
        "     %s, relative %s (exact); estimated by the peers: relative %s\n",
        s->n, number_plural(s->n), r->rounds, number_plural(r->rounds), r->settle_rounds,
        (double)sim_now_us(s->world) * 1e-6, r->seconds, cmd_progress_percent(low, r->accuracy_min),
        cmd_progress_percent(high, r->accuracy_max),
        cmd_progress_drift(xi, "%.4g", r->exact.trained.xi),
        cmd_progress_drift(relative, "%.3g", r->exact.trained.relative),
        cmd_progress_drift_at(estimated, cmd_drift_mean_value(&r->estimated), r->estimated.round));
    if (r->exact.statistics.dim > 0)
        printf("statistics      %s, relative %s (running means and variances, not included in the "
               "drift)\n",
               cmd_progress_drift(xi, "%.4g", r->exact.statistics.xi),
               cmd_progress_drift(relative, "%.3g", r->exact.statistics.relative));
    if (r->facts.n_left > 0)
        printf("left            %u peer%s, because of the scenario; the figures above are of the "
               "other peers\n",
               r->facts.n_left, number_plural(r->facts.n_left));
    cmd_progress_codecs_print(&r->rungs, stdout);
    uint64_t n_rounds = r->rounds + r->settle_rounds;
    printf(
        "bytes sent      %s by all peers, %s per peer and round, including the consensus phase\n",
        cmd_progress_bytes(all, r->sent),
        cmd_progress_bytes(each, n_rounds > 0 ? r->sent / s->n / n_rounds : 0));
    printf("%s\n", r->outcome.text);
}

int cmd_sim_result(struct simulation *s)
{
    struct result r;
    json_t *peers = json_array();
    collect(s, &r, peers);
    json_t *j = closing_object(s, &r, peers, false);
    if (j == NULL)
        return cmd_fail(s->o, CMD_FAILED, "out of memory for the result");
    bool finished = r.outcome.kind != VERDICT_FAILED;
    int code = r.outcome.exit_code;
    if (code == CMD_OK && s->n_lines_lost > 0)
        code = cmd_fail(s->o, CMD_FAILED,
                        "%llu line%s of metrics.jsonl could not be written; the "
                        "models are stored",
                        (unsigned long long)s->n_lines_lost, number_plural(s->n_lines_lost));
    if (cmd_out_write_summary(s->o, s->out, j, finished, code) != CMD_OK)
        code = CMD_FAILED;
    if (options_flag(s->o, "json"))
        print_json(j);
    else
        print_text(s, &r);
    json_decref(j);
    int flushed = cmd_finish(s->o);
    return flushed != CMD_OK ? flushed : code;
}

int cmd_sim_interrupted(struct simulation *s)
{
    struct result r;
    struct node_progress p = {0};
    json_t *peers = json_array();
    collect(s, &r, peers);
    /* No peer has ended the run, so the models of all peers are compared in their present state. */
    sim_drift(s->world, &r.exact);
    if (!is_killed(s, 0))
        node_progress(sim_node(s->world, 0), &p);
    r.facts = (struct verdict_facts){.stopped = true,
                                     .distance = (double)NAN,
                                     .n_members = s->n,
                                     .n_rounds = p.n_rounds,
                                     .rounds_claimed = r.rounds};
    verdict_judge(&r.outcome, &r.facts);
    r.outcome.exit_code = CMD_INTERRUPTED;
    json_t *j = closing_object(s, &r, peers, true);
    cmd_fail(s->o, CMD_OK, "interrupted at round %" PRIu64 " of %" PRIu64 "%s", r.rounds,
             p.n_rounds, s->out != NULL ? "; the same command starts again from round 0" : "");
    if (j != NULL && options_flag(s->o, "json")) {
        (void)cmd_out_write_summary(s->o, NULL, j, false, CMD_INTERRUPTED);
        print_json(j);
    } else if (j != NULL) {
        print_text(s, &r);
    }
    json_decref(j);
    (void)cmd_finish(s->o);
    return CMD_INTERRUPTED;
}
