/* peer/cmd/peer_report.c -- prints the progress and the result of `hearsay peer`. The files are
 * written by peer/run_log. */
#include "peer/cmd/peer_report.h"

#include "nn/math/number.h"
#include "peer/cmd/log.h"
#include "peer/cmd/out.h"
#include "peer/cmd/training.h"
#include "peer/output/promise.h"
#include "peer/run_log/checkpoint_heads.h"
#include "peer/run_log/summary.h"
#include "peer/trace/log_line.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- Notes while the peer runs ---- */

void cmd_peer_report_note(void *self, enum note_level level, const char *module, const char *text)
{
    struct cmd_peer_report *r = self;
    if (!cmd_log_shows(level))
        return;
    if (r->notes_as_json) {
        json_t *j = json_pack("{s:s, s:s, s:s}", "note", text, "level", log_level_name(level),
                              "module", module);
        json_dumpf(j, stdout, JSON_COMPACT);
        json_decref(j);
        putchar('\n');
        fflush(stdout);
        return;
    }
    cmd_progress_end_line(&r->progress);
    if (cmd_log_given())
        cmd_log_print(level, module, r->diary.name, text);
    else
        fprintf(stderr, "hearsay peer: %s%s: %s\n", r->diary.name,
                level == NOTE_WARNING ? ": warning" : "", text);
}

/* ---- Writing the trace and the progress ---- */

int cmd_peer_report_open_trace(struct cmd_peer_report *r)
{
    uv_timeval64_t now = {0};
    (void)uv_gettimeofday(&now);
    int code = cmd_trace_open(&r->trace, r->o, uv_worker_clock_us(),
                              now.tv_sec * 1000 + now.tv_usec / 1000, r->diary.name);
    if (code != CMD_OK || r->trace.trace == NULL)
        return code;
    r->trace_peer = trace_add_peer(r->trace.trace, r->diary.name);
    return r->trace_peer != NULL ? CMD_OK
                                 : cmd_fail(r->o, CMD_FAILED, "out of memory for the trace");
}

void cmd_peer_report_watch(void *self, const struct node *n, const struct node_event *ev)
{
    struct cmd_peer_report *r = self;
    trace_event(r->trace_peer, n, ev);
}

void cmd_peer_report_stepped(void *self, const struct node *n, const struct node_event *ev,
                             const struct node_effects *fx)
{
    struct cmd_peer_report *r = self;
    trace_effects(r->trace_peer, n, ev->now_us, fx);
    const char *warning = cmd_trace_take_warning(&r->trace);
    if (warning != NULL)
        cmd_peer_report_note(r, NOTE_WARNING, "trace", warning);
}

static void show(struct cmd_peer_report *r, const struct node_progress *g, bool force)
{
    struct cmd_progress_row row = {.name = r->diary.name,
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
    snprintf(row.phase, sizeof row.phase, "%s", figure_phase(g->phase, g->holds));
    snprintf(row.tail, sizeof row.tail, "%u live, %u edge%s", (unsigned)g->n_live,
             (unsigned)g->n_edges, number_plural(g->n_edges));
    cmd_progress_show(&r->progress, &row, 1, run_log_seconds(&r->diary), force);
}

void cmd_peer_report_measured(void *self, const struct node_progress *g)
{
    struct cmd_peer_report *r = self;
    double time_s = run_log_write_round(&r->diary, g);
    diary_monitor_round(&r->monitor, g, time_s);
    if (!r->json)
        show(r, g, false);
}

/* Prints one line and flushes it, so that a reading process rarely sees an incomplete line. A write
 * error of stdout is reported at the end of the run. */
static void print_line(const char *line)
{
    printf("%s\n", line);
    fflush(stdout);
}

void cmd_peer_report_open(struct cmd_peer_report *r, const struct options *o)
{
    *r = (struct cmd_peer_report){.o = o, .json = options_flag(o, "json")};
    r->notes_as_json = r->json && options_given(o, "parent-fd");
    r->diary = (struct run_log){.begin_ns = uv_hrtime(),
                                .patience_us = (int64_t)(options_real(o, "quorum-timeout") * 1e6),
                                .note = cmd_peer_report_note,
                                .self = r,
                                .copy = r->json ? print_line : NULL};
    cmd_progress_open(&r->progress, stderr);
}

/* ---- Writing the files ---- */

const char *cmd_peer_report_store(void *self, const struct node *n)
{
    struct cmd_peer_report *r = self;
    r->diary.source = cmd_training_source(r->training);
    return run_log_save_model(&r->diary, n);
}

uint32_t cmd_peer_report_late_ms(void *self)
{
    struct cmd_peer_report *r = self;
    return run_log_lines_retry_ms(&r->diary);
}

const char *cmd_peer_report_trained_on(void *self)
{
    struct cmd_peer_report *r = self;
    return cmd_training_trained_on(r->training, r->trained_on);
}

/* ---- Reporting the end of the run ---- */

/* Prints the round from which a stopped peer will resume. The peer has two checkpoints. It resumes
 * from the newest one for which all other peers have a checkpoint, too. */
static void say_resumption(const struct cmd_peer_report *r, const struct node *n)
{
    uint64_t round[SLOTS];
    const struct run *run = node_run(n);
    checkpoint_heads_rounds(r->diary.dir, round);
    fprintf(stderr, "hearsay peer: %s: the same command ", r->diary.name);
    if (round[0] == 0)
        fprintf(stderr, "starts again, or joins the other peers, because there is no checkpoint\n");
    else if (run != NULL && run->policy == RUN_SYNC && round[1] != 0)
        fprintf(stderr,
                "resumes from round %" PRIu64 ", or from %" PRIu64
                " if other peers have no checkpoint of that round\n",
                round[0], round[1]);
    else
        fprintf(stderr, "resumes from round %" PRIu64 "\n", round[0]);
}

/* Prints the last messages for users. It is not called after a usage error, because the error
 * message is enough. */
static void say_end(struct cmd_peer_report *r, const struct node_progress *g,
                    const struct verdict *o)
{
    struct cmd_progress_codecs rungs = {0};
    show(r, g, true);
    cmd_progress_end_line(&r->progress);
    if (g->round > 0)
        cmd_progress_codecs_add(&rungs, g->rung, g->excess);
    rungs.by_link = g->rung_by != NULL && strcmp(g->rung_by, "drift") != 0;
    cmd_progress_codecs_print(&rungs, stderr);
    if (r->diary.claimed)
        fprintf(stderr, "%s in %s\n", r->diary.stored ? "model and metrics are" : "metrics are",
                r->diary.dir);
    fprintf(stderr, "hearsay peer: %s: %s\n", r->diary.name, o->text);
}

int cmd_peer_report_finish(struct cmd_peer_report *r, struct uv_driver *d)
{
    struct node_progress g;
    struct verdict_facts f;
    struct verdict o;
    node_progress(uv_driver_node(d), &g);
    uv_driver_totals(d, &g.bytes_sent, &g.bytes_received);
    bool finished =
        diary_decide_verdict(&r->diary, uv_driver_node(d), uv_driver_exit_code(d), &f, &o);
    int exit_code = o.exit_code;
    json_t *j = diary_summary(&r->diary, d, &f, &o);
    run_log_release_space(&r->diary);
    /* Without run.txt no summary is written, because nothing would say to which run the summary
     * belongs. */
    const char *dir = run_log_owns_directory(&r->diary) ? r->diary.dir : NULL;
    bool written = cmd_out_write_summary(r->o, dir, j, finished, exit_code) == CMD_OK;
    if (!written)
        exit_code = CMD_FAILED;
    r->over = finished && written && dir != NULL;
    if (r->over)
        promise_remove(dir);
    if (r->json) {
        json_dumpf(j, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
        fputc('\n', stdout);
    } else if (exit_code != CMD_USAGE) {
        say_end(r, &g, &o);
        if (f.stopped && r->diary.claimed)
            say_resumption(r, uv_driver_node(d));
    }
    json_decref(j);
    if (cmd_finish(r->o) != CMD_OK && exit_code == 0)
        exit_code = CMD_FAILED;
    return exit_code;
}
