/* peer/cmd/earlier_starts.c -- sums the bytes and seconds of earlier starts from a peer's metrics
 * file, and prints how an interrupted run is resumed. */
#include "peer/cmd/earlier_starts.h"

#include "peer/cmd/checkpoint.h"
#include "peer/output/outdir.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes and seconds that a peer used in one start of its process. They are taken from the last
 * complete line that this start wrote to metrics.jsonl. */
struct start
{
    double seconds;
    uint64_t sent, received;
};

static uint64_t whole(const json_t *object, const char *key)
{
    json_int_t v = json_integer_value(json_object_get(object, key));
    return v > 0 ? (uint64_t)v : 0;
}

/* Reads bytes and seconds from one line of metrics.jsonl. Returns false if the line is incomplete
 * or is not the line of a round. */
static bool take_line(struct start *s, const char *text)
{
    json_t *line = json_loads(text, 0, NULL);
    double seconds = json_number_value(json_object_get(line, "time_s"));
    bool good = json_is_number(json_object_get(line, "bytes_sent")) && seconds >= 0;
    if (good)
        *s = (struct start){seconds, whole(line, "bytes_sent"), whole(line, "bytes_received")};
    json_decref(line);
    return good;
}

/* Last two lines of metrics.jsonl for the start that is being read. There may be very many
 * lines, so only these two are parsed. The last line may be incomplete; the line before it is
 * then used. */
struct lines
{
    char *now, *before;
    size_t cap_now, cap_before;
    /* Number of lines read so far of those that one start of the process wrote. */
    uint32_t n;
};

static struct start end_of(const struct lines *l)
{
    struct start s = {0};
    if (l->n > 0 && !take_line(&s, l->now) && l->n > 1)
        (void)take_line(&s, l->before);
    return s;
}

static void keep_line(struct lines *l, char *text, size_t cap, char **free_text, size_t *free_cap)
{
    *free_text = l->before;
    *free_cap = l->cap_before;
    l->before = l->now;
    l->cap_before = l->cap_now;
    l->now = text;
    l->cap_now = cap;
    l->n++;
}

static void add(struct start *sum, struct start s)
{
    sum->seconds += s.seconds;
    sum->sent += s.sent;
    sum->received += s.received;
}

void cmd_earlier_starts_add(struct cmd_earlier_starts *p, const char *dir, bool but_last)
{
    char *text = NULL;
    size_t cap = 0;
    struct lines l = {0};
    struct start sum = {0};
    uint32_t starts = 0;
    FILE *f = outdir_open_file(dir, "metrics.jsonl");
    /* A line {"start": ...} is the first line of each start. All lines before it belong to an
     * earlier start. */
    while (f != NULL && getline(&text, &cap, f) > 0) {
        if (strncmp(text, "{\"start\"", 8) != 0) {
            keep_line(&l, text, cap, &text, &cap);
            continue;
        }
        add(&sum, end_of(&l));
        l.n = 0;
        starts++;
    }
    if (!but_last)
        add(&sum, end_of(&l));
    starts -= but_last && starts > 0;
    if (f != NULL)
        fclose(f);
    free(text);
    free(l.now);
    free(l.before);
    p->starts = starts > p->starts ? starts : p->starts;
    p->seconds = sum.seconds > p->seconds ? sum.seconds : p->seconds;
    p->sent += sum.sent;
    p->received += sum.received;
}

/* Writes to `text` where the run will resume. If all peers train in lock step, they resume from the
 * same round, for which every peer must have a checkpoint. Sets `*resumes` to that round. Sets it
 * to 0 if the peers do not resume from one round. */
static void say_where(char *text, size_t size, const struct cmd_local_stop *s, uint64_t *resumes)
{
    struct cmd_checkpoint_rounds c;
    bool lock_step = s->run->policy == RUN_SYNC;
    cmd_checkpoint_rounds(&c, s->out, s->n_peers, lock_step);
    *resumes = c.all ? c.round : 0;
    if (c.all)
        snprintf(text, size, "resumes from round %llu", (unsigned long long)c.round);
    else if (c.there && !lock_step)
        snprintf(text, size, "resumes from each peer's own checkpoint, of rounds %llu to %llu",
                 (unsigned long long)c.round, (unsigned long long)c.last);
    else if (c.there)
        snprintf(text, size,
                 "starts again from round 0, because no round has a checkpoint of every peer");
    else
        snprintf(text, size, "starts again, because there is no checkpoint yet");
}

void cmd_local_report_resume(const struct options *o, const char *out, uint32_t n,
                             const struct run *run)
{
    struct cmd_checkpoint_rounds c;
    cmd_checkpoint_rounds(&c, out, n, run->policy == RUN_SYNC);
    if (c.all)
        cmd_fail(o, CMD_OK, "resuming the run in %s, from round %llu of %llu", out,
                 (unsigned long long)c.round, (unsigned long long)run->rounds);
    else if (c.there)
        cmd_fail(o, CMD_OK, "resuming the run in %s; each peer continues from its own checkpoint",
                 out);
    else
        cmd_fail(o, CMD_OK, "the run in %s has no checkpoint: it begins again", out);
}

int cmd_local_interrupted(const struct options *o, const struct cmd_local_stop *s,
                          uint64_t *resumes)
{
    char where[128];
    const char *same = s->given ? "the same command" : "the same command with --out ";
    say_where(where, sizeof where, s, resumes);
    return cmd_fail(o, CMD_INTERRUPTED, "interrupted at round %llu of %llu: %s%s %s",
                    (unsigned long long)s->round, (unsigned long long)s->run->rounds, same,
                    s->given ? "" : s->out, where);
}
