/* peer/cmd/watch_view.c -- formats the summary at the head of the status page, and one line for
 * each member. */
#include "peer/cmd/watch_view.h"

#include "gossip/exchange/edge.h"
#include "nn/math/number.h"
#include "peer/cmd/progress.h"
#include "peer/node/node.h"
#include "peer/uv/metrics.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

enum {
    LINE = 512, /* Size of the buffer for one line, in bytes. */
    NAMED = 4,  /* Largest number of names in a list of missing members. */
    OTHER = 3,  /* Number of member states that this file adds: left, silent, unreachable. */
    /* Number of member states that come from the members' status messages, such as "training". */
    PHASES = 8
};

/* Output stream, and the number of lines written to it so far. */
struct page
{
    FILE *out;
    uint32_t width, n;
    const char *end;
};

static void put(struct page *p, const char *line)
{
    int most = p->width > 0 ? (int)p->width : LINE;
    fprintf(p->out, "%.*s%s", most, line, p->end);
    p->n++;
}

/* Returns the state of a member: the phase from its status if it answered, otherwise "left",
 * "silent" (it has a session) or "unreachable". */
static const char *state_of(const struct watch_member *m)
{
    if (m->answered)
        return cmd_progress_phase(figure_phase((enum node_phase)m->status.phase, m->status.holds),
                                  m->status.round, m->status.n_rounds);
    return m->left ? "left" : m->reached ? "silent" : "unreachable";
}

/* ---- Writing the head of the page ---- */

struct tally
{
    struct
    {
        const char *name;
        uint32_t n;
    } state[PHASES + OTHER];
    uint32_t n_states, n_answered, n_gathering;
    /* Lowest and highest round of the members that answered, and number of rounds of the run. */
    uint64_t first, last, rounds;
    double loss[2], accuracy, rounds_s, bytes_s;
    /* Consensus distance from the newest round for which a member has an estimate; drift_round is
     * that round. */
    double drift;
    uint64_t drift_round;
};

static void count_state(struct tally *t, const char *name)
{
    uint32_t i = 0;
    while (i < t->n_states && strcmp(t->state[i].name, name) != 0)
        i++;
    if (i == sizeof t->state / sizeof *t->state)
        return;
    t->state[i].name = name;
    t->state[i].n++;
    t->n_states += i == t->n_states;
}

static void count_figures(struct tally *t, const struct watch_member *m)
{
    const struct wire_status *s = &m->status;
    t->n_answered++;
    t->n_gathering += s->phase == NODE_JOINING;
    t->rounds = s->n_rounds > t->rounds ? s->n_rounds : t->rounds;
    t->first = s->round < t->first ? s->round : t->first;
    t->last = s->round > t->last ? s->round : t->last;
    /* fmin() and fmax() ignore NaN, which stands for an unknown loss. */
    t->loss[0] = fmin(t->loss[0], s->loss);
    t->loss[1] = fmax(t->loss[1], s->loss);
    t->accuracy = fmin(t->accuracy, s->accuracy);
    if (s->phase == NODE_TRAINING)
        t->rounds_s = fmin(t->rounds_s, m->rounds_s);
    if (isfinite(m->bytes_s))
        t->bytes_s = isfinite(t->bytes_s) ? t->bytes_s + m->bytes_s : m->bytes_s;
    if (isfinite(s->relative_drift) && (!isfinite(t->drift) || s->drift_round >= t->drift_round)) {
        /* The estimates of peers for the same round differ. The largest estimate is shown. */
        bool same = isfinite(t->drift) && s->drift_round == t->drift_round;
        t->drift = same ? fmax(t->drift, s->relative_drift) : s->relative_drift;
        t->drift_round = s->drift_round;
    }
}

static struct tally count(const struct watch_facts *f)
{
    struct tally t = {.first = UINT64_MAX,
                      .loss = {(double)NAN, (double)NAN},
                      .accuracy = (double)NAN,
                      .rounds_s = (double)NAN,
                      .bytes_s = (double)NAN,
                      .drift = (double)NAN};
    for (uint32_t i = 0; i < f->n; i++) {
        count_state(&t, state_of(&f->member[i]));
        if (f->member[i].answered)
            count_figures(&t, &f->member[i]);
    }
    return t;
}

/* Writes a duration rounded to seconds, minutes or hours: "40 s", "3 min", "5 h". */
static const char *duration(char out[CMD_PROGRESS_TEXT], double s)
{
    if (s < 100)
        snprintf(out, CMD_PROGRESS_TEXT, "%.0f s", s);
    else if (s < 100 * 60)
        snprintf(out, CMD_PROGRESS_TEXT, "%.0f min", s / 60);
    else
        snprintf(out, CMD_PROGRESS_TEXT, "%.0f h", s / 3600);
    return out;
}

/* Appends formatted text to `line`, a buffer of LINE bytes. */
__attribute__((format(printf, 2, 3))) static void add(char *line, const char *format, ...)
{
    size_t at = strlen(line);
    va_list args;
    va_start(args, format);
    vsnprintf(line + at, LINE - at, format, args);
    va_end(args);
}

/* Appends the number of members for which the run still waits. At most NAMED members that are known
 * but do not answer are listed by name. */
static void add_missing(char *line, const struct watch_facts *f, const struct tally *t)
{
    uint32_t missing = f->min_peers - t->n_answered, n = 0;
    add(line, "    joining: %u of %u (--min-peers), waiting for %u more", (unsigned)t->n_answered,
        (unsigned)f->min_peers, (unsigned)missing);
    for (uint32_t i = 0; i < f->n && n < missing && n < NAMED; i++) {
        const struct watch_member *m = &f->member[i];
        if (!m->answered && !m->left)
            add(line, "%s %s (%s)", n++ > 0 ? "," : ":", m->name, state_of(m));
    }
}

static void put_members(struct page *p, const struct watch_facts *f, const struct tally *t)
{
    char line[LINE] = "", left[CMD_PROGRESS_TEXT];
    add(line, "%u member%s:", (unsigned)f->n, number_plural(f->n));
    for (uint32_t i = 0; i < t->n_states; i++)
        add(line, "%s %u %s", i ? "," : "", (unsigned)t->state[i].n, t->state[i].name);
    if (t->n_gathering > 0 && f->min_peers > t->n_answered)
        add_missing(line, f, t);
    if (t->n_answered > 0 && t->rounds > 0) {
        add(line, "    round %llu", (unsigned long long)t->first);
        if (t->last > t->first)
            add(line, " to %llu", (unsigned long long)t->last);
        add(line, " of %llu", (unsigned long long)t->rounds);
    }
    if (isfinite(t->rounds_s))
        add(line, "    %.3g rounds/s", t->rounds_s);
    if (t->rounds_s > 0 && t->first < t->rounds)
        add(line, ", about %s left", duration(left, (double)(t->rounds - t->first) / t->rounds_s));
    put(p, line);
}

static void put_figures(struct page *p, const struct tally *t)
{
    char line[LINE] = "", a[CMD_PROGRESS_TEXT], b[CMD_PROGRESS_TEXT];
    add(line, "loss %s", cmd_progress_number(a, "%.4f", t->loss[0]));
    if (t->loss[1] > t->loss[0])
        add(line, " to %s", cmd_progress_number(a, "%.4f", t->loss[1]));
    if (isfinite(t->accuracy))
        add(line, "    accuracy %s at least", cmd_progress_percent(a, t->accuracy));
    add(line, "    relative drift %s", cmd_progress_drift_at(b, t->drift, t->drift_round));
    if (isfinite(t->bytes_s))
        add(line, "    all send %s/s", cmd_progress_bytes(a, (uint64_t)t->bytes_s));
    put(p, line);
}

/* ---- Writing the lines of the members ---- */

static const char *name_of(const struct watch_facts *f, const uint8_t id[WIRE_ID_BYTES])
{
    for (uint32_t i = 0; i < f->n; i++)
        if (memcmp(f->member[i].id, id, WIRE_ID_BYTES) == 0)
            return f->member[i].name;
    return "?";
}

/* Appends the names of a member's neighbours. A name in brackets means that the edge to that
 * neighbour is not open. */
static void add_neighbours(char *line, const struct watch_facts *f, const struct wire_status *s)
{
    for (uint32_t i = 0; i < s->n_edges && strlen(line) + WIRE_NAME_MAX + 4 < LINE; i++) {
        bool open = s->edges[i].state == EDGE_OPEN;
        add(line, open ? "%s%s" : "%s(%s)", i > 0 ? "," : "", name_of(f, s->edges[i].id));
    }
}

static void put_titles(struct page *p)
{
    char line[LINE];
    snprintf(line, sizeof line, "%-16s %-11s %11s %8s %7s %8s %9s %-16s %9s %7s %-16s %s", "name",
             "state", "round", "rounds/s", "age", "loss", "accuracy", "relative drift", "sent/s",
             "skipped", "codec", "neighbours");
    put(p, line);
}

/* Writes the line of one member. The age in this line is the time since the member last made
 * progress. It is the age in the member's status plus the time since that status arrived. */
static void put_member(struct page *p, const struct watch_facts *f, const struct watch_member *m)
{
    char line[LINE], round[CMD_PROGRESS_TEXT], rate[CMD_PROGRESS_TEXT], age[CMD_PROGRESS_TEXT],
        loss[CMD_PROGRESS_TEXT], right[CMD_PROGRESS_TEXT], drift[CMD_PROGRESS_TEXT],
        sent[CMD_PROGRESS_TEXT] = "-";
    const struct wire_status *s = &m->status;
    snprintf(line, sizeof line, "%-16s %-11s", m->name, state_of(m));
    if (m->ever) {
        if (isfinite(m->bytes_s))
            (void)cmd_progress_bytes(sent, (uint64_t)m->bytes_s);
        add(line, " %11s %8s %7s %8s %9s %-16s %9s %7llu %-16s ",
            cmd_progress_rounds(round, s->round, s->n_rounds),
            cmd_progress_number(rate, "%.3g", m->rounds_s),
            cmd_progress_number(age, "%.1f s", s->age_s + m->status_age_s),
            cmd_progress_number(loss, "%.4f", s->loss), cmd_progress_percent(right, s->accuracy),
            cmd_progress_drift_at(drift, s->relative_drift, s->drift_round), sent,
            (unsigned long long)s->rounds_skipped, s->codec[0] != '\0' ? s->codec : "-");
        add_neighbours(line, f, s);
    }
    put(p, line);
}

static void put_head(struct page *p, const struct watch_facts *f, const struct tally *t)
{
    put_members(p, f, t);
    put_figures(p, t);
    if (f->run[0] != '\0')
        put(p, f->run);
}

uint32_t watch_head(FILE *out, const struct watch_facts *f, uint32_t width, const char *end)
{
    struct page p = {.out = out, .width = width, .end = end};
    struct tally t = count(f);
    put_head(&p, f, &t);
    return p.n;
}

uint32_t watch_view(FILE *out, const struct watch_facts *f, uint32_t width, uint32_t height,
                    const char *end)
{
    struct page p = {.out = out, .width = width, .end = end};
    struct tally t = count(f);
    put_head(&p, f, &t);
    put(&p, "");
    put_titles(&p);
    uint32_t room = height == 0 ? f->n : height > p.n + 1 ? height - p.n : 1;
    uint32_t shown = f->n <= room ? f->n : room - 1;
    for (uint32_t i = 0; i < shown; i++)
        put_member(&p, f, &f->member[i]);
    if (shown < f->n) {
        char line[LINE];
        snprintf(line, sizeof line, "%u more members do not fit on this terminal",
                 (unsigned)(f->n - shown));
        put(&p, line);
    }
    return p.n;
}
