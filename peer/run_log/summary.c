/* peer/run_log/summary.c -- determines the verdict of a peer's run and builds summary.json. */
#include "peer/run_log/summary.h"

#include "peer/run/exit.h"
#include "peer/run_log/checkpoint_heads.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- Deciding the verdict ---- */

json_t *diary_verdict(const struct verdict *o, const struct verdict_facts *f)
{
    json_t *dead = json_array(), *absent = json_array();
    for (uint32_t i = 0; i < f->n_dead && i < VERDICT_DEAD_MAX; i++)
        json_array_append_new(dead, json_string(f->dead[i]));
    for (uint32_t i = 0; i < f->n_absent && i < VERDICT_DEAD_MAX; i++)
        json_array_append_new(absent, json_string(f->absent[i].name));
    return json_pack("{s:s, s:s, s:i, s:I, s:I, s:o, s:o, s:o, s:b, s:b, s:I, s:b}", "kind",
                     verdict_word(o->kind), "text", o->text, "exit_code", o->exit_code, "n_among",
                     (json_int_t)f->n_among, "n_members", (json_int_t)f->n_members, "dead", dead,
                     "absent", absent, "relative_drift", uv_metrics_figure(f->distance), "exact",
                     f->exact, "at_most", f->at_most && !f->exact, "rounds_skipped",
                     (json_int_t)f->rounds_skipped, "finite", !f->infinite);
}

/* Builds the message that names the files that could not be written. */
static const char *missing_files_text(struct run_log *d)
{
    uint64_t n = diary_lines_missing(&d->lines);
    const char *model = d->unstored ? "model.safetensors" : "", *and = "";
    char beside[64] = "";
    if (d->unnamed)
        snprintf(beside, sizeof beside, "run.txt");
    else if (n > 0)
        snprintf(beside, sizeof beside, "%" PRIu64 " line%s of metrics.jsonl", n, n > 1 ? "s" : "");
    if (d->unstored && beside[0] != '\0')
        and = " and ";
    snprintf(d->failure, sizeof d->failure, "%s%s%s could not be written%s", model, and, beside,
             d->stored && !d->unstored ? "; the model is stored" : "");
    return d->failure;
}

static void judge_failed(struct run_log *d, struct verdict_facts *f, struct verdict *o)
{
    if (f->failed != CMD_OK && f->failed != CMD_FAILED)
        return;
    f->failed = CMD_FAILED;
    f->failure = missing_files_text(d);
    verdict_judge(o, f);
}

/* The run in this directory is finished if the peer was not stopped, and either its model is stored
 * or the run has ended without it. If only metrics lines are missing, the exit code reports a
 * failure, but the next start does not repeat the run. */
bool diary_decide_verdict(struct run_log *d, const struct node *n, int exit_code,
                          struct verdict_facts *f, struct verdict *o)
{
    node_facts(n, f);
    run_log_flush_lines(d);
    run_log_write_identity(d); /* Try again to write run.txt: the disk may have space again. */
    if (f->failed == CMD_OK && exit_code != CMD_APART)
        f->failed = exit_code;
    verdict_judge(o, f);
    bool failed = o->exit_code == CMD_FAILED || d->unnamed || d->unstored;
    if (d->unnamed || d->unstored || diary_lines_missing(&d->lines) > 0)
        judge_failed(d, f, o);
    bool away = o->kind == VERDICT_AWAY;
    d->stored |= away && d->dir != NULL && run_log_past(d->dir, 0) == NODE_PAST_FINAL;
    return !failed && !f->stopped && (d->stored || away);
}

/* ---- Writing summary.json ---- */

/* Returns an object with the fields of a metrics line, and with the fields that are known only at
 * the end of the run. */
json_t *diary_summary(const struct run_log *d, struct uv_driver *driver,
                      const struct verdict_facts *f, const struct verdict *o)
{
    const struct node *n = uv_driver_node(driver);
    struct figure_values v;
    char text[WIRE_RUN_MAX + 1] = "";
    uint64_t round[SLOTS] = {0};
    figure_init(&v);
    node_progress(n, &v.node);
    /* Show the results of the last evaluation, even if it was not in the last round. */
    v.node.evaluated = true;
    /* The node counts bytes, and connections that never became sessions, only up to its last event.
     * The driver's totals also include the end of the sessions. */
    uv_driver_totals(driver, &v.node.bytes_sent, &v.node.bytes_received);
    v.node.strangers = uv_driver_counts(driver)->strangers;
    v.checkpoints = uv_driver_checkpoints(driver, &v.checkpoint_s);
    v.time_s = run_log_seconds(d);
    if (node_run(n) != NULL)
        run_text(node_run(n), text);
    if (d->dir != NULL)
        checkpoint_heads_rounds(d->dir, round);
    json_t *j = uv_metrics_object(&v);
    if (j == NULL)
        return NULL;
    json_object_set_new(j, "summary", json_true());
    json_object_set_new(j, "name", json_string(d->name));
    (void)uv_metrics_add(j, &v, FIGURE_SUMMARY);
    json_object_set_new(j, "verdict", diary_verdict(o, f));
    json_object_set_new(j, "model", d->stored ? json_string("model.safetensors") : json_null());
    json_object_set_new(j, "interrupted", json_boolean(f->stopped));
    json_object_set_new(j, "resumes_at",
                        f->stopped && round[0] > 0 ? uv_metrics_whole(round[0]) : json_null());
    json_object_set_new(j, "run", json_string(text));
    return j;
}
