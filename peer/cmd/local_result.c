/* peer/cmd/local_result.c -- computes and prints the result of `hearsay local`, from the output and
 * the model files of the peers.
 *
 * Each peer process prints lines of metrics while it runs, and a summary as its last line. The
 * consensus distance is computed from the model files that the peers wrote.
 */
#include "peer/cmd/local_result.h"

#include "nn/files/safetensors.h"
#include "nn/math/number.h"
#include "peer/cmd/drift_mean.h"
#include "peer/cmd/files.h"
#include "peer/cmd/out.h"
#include "peer/run_log/summary.h"
#include "peer/trace/log_line.h"
#include "peer/uv/metrics.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Largest number of names in the list of peers without a model. */
enum { NAMED = 8 };

int cmd_local_result_open(struct cmd_local_result *r, uint32_t n, const char *out)
{
    r->n = n;
    r->out = out;
    r->consensus = consensus_none;
    r->name = calloc(n, sizeof *r->name);
    r->row = calloc(n, sizeof *r->row);
    r->exit_code = calloc(n, sizeof *r->exit_code);
    r->given_up = calloc(n, sizeof *r->given_up);
    r->summary = calloc(n, sizeof(json_t *));
    if (r->name == NULL || r->row == NULL || r->exit_code == NULL || r->given_up == NULL
        || r->summary == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++)
        snprintf(r->name[i], sizeof r->name[i], "peer-%u", (unsigned)i);
    cmd_local_result_forget(r);
    return 0;
}

void cmd_local_result_forget(struct cmd_local_result *r)
{
    for (uint32_t i = 0; i < r->n; i++) {
        r->row[i] = (struct cmd_progress_row){.name = r->name[i],
                                              .phase = "starting",
                                              .loss = NAN,
                                              .accuracy = NAN,
                                              .relative_drift = NAN};
        r->exit_code[i] = 0;
        json_decref(r->summary[i]);
        r->summary[i] = NULL;
    }
}

void cmd_local_result_close(struct cmd_local_result *r)
{
    for (uint32_t i = 0; i < r->n && r->summary; i++)
        json_decref(r->summary[i]);
    model_close(&r->model);
    free(r->name);
    free(r->row);
    free(r->exit_code);
    free(r->given_up);
    free(r->summary);
}

static bool file_of(const struct cmd_local_result *r, uint32_t i, const char *name,
                    char path[CMD_PATH_MAX])
{
    char dir[CMD_PATH_MAX];
    return cmd_path(dir, r->out, r->name[i]) == 0 && cmd_path(path, dir, name) == 0;
}

/* ---- Reading lines from the peers ---- */

/* Returns the number at `key` in a line from a peer. Returns NaN if the line has no such number. */
static double number(const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);
    return json_is_number(v) ? json_number_value(v) : NAN;
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static uint64_t whole(const json_t *object, const char *key)
{
    json_int_t v = json_integer_value(json_object_get(object, key));
    return v > 0 ? (uint64_t)v : 0;
}

/* Copies the figures of one line from a peer to the peer's row of the display. Most rounds have no
 * evaluation, so a row keeps its accuracy until a line with a new one arrives. */
static void take_figures(struct cmd_progress_row *row, const json_t *object)
{
    const char *phase = json_string_value(json_object_get(object, "phase"));
    snprintf(row->phase, sizeof row->phase, "%s", phase ? phase : "?");
    row->round = whole(object, "round");
    row->rounds = whole(object, "rounds");
    row->settle_rounds = whole(object, "settle_rounds");
    row->loss = number(object, "loss");
    if (isfinite(number(object, "accuracy"))) {
        row->accuracy = number(object, "accuracy");
        row->accuracy_round = whole(object, "accuracy_round");
        row->accuracy_samples = whole(object, "accuracy_samples");
    }
    row->relative_drift = number(object, "relative_drift");
    row->drift_round = whole(object, "drift_round");
    row->bytes_sent = whole(object, "bytes_sent");
    row->bytes_received = whole(object, "bytes_received");
}

/* A peer prints notes (messages for users) and metrics on the same pipe. A line that is neither a
 * note nor metrics is ignored. */
bool cmd_local_result_line(struct cmd_local_result *r, uint32_t i, const char *text,
                           struct cmd_local_note *note)
{
    json_t *object = json_loads(text, 0, NULL);
    bool is_note = json_object_get(object, "note") != NULL && note != NULL;
    if (is_note) {
        *note = (struct cmd_local_note){.level = NOTE_INFO};
        (void)log_level_read(text_of(object, "level"), &note->level);
        snprintf(note->module, sizeof note->module, "%s", text_of(object, "module"));
        snprintf(note->text, sizeof note->text, "%s", text_of(object, "note"));
    } else if (json_object_get(object, "phase")) {
        take_figures(&r->row[i], object);
        r->row[i].wanted_drift = r->run.final_drift;
        if (json_is_true(json_object_get(object, "summary"))) {
            json_decref(r->summary[i]);
            r->summary[i] = json_incref(object);
        }
    }
    json_decref(object);
    return is_note;
}

/* ---- Computing the exact consensus distance ---- */

struct summary_reader
{
    const struct cmd_local_result *r;
    uint32_t *which; /* Index of the peer that wrote each compared model. */
    float *x;
    char error[DATA_ERROR_MAX];
};

static const float *read_model(void *self, size_t i)
{
    struct summary_reader *a = self;
    char path[CMD_PATH_MAX];
    if (!file_of(a->r, a->which[i], "model.safetensors", path)
        || safetensors_read(path, a->r->model.segments, a->r->model.n_segments, a->x, a->error) < 0)
        return NULL;
    return a->x;
}

/* Returns true if peer i took part until the end of the run, with any verdict. */
static bool has_ended(const struct cmd_local_result *r, uint32_t i)
{
    return r->summary[i] != NULL && (r->exit_code[i] == CMD_OK || r->exit_code[i] == CMD_APART);
}

/* Returns true if peer i has stored a model: its summary says so, and the file exists. The file
 * alone is no proof, because it may be from an earlier start. */
static bool has_stored(const struct cmd_local_result *r, uint32_t i)
{
    char path[CMD_PATH_MAX];
    return json_is_string(json_object_get(r->summary[i], "model"))
           && file_of(r, i, "model.safetensors", path) && access(path, F_OK) == 0;
}

/* Returns true if peer i took part until the end of the run and stored a model. A peer that
 * diverged also stores a model, unless a parameter is not finite. */
static bool has_model(const struct cmd_local_result *r, uint32_t i)
{
    return has_ended(r, i) && has_stored(r, i);
}

static const json_t *verdict_of(const struct cmd_local_result *r, uint32_t i)
{
    return json_object_get(r->summary[i], "verdict");
}

/* Returns true if peer i was asked to stop before the end of the run. Such a peer has left the
 * cluster, and its model is not compared with the others. */
static bool was_stopped(const struct cmd_local_result *r, uint32_t i)
{
    const char *kind = text_of(verdict_of(r, i), "kind");
    return strcmp(kind, verdict_word(VERDICT_STOPPED)) == 0;
}

/* Returns true if the run ended without peer i, according to the peer's own verdict. */
static bool was_away(const struct cmd_local_result *r, uint32_t i)
{
    const char *kind = text_of(verdict_of(r, i), "kind");
    return strcmp(kind, verdict_word(VERDICT_AWAY)) == 0;
}

static bool is_out(const struct cmd_local_result *r, uint32_t i)
{
    return was_stopped(r, i) || was_away(r, i) || r->given_up[i];
}

static int compare(struct cmd_local_result *r, const struct options *o)
{
    struct summary_reader a = {.r = r,
                               .which = calloc(r->n, sizeof *a.which),
                               .x = calloc(r->model.n_params, sizeof(float))};
    size_t n = 0;
    int err = a.which && a.x ? 0 : -ENOMEM;
    for (uint32_t i = 0; i < r->n && err == 0; i++) {
        if (has_model(r, i) && !is_out(r, i))
            a.which[n++] = i;
    }
    if (err == 0 && n > 0)
        err = consensus_measure(&r->consensus, n,
                                segments_trained(r->model.segments, r->model.n_segments),
                                r->model.n_params, read_model, &a);
    free(a.which);
    free(a.x);
    if (err == -ENOMEM)
        return cmd_fail(o, CMD_FAILED, "out of memory for the models");
    return err < 0 ? cmd_fail(o, CMD_FAILED, "%s", a.error) : CMD_OK;
}

/* ---- Deciding the verdict ---- */

/* Computes the verdict from the exact consensus distance of the model files. The distances that the
 * peers report are not used. */
static void judge(struct cmd_local_result *r)
{
    struct verdict_facts *f = &r->facts;
    for (uint32_t i = 0; i < r->n; i++) {
        const json_t *own = verdict_of(r, i);
        struct verdict_peer p = {.name = r->name[i],
                                 .left = was_stopped(r, i) && !r->given_up[i],
                                 .died = !has_ended(r, i) || r->given_up[i],
                                 .absent =
                                     was_away(r, i) ? "the run ended without this peer" : NULL,
                                 .ended = has_model(r, i),
                                 .diverged = text_of(r->summary[i], "diverged"),
                                 .unlearnt = text_of(r->summary[i], "unlearnt"),
                                 .infinite = json_is_false(json_object_get(own, "finite")),
                                 .rounds_claimed = whole(r->summary[i], "round"),
                                 .rounds_skipped = whole(r->summary[i], "rounds_skipped"),
                                 .joined_round = whole(r->summary[i], "joined_round")};
        verdict_add_peer(f, &p);
    }
    if (r->failed) {
        f->failed = CMD_FAILED;
        f->failure = "at least one peer failed before the end of the run";
    }
    f->quorum = r->run.quorum;
    f->target = r->run.final_drift;
    f->n_rounds = r->run.rounds;
    f->exact = true;
    f->distance = r->consensus.trained.relative;
    verdict_judge(&r->outcome, f);
}

/* ---- Printing the result ---- */

/* Figures of the run, summed or compared over all peers. */
struct totals
{
    double accuracy_min, accuracy_max;
    struct cmd_drift_mean estimated;
    uint64_t rounds, settle_rounds, sent, received;
    /* Round and number of samples of the evaluation that gave accuracy_min. */
    uint64_t accuracy_round, accuracy_samples;
    uint32_t n;
};

/* Finds the smallest and the largest accuracy of the peers. A peer that left, or was away when the
 * run ended, is skipped, because its accuracy is from an earlier round. With `of_all` no peer is
 * skipped. The caller sets `of_all` if all peers left or were away. */
static void add_accuracies(const struct cmd_local_result *r, struct totals *t, bool of_all)
{
    t->accuracy_min = INFINITY;
    t->accuracy_max = -INFINITY;
    for (uint32_t i = 0; i < r->n; i++) {
        double accuracy = number(r->summary[i], "accuracy");
        if (r->summary[i] == NULL || (is_out(r, i) && !of_all))
            continue;
        t->accuracy_max = fmax(t->accuracy_max, accuracy);
        if (accuracy < t->accuracy_min) {
            t->accuracy_min = accuracy;
            t->accuracy_round = whole(r->summary[i], "accuracy_round");
            t->accuracy_samples = whole(r->summary[i], "accuracy_samples");
        }
    }
}

static struct totals add_up(const struct cmd_local_result *r)
{
    struct totals t = {0};
    uint32_t n_out = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        const struct cmd_progress_row *row = &r->row[i];
        t.sent += row->bytes_sent;
        t.received += row->bytes_received;
        t.rounds = row->round > t.rounds ? row->round : t.rounds;
        t.settle_rounds =
            row->settle_rounds > t.settle_rounds ? row->settle_rounds : t.settle_rounds;
        if (r->summary[i] == NULL)
            continue;
        t.n++;
        n_out += is_out(r, i);
        cmd_drift_mean_add(&t.estimated, number(r->summary[i], "relative_drift"),
                           whole(r->summary[i], "drift_round"));
    }
    add_accuracies(r, &t, n_out == t.n);
    return t;
}

/* Returns the JSON object of peer i. For a peer without a summary the values are null. */
static json_t *peer_object(const struct cmd_local_result *r, uint32_t i)
{
    const struct figure *f;
    json_t *j = json_object();
    json_object_set_new(j, "name", json_string(r->name[i]));
    json_object_set_new(j, "exit_code", json_integer(r->exit_code[i]));
    for (uint32_t k = 1; (f = figure_at(FIGURE_LOCAL, k)) != NULL; k++) {
        json_t *v = json_object_get(r->summary[i], f->name);
        json_object_set_new(j, f->name, v ? json_incref(v) : json_null());
    }
    return j;
}

/* Returns the run description, which consists of lines "key=value", as a JSON object. */
static json_t *run_object(const struct run *run)
{
    char text[WIRE_RUN_MAX + 1], *rest = text, *line;
    json_t *j = json_object();
    run_text(run, text);
    while ((line = strsep(&rest, "\n")) != NULL) {
        char *value = strchr(line, '=');
        if (value == NULL)
            continue;
        *value++ = '\0';
        json_object_set_new(j, line, json_string(value));
    }
    return j;
}

/* Returns the JSON object that --json prints at the end. cmd_out_write_summary() adds "finished"
 * and "exit_code" to it. */
static json_t *closing_object(const struct cmd_local_result *r, const struct totals *t,
                              bool interrupted)
{
    const struct consensus *c = &r->consensus;
    json_t *j = json_object(), *peers = json_array();
    for (uint32_t i = 0; i < r->n; i++)
        json_array_append_new(peers, peer_object(r, i));
    json_object_set_new(j, "verdict", diary_verdict(&r->outcome, &r->facts));
    json_object_set_new(j, "n_peers", json_integer(r->n));
    json_object_set_new(j, "n_models", json_integer((json_int_t)c->n));
    json_object_set_new(j, "accuracy_min", uv_metrics_number(t->accuracy_min));
    json_object_set_new(j, "accuracy_max", uv_metrics_number(t->accuracy_max));
    json_object_set_new(j, "drift", uv_metrics_number(c->trained.xi));
    json_object_set_new(j, "relative_drift", uv_metrics_number(c->trained.relative));
    json_object_set_new(j, "statistics_drift", uv_metrics_number(c->statistics.xi));
    json_object_set_new(j, "statistics_relative_drift", uv_metrics_number(c->statistics.relative));
    cmd_drift_mean_json(&t->estimated, j);
    json_object_set_new(j, "rounds", json_integer((json_int_t)t->rounds));
    json_object_set_new(j, "settle_rounds", json_integer((json_int_t)t->settle_rounds));
    json_object_set_new(j, "seconds", uv_metrics_number(r->seconds));
    json_object_set_new(j, "bytes_sent", json_integer((json_int_t)t->sent));
    json_object_set_new(j, "bytes_received", json_integer((json_int_t)t->received));
    json_object_set_new(j, "starts", json_integer((json_int_t)r->past.starts + 1));
    json_object_set_new(j, "seconds_in_all", uv_metrics_number(r->past.seconds + r->seconds));
    json_object_set_new(j, "bytes_sent_in_all", json_integer((json_int_t)(r->past.sent + t->sent)));
    json_object_set_new(j, "bytes_received_in_all",
                        json_integer((json_int_t)(r->past.received + t->received)));
    json_object_set_new(j, "out", uv_metrics_text(r->out));
    json_object_set_new(j, "run", run_object(&r->run));
    json_object_set_new(j, "interrupted", json_boolean(interrupted));
    json_object_set_new(j, "resumes_at", json_null());
    json_object_set_new(j, "peers", peers);
    return j;
}

/* Prints where the models are stored, and which peers stored no model. */
static void print_models(const struct cmd_local_result *r)
{
    uint32_t n = 0, missing = 0;
    if (r->delete_files) {
        printf("models         not kept: --out DIR keeps them\n");
        return;
    }
    for (uint32_t i = 0; i < r->n; i++)
        n += has_stored(r, i);
    if (n == r->n) {
        printf("models in      %s\n", r->out);
        return;
    }
    printf("models in      %s, of %u of %u peers; missing: ", r->out, (unsigned)n, (unsigned)r->n);
    for (uint32_t i = 0; i < r->n; i++)
        if (!has_stored(r, i) && ++missing <= NAMED)
            printf("%s%s", missing > 1 ? ", " : "", r->name[i]);
    if (missing > NAMED)
        printf(" and %u more", (unsigned)(missing - NAMED));
    putchar('\n');
}

/* Prints the bytes sent and the seconds used. Each process counts from its own start, so the costs
 * of earlier starts are added as far as their metrics files record them. */
static void print_costs(const struct cmd_local_result *r, const struct totals *t)
{
    char a[CMD_PROGRESS_TEXT], b[CMD_PROGRESS_TEXT];
    printf("bytes sent     %s by all peers, at the sockets", cmd_progress_bytes(a, t->sent));
    if (r->past.starts > 0)
        printf(", since this start; at least %s in total over %u starts",
               cmd_progress_bytes(b, r->past.sent + t->sent), (unsigned)r->past.starts + 1);
    printf("\nseconds        %.1f", r->seconds);
    if (r->past.starts > 0)
        printf(", since this start; at least %.1f in total over %u starts",
               r->past.seconds + r->seconds, (unsigned)r->past.starts + 1);
    putchar('\n');
}

static void print_table(const struct cmd_local_result *r, const struct totals *t)
{
    char a[CMD_PROGRESS_TEXT], b[CMD_PROGRESS_TEXT], c[CMD_PROGRESS_TEXT], d[CMD_PROGRESS_TEXT];
    const struct consensus_part *trained = &r->consensus.trained,
                                *statistics = &r->consensus.statistics;
    printf("%-10s %9s %9s %10s %10s\n", "peer", "accuracy", "test loss", "sent", "received");
    for (uint32_t i = 0; i < r->n; i++) {
        const json_t *s = r->summary[i];
        printf("%-10s %9s %9s %10s %10s", r->name[i],
               cmd_progress_percent(a, number(s, "accuracy")),
               cmd_progress_number(b, "%.4f", number(s, "test_loss")),
               cmd_progress_bytes(c, r->row[i].bytes_sent),
               cmd_progress_bytes(d, r->row[i].bytes_received));
        if (r->exit_code[i] != 0)
            printf("   ended with code %d%s%s", r->exit_code[i], verdict_of(r, i) ? ": " : "",
                   text_of(verdict_of(r, i), "text"));
        putchar('\n');
    }
    if (isfinite(t->accuracy_max))
        printf("\naccuracy       %s to %s", cmd_progress_percent(a, t->accuracy_min),
               cmd_progress_percent(b, t->accuracy_max));
    else
        printf("\naccuracy       not evaluated yet");
    if (r->facts.stopped && t->accuracy_samples > 0)
        printf(", at round %llu, on %llu sample%s", (unsigned long long)t->accuracy_round,
               (unsigned long long)t->accuracy_samples, number_plural(t->accuracy_samples));
    putchar('\n');
    if (r->consensus.n > 0)
        printf("drift          %s, relative %s (exact, of %zu models)\n",
               cmd_progress_drift(a, "%.4e", trained->xi),
               cmd_progress_drift(b, "%.4e", trained->relative), r->consensus.n);
    if (statistics->dim > 0)
        printf("statistics     %s, relative %s (running means and variances, not included in the "
               "drift)\n",
               cmd_progress_drift(a, "%.4e", statistics->xi),
               cmd_progress_drift(b, "%.4e", statistics->relative));
    struct cmd_progress_codecs rungs = {0};
    for (uint32_t i = 0; i < r->n; i++)
        cmd_progress_codecs_add(&rungs, json_string_value(json_object_get(r->summary[i], "rung")),
                                number(r->summary[i], "drift_excess"));
    cmd_progress_codecs_print(&rungs, stdout);
    printf("rounds         %llu, then %llu of the consensus phase\n", (unsigned long long)t->rounds,
           (unsigned long long)t->settle_rounds);
    print_costs(r, t);
    print_models(r);
    printf("%s\n", r->outcome.text);
}

int cmd_local_result_print(struct cmd_local_result *r, const struct options *o, bool json)
{
    int code = compare(r, o);
    struct totals t = add_up(r);
    judge(r);
    json_t *j = closing_object(r, &t, false);
    /* If no peer has a final model, for example because every peer was killed, the run counts as
     * interrupted, not as finished. */
    bool any = false;
    for (uint32_t i = 0; i < r->n; i++)
        any |= has_model(r, i);
    bool finished = code == CMD_OK && any && r->outcome.kind != VERDICT_FAILED;
    int kept =
        cmd_out_write_summary(o, r->out, j, finished, code != CMD_OK ? code : r->outcome.exit_code);
    r->delete_files =
        r->is_temporary && code == CMD_OK && kept == CMD_OK && r->outcome.exit_code == 0;
    if (r->delete_files)
        json_object_set_new(j, "out", json_null());
    if (json) {
        json_dumpf(j, stdout, JSON_COMPACT | JSON_REAL_PRECISION(12));
        fputc('\n', stdout);
    } else {
        print_table(r, &t);
    }
    json_decref(j);
    int flushed = cmd_finish(o);
    /* If the result could not be printed, keep the files, so that the user can look at them. */
    r->delete_files = r->delete_files && flushed == CMD_OK;
    if (code == CMD_OK)
        code = kept != CMD_OK ? kept : flushed;
    return code != CMD_OK ? code : r->outcome.exit_code;
}

/* Sets the verdict of an interrupted run. The models are not compared, because the peers stopped in
 * different rounds. */
static void judge_interrupted(struct cmd_local_result *r, const struct totals *t)
{
    struct verdict_facts *f = &r->facts;
    *f = (struct verdict_facts){.stopped = true,
                                .distance = (double)NAN,
                                .n_members = r->n,
                                .n_rounds = r->run.rounds,
                                .rounds_claimed = t->rounds};
    verdict_judge(&r->outcome, f);
    r->outcome.exit_code = CMD_INTERRUPTED;
}

static void print_interrupted(struct cmd_local_result *r, const struct options *o,
                              const struct totals *t, uint64_t resumes)
{
    json_t *j = closing_object(r, t, true);
    json_object_set_new(j, "resumes_at", resumes > 0 ? uv_metrics_whole(resumes) : json_null());
    (void)cmd_out_write_summary(o, NULL, j, false, CMD_INTERRUPTED);
    json_dumpf(j, stdout, JSON_COMPACT | JSON_REAL_PRECISION(12));
    fputc('\n', stdout);
    json_decref(j);
}

int cmd_local_result_interrupted(struct cmd_local_result *r, const struct options *o, bool given)
{
    struct totals t = add_up(r);
    uint64_t resumes;
    struct cmd_local_stop s = {
        .out = r->out, .given = given, .n_peers = r->n, .run = &r->run, .round = t.rounds};
    int code = cmd_local_interrupted(o, &s, &resumes);
    judge_interrupted(r, &t);
    if (options_flag(o, "json"))
        print_interrupted(r, o, &t, resumes);
    else
        print_table(r, &t);
    int flushed = cmd_finish(o);
    return flushed != CMD_OK ? flushed : code;
}
