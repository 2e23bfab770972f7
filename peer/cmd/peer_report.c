/* peer/cmd/peer_report.c -- what `hearsay peer` writes and says while it runs and at the end.
 *
 * Files are what counts: where one cannot be written the peer trains on, since
 * others depend on it, and ends with an error. A model that cannot be stored at the
 * end stays in memory and is tried again (peer/store/retry.h), for --patience; so do lines. */
#include "peer/cmd/peer_report.h"

#include "nn/files/safetensors.h"
#include "peer/cmd/checkpoint.h"
#include "peer/cmd/closing.h"
#include "peer/cmd/files.h"
#include "peer/cmd/monitor.h"
#include "peer/cmd/training.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char model_file[] = "model.safetensors";

const char *const cmd_peer_report_files[] = {"metrics.jsonl", model_file, "summary.json", NULL};

/* ---- While it runs ---------------------------------------------------- */

double cmd_peer_report_seconds(const struct cmd_peer_report *r)
{
    return (double)(uv_hrtime() - r->begin_ns) * 1e-9;
}

void cmd_peer_report_note(void *self, enum note_level level, const char *text)
{
    struct cmd_peer_report *r = self;
    static const char *const word[] = {
        [NOTE_INFO] = "info", [NOTE_WARNING] = "warning", [NOTE_ERROR] = "error"};
    if (r->notes_as_json) {
        json_t *j = json_pack("{s:s, s:s}", "note", text, "level", word[level]);
        json_dumpf(j, stdout, JSON_COMPACT);
        json_decref(j);
        putchar('\n');
        fflush(stdout);
        return;
    }
    cmd_progress_break(&r->progress);
    fprintf(stderr, "hearsay peer: %s%s: %s\n", r->name, level == NOTE_WARNING ? ": warning" : "",
            text);
}

static void show(struct cmd_peer_report *r, const struct node_progress *g, bool force)
{
    struct cmd_progress_row row = {.name = r->name,
                                   .round = g->round,
                                   .rounds = g->n_rounds,
                                   .settle_rounds = g->settle_rounds,
                                   .loss = g->loss,
                                   .accuracy = g->accuracy,
                                   .accuracy_round = g->accuracy_round,
                                   .accuracy_samples = g->accuracy_samples,
                                   .relative_drift = g->relative_drift,
                                   .drift_round = g->drift_round,
                                   .wanted_drift = r->wanted_drift,
                                   .bytes_sent = g->bytes_sent,
                                   .bytes_received = g->bytes_received};
    snprintf(row.phase, sizeof row.phase, "%s", uv_metrics_phase(g->phase, g->holds));
    snprintf(row.tail, sizeof row.tail, "%u live, %u edges", (unsigned)g->n_live,
             (unsigned)g->n_edges);
    cmd_progress_show(&r->progress, &row, 1, cmd_peer_report_seconds(r), force);
}

/* With the first that is written --out belongs to the run: until then that was a proposal. */
static void claim(struct cmd_peer_report *r)
{
    if (r->claimed)
        return;
    r->claimed = true;
    r->unnamed = cmd_out_claim(r->dir) != CMD_OK;
    cmd_lines_open(&r->lines, r->out, JOURNAL_BYTES, false);
    r->lines.copy = r->json ? stdout : NULL;
}

static void tell_lines(struct cmd_peer_report *r, bool news)
{
    if (news)
        cmd_peer_report_note(r, r->lines.level, r->lines.news);
}

/* The first line behind that of the start is of the round after the one that it began with. */
static void start_lines(struct cmd_peer_report *r, const struct node_progress *g)
{
    uv_timeval64_t now;
    uint64_t first = g->round + g->settle_rounds;
    int64_t at = uv_gettimeofday(&now) == 0 ? now.tv_sec : -1;
    r->from = first - (first > 0);
    cmd_lines_start(&r->lines, uv_metrics_start(at, r->from));
}

void cmd_peer_report_measured(void *self, const struct node_progress *g)
{
    struct cmd_peer_report *r = self;
    claim(r);
    if (!r->lines.started)
        start_lines(r, g);
    double time_s = cmd_peer_report_seconds(r);
    tell_lines(r, cmd_lines_round(&r->lines, g, time_s));
    if (cmd_events_round(&r->events, g, owner_run(r->dir->text), r->from))
        cmd_peer_report_note(r, r->events.level, r->events.news);
    cmd_monitor_measured(r->monitor, g, time_s);
    if (!r->json)
        show(r, g, false);
}

/* ---- The model ---- */

__attribute__((format(printf, 3, 4))) static void note(struct cmd_peer_report *r,
                                                       enum note_level level, const char *format,
                                                       ...)
{
    char text[DATA_ERROR_MAX + 96];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    cmd_peer_report_note(r, level, text);
}

/* With another file missing this process ends as failed, but nothing of what it learnt is lost. */
bool cmd_peer_report_store(void *self, const struct node *n)
{
    struct cmd_peer_report *r = self;
    char path[CMD_PATH_MAX];
    bool again = r->unstored;
    claim(r);
    int err = cmd_path(path, r->out, model_file);
    if (err < 0) {
        snprintf(r->why, sizeof r->why, "--out %.200s: %s", r->out, strerror(-err));
    } else {
        cmd_reserve_release(&r->reserve);
        err = cmd_write_model(path, n, r->name, cmd_training_classes(r->training), r->why);
        cmd_reserve_again(&r->reserve, r->out); /* It may be written more than once. */
    }
    r->stored |= err > 0;
    r->unstored = err < 0;
    if (again && !r->unstored)
        note(r, NOTE_WARNING, "the model is in %s now", r->out);
    return !r->unstored;
}

/* Behind what is ours: it takes no room that our own model may still need. */
bool cmd_peer_report_store_handed(void *self, const struct node *n)
{
    struct cmd_peer_report *r = self;
    char path[CMD_PATH_MAX], why[DATA_ERROR_MAX];
    if (r->unstored)
        return false;
    claim(r);
    int err = cmd_write_handed(path, r->out, n, cmd_training_classes(r->training), why);
    if (err < 0)
        note(r, NOTE_WARNING, "another peer's model cannot be stored: %s", why);
    else
        note(r, NOTE_WARNING, "%s is the model of a peer whose disk did not take it", path);
    return err == 0;
}

/* A model that is not stored is in memory still, and the node waits. */
uint32_t cmd_peer_report_again_ms(void *self)
{
    struct cmd_peer_report *r = self;
    int64_t now_us = (int64_t)(uv_hrtime() / 1000);
    bool say;
    if (!r->unstored)
        return 0;
    int64_t wait_us = retry_failed(&r->retry, now_us, r->patience_us, &say);
    long long left_s = (retry_left_us(&r->retry, now_us) + 999999) / 1000000;
    if (wait_us == 0)
        note(r, NOTE_WARNING, "%s; the model is offered to others", r->why);
    else if (say)
        note(r, NOTE_WARNING, "%s; the model is in memory, and tried again for %lld s", r->why,
             left_s);
    return (uint32_t)(wait_us / 1000) + (wait_us > 0);
}

/* The run is over for this peer, and the others know. Lines that its disk does not take are all that
 * it is here for, as long as it would be for a model. */
uint32_t cmd_peer_report_late_ms(void *self)
{
    struct cmd_peer_report *r = self;
    int64_t now_us = (int64_t)(uv_hrtime() / 1000);
    bool say;
    tell_lines(r, cmd_lines_write(&r->lines));
    if (!cmd_lines_wait(&r->lines))
        return 0;
    int64_t wait_us = retry_failed(&r->retry, now_us, r->patience_us, &say);
    if (say && wait_us > 0)
        note(r, NOTE_WARNING, "lines of metrics.jsonl are in memory, and tried again for %lld s",
             (long long)((retry_left_us(&r->retry, now_us) + 999999) / 1000000));
    return (uint32_t)(wait_us / 1000) + (wait_us > 0);
}

/* ---- The end ---------------------------------------------------------- */

/* The last line of metrics with what is known only at the end. */
static json_t *summary(const struct cmd_peer_report *r, const struct node *n,
                       const struct outcome_facts *f, const struct outcome *o)
{
    struct node_progress g;
    char text[WIRE_RUN_MAX + 1] = "";
    node_progress(n, &g);
    if (node_run(n))
        run_text(node_run(n), text);
    json_t *j = uv_metrics_object(&g, cmd_peer_report_seconds(r));
    json_object_set_new(j, "summary", json_true());
    json_object_set_new(j, "name", json_string(r->name));
    uv_metrics_evaluation(j, &g);
    json_object_set_new(j, "resets", json_integer((json_int_t)g.resets));
    json_object_set_new(j, "violations", json_integer((json_int_t)g.violations));
    json_object_set_new(j, "distrusted", json_integer((json_int_t)g.distrusted));
    json_object_set_new(j, "exchanges", json_integer((json_int_t)g.exchanges));
    json_object_set_new(j, "verdict", cmd_closing_json(o, f));
    json_object_set_new(j, "diverged", g.diverged[0] ? json_string(g.diverged) : json_null());
    json_object_set_new(j, "unlearnt", g.unlearnt[0] ? json_string(g.unlearnt) : json_null());
    json_object_set_new(j, "model", r->stored ? json_string(model_file) : json_null());
    const char *with = node_handed_to(n);
    json_object_set_new(j, "handed_to", with != NULL ? json_string(with) : json_null());
    uint64_t round[SLOTS];
    cmd_checkpoint_rounds(r->out, round);
    json_object_set_new(j, "interrupted", json_boolean(f->stopped));
    json_object_set_new(j, "resumes_at",
                        f->stopped && round[0] > 0 ? uv_metrics_whole(round[0]) : json_null());
    json_object_set_new(j, "run", json_string(text));
    return j;
}

static const char *name_missing(struct cmd_peer_report *r)
{
    uint64_t n = cmd_lines_missing(&r->lines);
    const char *model = r->unstored ? model_file : "", *and = "";
    char beside[64] = "";
    if (r->unnamed)
        snprintf(beside, sizeof beside, "run.txt");
    else if (n > 0)
        snprintf(beside, sizeof beside, "%" PRIu64 " line%s of metrics.jsonl", n, n > 1 ? "s" : "");
    if (r->unstored && beside[0] != '\0')
        and = " and ";
    snprintf(r->failure, sizeof r->failure, "%s%s%s could not be written%s", model, and, beside,
             r->stored && !r->unstored ? "; the model is stored" : "");
    return r->failure;
}

static void judge_failed(struct cmd_peer_report *r, struct outcome_facts *f, struct outcome *o)
{
    if (f->failed != CMD_OK && f->failed != CMD_FAILED)
        return;
    f->failed = CMD_FAILED;
    f->failure = name_missing(r);
    outcome_judge(o, f);
}

/* The node's own word, unless the process failed it. True: it failed in more than some lines of
 * metrics. */
static bool judge(struct cmd_peer_report *r, struct uv_driver *d, struct outcome_facts *f,
                  struct outcome *o)
{
    int code = uv_driver_exit_code(d);
    node_facts(uv_driver_node(d), f);
    if (r->unnamed) /* The disk may have had room again since. */
        r->unnamed = cmd_out_claim(r->dir) != CMD_OK;
    if (f->failed == CMD_OK && code != CMD_APART)
        f->failed = code;
    outcome_judge(o, f);
    bool failed = o->exit_code == CMD_FAILED || r->unnamed || r->unstored;
    if (r->unnamed || r->unstored || cmd_lines_missing(&r->lines) > 0)
        judge_failed(r, f, o);
    return failed;
}

/* Did the run end for this peer, with its model where it belongs? Then it has nothing more to do
 * there, whatever became of the others, or of a line of metrics: started again it would
 * replace a result by another one. */
static bool has_finished(const struct cmd_peer_report *r, const struct outcome_facts *f)
{
    return r->stored && !r->unstored && !f->stopped;
}

/* From where a peer that was stopped goes on. Of two rounds the one counts that all peers have. */
static void say_resumption(const struct cmd_peer_report *r, const struct node *n)
{
    uint64_t round[SLOTS];
    const struct run *run = node_run(n);
    cmd_checkpoint_rounds(r->out, round);
    fprintf(stderr, "hearsay peer: %s: the same command ", r->name);
    if (round[0] == 0)
        fprintf(stderr, "begins again, or joins the others, as there is no checkpoint\n");
    else if (run != NULL && run->policy == RUN_SYNC && round[1] != 0)
        fprintf(stderr,
                "goes on from round %" PRIu64 ", or from %" PRIu64
                " where others have no checkpoint of that\n",
                round[0], round[1]);
    else
        fprintf(stderr, "goes on from round %" PRIu64 "\n", round[0]);
}

/* The last words for people; after bad usage the error was all there is to say. */
static void say_end(struct cmd_peer_report *r, const struct node_progress *g,
                    const struct outcome *o)
{
    struct cmd_progress_rungs rungs = {0};
    show(r, g, true);
    cmd_progress_break(&r->progress);
    if (g->round > 0)
        cmd_progress_rung(&rungs, g->rung, g->excess);
    rungs.by_link = g->rung_by != NULL && strcmp(g->rung_by, "link") == 0;
    cmd_progress_rungs_say(&rungs, stderr);
    if (r->claimed)
        fprintf(stderr, "%s in %s\n", r->stored ? "model and metrics are" : "metrics are", r->out);
    fprintf(stderr, "hearsay peer: %s: %s\n", r->name, o->text);
}

int cmd_peer_report_finish(struct cmd_peer_report *r, struct uv_driver *d)
{
    struct node_progress g;
    struct outcome_facts f;
    struct outcome o;
    node_progress(uv_driver_node(d), &g);
    /* The node knows of the bytes up to its last event, the driver of all. */
    uv_driver_totals(d, &g.bytes_sent, &g.bytes_received);
    tell_lines(r, cmd_lines_write(&r->lines));
    bool finished = !judge(r, d, &f, &o) && has_finished(r, &f);
    int exit_code = o.exit_code;
    double seconds;
    uint64_t n_kept = uv_driver_checkpoints(d, &seconds);
    json_t *j = summary(r, uv_driver_node(d), &f, &o);
    json_object_set_new(j, "bytes_sent", json_integer((json_int_t)g.bytes_sent));
    json_object_set_new(j, "bytes_received", json_integer((json_int_t)g.bytes_received));
    json_object_set_new(j, "checkpoints", json_integer((json_int_t)n_kept));
    json_object_set_new(j, "checkpoint_s", uv_metrics_figure(seconds));
    json_object_set_new(j, "strangers", json_integer((json_int_t)uv_driver_counts(d)->strangers));
    cmd_reserve_release(&r->last);
    cmd_reserve_release(&r->reserve);
    /* A summary without run.txt would be of nobody knows which run. */
    const char *dir = r->claimed && !r->unnamed ? r->out : NULL;
    bool written = cmd_out_end(r->o, dir, j, finished, exit_code) == CMD_OK;
    if (!written)
        exit_code = CMD_FAILED;
    r->over = finished && written && dir != NULL;
    if (r->json) {
        json_dumpf(j, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
        fputc('\n', stdout);
    } else if (exit_code != CMD_USAGE) {
        say_end(r, &g, &o);
        if (f.stopped && r->claimed)
            say_resumption(r, uv_driver_node(d));
    }
    json_decref(j);
    if (cmd_finish(r->o) != CMD_OK && exit_code == 0)
        exit_code = CMD_FAILED;
    return exit_code;
}
