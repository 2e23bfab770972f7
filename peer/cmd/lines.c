/* peer/cmd/lines.c -- puts lines into a journal, and says once that they wait and once that they do
 * not. */
#include "peer/cmd/lines.h"

#include <inttypes.h>
#include <stdlib.h>
#include <uv.h>

void cmd_lines_open(struct cmd_lines *l, const char *dir, size_t bytes_max, bool brief)
{
    *l = (struct cmd_lines){.warned = false};
    journal_open(&l->journal, dir, bytes_max, brief);
}

void cmd_lines_start(struct cmd_lines *l, char *text)
{
    journal_put(&l->journal, text);
    free(text);
    l->started = true;
}

/* What is still in memory may yet be lost: so the sentence comes when nothing is. */
static void say_end(struct cmd_lines *l)
{
    const struct journal *j = &l->journal;
    char lost[48] = "";
    if (j->n_lost > 0)
        snprintf(lost, sizeof lost, ", and %" PRIu64 " are lost", j->n_lost);
    snprintf(l->news, sizeof l->news,
             "%.400s/metrics.jsonl is written again: %" PRIu64 " lines were late%s", j->dir,
             j->n_late, lost);
    l->level = j->n_lost > 0 ? NOTE_WARNING : NOTE_INFO;
}

static bool write_all(struct cmd_lines *l)
{
    int err = journal_write(&l->journal);
    l->news[0] = '\0';
    if (err < 0 && !l->warned) {
        snprintf(l->news, sizeof l->news,
                 "cannot write %.400s/metrics.jsonl: %s; its lines are kept in memory",
                 l->journal.dir, uv_strerror(err));
        l->level = NOTE_WARNING;
    } else if (err == 0 && l->warned) {
        say_end(l);
    }
    l->warned = err < 0;
    return l->news[0] != '\0';
}

/* One line in one write, so that a reader never sees half of it for long. What is wrong with
 * stdout is said at the end. */
static void put(struct cmd_lines *l, const char *text)
{
    journal_put(&l->journal, text);
    if (l->copy == NULL || text == NULL)
        return;
    fprintf(l->copy, "%s\n", text);
    fflush(l->copy);
}

bool cmd_lines_put(struct cmd_lines *l, char *text)
{
    put(l, text);
    free(text);
    return write_all(l);
}

static void put_held(struct cmd_lines *l)
{
    if (l->held != NULL)
        put(l, l->held);
    free(l->held);
    l->held = NULL;
}

bool cmd_lines_round(struct cmd_lines *l, const struct node_progress *p, double time_s)
{
    char *text = uv_metrics_line(p, time_s);
    if (p->phase != NODE_SETTLING)
        put_held(l);
    free(l->held);
    l->held = NULL;
    if (uv_metrics_due(&l->pace, p, time_s))
        return cmd_lines_put(l, text);
    l->held = text;
    return false;
}

bool cmd_lines_write(struct cmd_lines *l)
{
    put_held(l);
    return write_all(l);
}

bool cmd_lines_wait(const struct cmd_lines *l)
{
    return l->journal.n_waiting > 0;
}

uint64_t cmd_lines_missing(const struct cmd_lines *l)
{
    return l->journal.n_waiting + l->journal.n_lost;
}

void cmd_lines_close(struct cmd_lines *l)
{
    free(l->held);
    l->held = NULL;
    journal_close(&l->journal);
}
