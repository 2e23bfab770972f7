/* peer/run_log/lines.c -- adds metrics lines to a journal, and reports when lines cannot be written
 * and when all waiting lines have been written. */
#include "peer/run_log/lines.h"

#include "nn/math/number.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

void diary_lines_open(struct run_log_lines *l, const char *dir, size_t bytes_max, bool brief)
{
    *l = (struct run_log_lines){.warned = false};
    journal_open(&l->journal, dir, bytes_max, brief);
}

void diary_lines_start(struct run_log_lines *l, char *text)
{
    journal_put(&l->journal, text);
    free(text);
    l->started = true;
}

/* Reports that lines are written to metrics.jsonl again. Called only when no line waits in memory
 * any more, because a waiting line may still be lost. */
static void report_recovery(struct run_log_lines *l)
{
    const struct journal *j = &l->journal;
    char lost[48] = "";
    if (j->n_lost > 0)
        snprintf(lost, sizeof lost, ", and %" PRIu64 " are lost", j->n_lost);
    snprintf(l->news, sizeof l->news,
             "%.400s/metrics.jsonl can be written again: %" PRIu64 " line%s written late%s", j->dir,
             j->n_late, number_plural(j->n_late), lost);
    l->level = j->n_lost > 0 ? NOTE_WARNING : NOTE_INFO;
}

static bool write_all(struct run_log_lines *l)
{
    int err = journal_write(&l->journal);
    l->news[0] = '\0';
    if (err < 0 && !l->warned) {
        snprintf(l->news, sizeof l->news,
                 "cannot write %.400s/metrics.jsonl: %s; its lines are kept in memory",
                 l->journal.dir, uv_strerror(err));
        l->level = NOTE_WARNING;
    } else if (err == 0 && l->warned) {
        report_recovery(l);
    }
    l->warned = err < 0;
    return l->news[0] != '\0';
}

static void put(struct run_log_lines *l, const char *text)
{
    journal_put(&l->journal, text);
    if (l->copy != NULL && text != NULL)
        l->copy(text);
}

bool diary_lines_put(struct run_log_lines *l, char *text)
{
    put(l, text);
    free(text);
    return write_all(l);
}

static void put_held(struct run_log_lines *l)
{
    if (l->held != NULL)
        put(l, l->held);
    free(l->held);
    l->held = NULL;
}

/* In a long consensus phase only some rounds get a line in the file. l->held keeps the line of the
 * newest round if it was not written. If the next round is of another phase, this line is written,
 * because it is the last line of its phase. Otherwise the line is discarded. */
bool diary_lines_round(struct run_log_lines *l, const struct node_progress *p, double time_s)
{
    char *text = uv_metrics_line(p, time_s);
    if (p->phase != NODE_CONSENSUS)
        put_held(l);
    free(l->held);
    l->held = NULL;
    if (uv_metrics_due(&l->pace, p, time_s))
        return diary_lines_put(l, text);
    l->held = text;
    return false;
}

bool diary_lines_write(struct run_log_lines *l)
{
    put_held(l);
    return write_all(l);
}

bool diary_lines_wait(const struct run_log_lines *l)
{
    return l->journal.n_waiting > 0;
}

uint64_t diary_lines_missing(const struct run_log_lines *l)
{
    return l->journal.n_waiting + l->journal.n_lost;
}

void diary_lines_close(struct run_log_lines *l)
{
    free(l->held);
    l->held = NULL;
    journal_close(&l->journal);
}
