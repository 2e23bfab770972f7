/* peer/cmd/local_past.c -- sums over the starts in a peer's metrics, and the words of an interruption. */
#include "peer/cmd/local_past.h"

#include "peer/cmd/checkpoint.h"
#include "peer/cmd/files.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One start's figures: those of its last whole line. */
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

/* False: it is no line of a round, or a torn one. */
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

/* Lines are many: only the last two of a start are looked into, as the last may be torn. */
struct lines
{
    char *now, *before;
    size_t cap_now, cap_before;
    uint32_t n; /* So many lines are of this start. */
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

void cmd_local_past_add(struct cmd_local_past *p, const char *dir, bool but_last)
{
    char path[CMD_PATH_MAX], *text = NULL;
    size_t cap = 0;
    struct lines l = {0};
    struct start sum = {0};
    uint32_t starts = 0;
    FILE *f = cmd_path(path, dir, "metrics.jsonl") == 0 ? fopen(path, "re") : NULL;
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

int cmd_local_interrupted(const struct options *o, const char *out, bool given, uint64_t round,
                          uint64_t rounds)
{
    const char *same = given ? "the same command" : "the same command with --out ";
    bool there = cmd_checkpoint_there(out);
    return cmd_fail(o, CMD_INTERRUPTED, "interrupted at round %llu of %llu: %s%s %s",
                    (unsigned long long)round, (unsigned long long)rounds, same, given ? "" : out,
                    there ? "goes on from the last checkpoint"
                          : "begins again, as there is no checkpoint yet");
}
