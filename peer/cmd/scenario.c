/* peer/cmd/scenario.c -- parses a scenario file and executes its actions in a simulation. */
#include "peer/cmd/scenario.h"

#include "nn/math/number.h"
#include "peer/run/options_config.h"
#include "peer/sim/faults.h"
#include "peer/sim/who.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double s_max = 1e9;

/* Properties that one line of the scenario file sets for links or peers. -1: the line does not set
 * the property. */
struct values
{
    double latency_us, jitter_us, bandwidth, loss, headers, uplink, downlink, slow;
};

/* One `link` line or `peer` line of the scenario file. */
struct rule
{
    bool is_link;
    /* Peers to which this line of the scenario file applies, as arrays of n flags. `b`: the peers
     * at the other ends of a link; NULL in a `peer` line. */
    bool *a, *b;
    struct values v;
};

struct scheduled_action
{
    int64_t at_us;
    uint32_t line;
    const struct action *action;
    bool *a, *b;
    double times;
};

struct scenario
{
    /* n: number of peers. n_rules, n_scheduled: number of entries in `rule` and `scheduled_action`.
     * next: index of the next action to execute. */
    uint32_t n, n_rules, n_scheduled, next;
    struct rule *rule;
    /* Actions, sorted by time. Actions with equal times are in the order of the file. */
    struct scheduled_action *scheduled_action;
    /* Paths that are cut, as n x n flags. Row: sender. Column: receiver. */
    uint8_t *cut;
    bool begun;
};

/* ---- Executing actions ---- */

static int on_kill(struct scenario *s, struct sim_world *w, uint32_t i, double times)
{
    int code;
    (void)s, (void)times;
    /* A peer that has reached the end of the run is not killed, so that its model remains. */
    if (!sim_ended(w, i, &code))
        sim_kill(w, i);
    return 0;
}

static int on_restart(struct scenario *s, struct sim_world *w, uint32_t i, double times)
{
    (void)s, (void)times;
    return sim_node(w, i) == NULL ? sim_restart(w, i) : 0;
}

static int on_leave(struct scenario *s, struct sim_world *w, uint32_t i, double times)
{
    (void)s, (void)times;
    sim_ask_to_leave(w, i);
    return 0;
}

static int on_stop(struct scenario *s, struct sim_world *w, uint32_t i, double times)
{
    (void)s, (void)times;
    sim_stop(w, i, true);
    return 0;
}

static int on_go(struct scenario *s, struct sim_world *w, uint32_t i, double times)
{
    (void)s, (void)times;
    sim_stop(w, i, false);
    return 0;
}

static int on_slow(struct scenario *s, struct sim_world *w, uint32_t i, double times)
{
    (void)s;
    sim_slow(w, i, times);
    return 0;
}

static void cut(struct scenario *s, struct sim_world *w, uint32_t from, uint32_t to, bool on)
{
    uint8_t *is = &s->cut[(size_t)from * s->n + to];
    if (*is != on)
        sim_cut(w, from, to, on);
    *is = on;
}

static void on_path(struct scenario *s, struct sim_world *w, uint32_t a, uint32_t b, bool on)
{
    cut(s, w, a, b, on);
    cut(s, w, b, a, on);
}

/* One kind of action, such as "kill". An action has either a function `on` that is called for each
 * peer, or the flag `cuts` or `heals` for the paths between two groups of peers. `times`: the
 * action has a factor, which follows the list of peers. The other flags are for check_life(), which
 * ensures that only killed peers are restarted and that no peer stays paused. kills: kills the
 * peer. starts: restarts a killed peer. stops: pauses the peer. goes: ends a pause. */
static const struct action
{
    const char *name;
    int (*on)(struct scenario *s, struct sim_world *w, uint32_t peer, double times);
    bool cuts, heals, times, kills, starts, stops, goes;
} actions[] = {{.name = "kill", .on = on_kill, .kills = true, .goes = true},
               {.name = "restart", .on = on_restart, .starts = true},
               {.name = "leave", .on = on_leave},
               {.name = "stop", .on = on_stop, .stops = true},
               {.name = "go", .on = on_go, .goes = true},
               {.name = "slow", .on = on_slow, .times = true},
               {.name = "cut", .cuts = true},
               {.name = "heal", .heals = true},
               {.name = NULL}};

/* Executes one action of the scenario, for each of its peers or paths. Returns 0 or a negative
 * errno. */
static int execute_action(struct scenario *s, struct sim_world *w, const struct scheduled_action *m)
{
    int err = 0;
    for (uint32_t i = 0; i < s->n && err == 0; i++) {
        if (m->a[i] && m->action->on != NULL)
            err = m->action->on(s, w, i, m->times);
        for (uint32_t k = 0; m->a[i] && m->b != NULL && k < s->n; k++)
            if (m->b[k] && k != i)
                on_path(s, w, i, k, m->action->cuts);
    }
    return err;
}

/* Applies the property `slow` of all `peer` lines at the start of the simulation. */
static void begin(struct scenario *s, struct sim_world *w)
{
    for (uint32_t r = 0; r < s->n_rules; r++)
        for (uint32_t i = 0; i < s->n && s->rule[r].v.slow >= 0; i++)
            if (s->rule[r].a[i])
                sim_slow(w, i, s->rule[r].v.slow);
    s->begun = true;
}

static bool will_start(const struct scenario *s)
{
    for (uint32_t k = s->next; k < s->n_scheduled; k++)
        if (s->scheduled_action[k].action->starts)
            return true;
    return false;
}

bool scenario_will_reconnect(const struct scenario *s)
{
    for (uint32_t k = s->next; k < s->n_scheduled; k++) {
        const struct action *a = s->scheduled_action[k].action;
        if (a->starts || a->heals || (a->goes && !a->kills))
            return true;
    }
    return false;
}

int scenario_step(struct scenario *s, struct sim_world *w)
{
    if (!s->begun)
        begin(s, w);
    if (sim_over(w) && !will_start(s))
        return 0;
    const struct scheduled_action *m =
        s->next < s->n_scheduled ? &s->scheduled_action[s->next] : NULL;
    /* Actions at time 0 happen before any peer starts. */
    bool is_first = m != NULL && m->at_us == 0;
    if (m == NULL || (!is_first && sim_next_us(w) <= m->at_us))
        return sim_step(w);
    s->next++;
    /* No event of the simulator is earlier than the action, so the simulated time can advance to
     * the time of the action. */
    if (!is_first)
        (void)sim_run_to(w, m->at_us);
    int err = execute_action(s, w, m);
    return err < 0 ? err : 1;
}

void scenario_path(const struct scenario *s, uint32_t from, uint32_t to, struct sim_path *path)
{
    for (uint32_t r = 0; r < s->n_rules; r++) {
        const struct rule *rule = &s->rule[r];
        const struct values *v = &rule->v;
        if (!rule->is_link) {
            path->uplink = rule->a[from] && v->uplink >= 0 ? v->uplink : path->uplink;
            path->downlink = rule->a[to] && v->downlink >= 0 ? v->downlink : path->downlink;
            continue;
        }
        if (!(rule->a[from] && rule->b[to]) && !(rule->a[to] && rule->b[from]))
            continue;
        path->latency_us = v->latency_us >= 0 ? (int64_t)v->latency_us : path->latency_us;
        path->jitter_us = v->jitter_us >= 0 ? (int64_t)v->jitter_us : path->jitter_us;
        path->bytes_per_s = v->bandwidth >= 0 ? v->bandwidth : path->bytes_per_s;
        path->loss = v->loss >= 0 ? v->loss : path->loss;
        path->headers = v->headers >= 0 ? (uint32_t)v->headers : path->headers;
    }
}

/* ---- Parsing the file ---- */

struct reading
{
    struct scenario *s;
    unsigned line;
    char *error;
};

__attribute__((format(printf, 2, 3))) static int scenario_refuse(const struct reading *r,
                                                                 const char *format, ...)
{
    va_list args;
    int n = snprintf(r->error, SCENARIO_ERROR_MAX, "line %u: ", r->line);
    va_start(args, format);
    vsnprintf(r->error + n, SCENARIO_ERROR_MAX - (size_t)n, format, args);
    va_end(args);
    return -EINVAL;
}

static int no_memory(const struct reading *r)
{
    snprintf(r->error, SCENARIO_ERROR_MAX, "out of memory");
    return -ENOMEM;
}

/* Reads a list of peers such as 3, 0,7 or 5-14, or "*" for all peers. Sets `*who` to a new array of
 * n flags, which the caller owns. Returns 0, or a negative errno with a message. */
static int read_peers(const struct reading *r, const char *word, bool **who)
{
    uint32_t n = r->s->n;
    char why[WHO_ERROR_MAX];
    *who = calloc(n, sizeof **who);
    if (*who == NULL)
        return no_memory(r);
    if (word != NULL && strcmp(word, "*") == 0)
        memset(*who, true, n * sizeof **who);
    else if (who_read(word != NULL ? word : "", n, *who, why) != 0)
        return scenario_refuse(r, "%s or *", why);
    return 0;
}

static int read_number(const struct reading *r, const char *name, const char *text, double min,
                       double max, double *v)
{
    if (text == NULL || !number_real(text, v) || !(*v >= min && *v <= max))
        return scenario_refuse(r, "%s: found '%.32s', expected a number from %g to %g", name,
                               text != NULL ? text : "", min, max);
    return 0;
}

static const struct word
{
    const char *name;
    size_t at;
    bool is_link;
    double min, max;
} words[] = {{"latency-us", offsetof(struct values, latency_us), true, 0, 1e9},
             {"jitter-us", offsetof(struct values, jitter_us), true, 0, 1e9},
             {"bandwidth", offsetof(struct values, bandwidth), true, 0, 1e15},
             {"loss", offsetof(struct values, loss), true, 0, 0.5},
             {"headers", offsetof(struct values, headers), true, 0, 1000},
             {"uplink", offsetof(struct values, uplink), false, 0, 1e15},
             {"downlink", offsetof(struct values, downlink), false, 0, 1e15},
             {"slow", offsetof(struct values, slow), false, 1e-3, 1e6}};

/* Reads one property "name=value" of a `link` line or `peer` line. Returns 0, or -EINVAL with a
 * message. */
static int read_word(const struct reading *r, struct rule *rule, char *text)
{
    char *equals = strchr(text, '='), known[128] = "";
    double v;
    if (equals != NULL)
        *equals = '\0';
    for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
        const struct word *w = &words[k];
        size_t at = strlen(known);
        if (w->is_link != rule->is_link)
            continue;
        snprintf(known + at, sizeof known - at, "%s%s", at > 0 ? ", " : "", w->name);
        if (strcmp(text, w->name) != 0)
            continue;
        memcpy(&v, (const char *)&rule->v + w->at, sizeof v);
        if (v >= 0)
            return scenario_refuse(r, "%s: found twice, expected once", w->name);
        int err = read_number(r, w->name, equals != NULL ? equals + 1 : NULL, w->min, w->max, &v);
        bool is_rate = w->max == 1e15;
        if (err == 0 && is_rate && v > 0 && v < SIM_LEAST_BYTES_PER_S)
            return scenario_refuse(
                r, "%s: found %g, expected 0 (no limit) or at least %d bytes per second", w->name,
                v, SIM_LEAST_BYTES_PER_S);
        memcpy((char *)&rule->v + w->at, &v, sizeof v);
        return err;
    }
    return scenario_refuse(r, "found '%.32s', expected one of %s, each as name=value", text, known);
}

static char *next_word(char **at)
{
    return strtok_r(NULL, " \t\r", at);
}

static int read_rule(const struct reading *r, bool is_link, char *text)
{
    struct rule *rule = &r->s->rule[r->s->n_rules++];
    char *at, *word = strtok_r(text, " \t\r", &at);
    *rule = (struct rule){.is_link = is_link, .v = {-1, -1, -1, -1, -1, -1, -1, -1}};
    int err = read_peers(r, word, &rule->a), n = 0;
    if (err == 0 && is_link)
        err = read_peers(r, next_word(&at), &rule->b);
    for (; err == 0 && (word = next_word(&at)) != NULL; n++)
        err = read_word(r, rule, word);
    return err == 0 && n == 0 ? scenario_refuse(
               r, "expected at least one property as name=value, such as latency-us=5000")
                              : err;
}

static int unknown_action(const struct reading *r, const char *word)
{
    char known[128] = "";
    for (const struct action *a = actions; a->name != NULL; a++) {
        size_t at = strlen(known);
        snprintf(known + at, sizeof known - at, "%s%s", at > 0 ? ", " : "", a->name);
    }
    return scenario_refuse(r, "found '%.32s', expected one of %s", word != NULL ? word : "", known);
}

/* Reads the value of an `at` line, such as "30 kill 2". Returns 0, or a negative errno with a
 * message. */
static int read_scheduled_action(const struct reading *r, char *text)
{
    struct scheduled_action *m = &r->s->scheduled_action[r->s->n_scheduled++];
    double at_s;
    char *at, *word = strtok_r(text, " \t\r", &at);
    *m = (struct scheduled_action){.line = r->line};
    int err = read_number(r, "seconds", word, 0, s_max, &at_s);
    if (err < 0)
        return err;
    m->at_us = (int64_t)(at_s * 1e6);
    word = next_word(&at);
    for (const struct action *a = actions; a->name != NULL; a++)
        if (word != NULL && strcmp(a->name, word) == 0)
            m->action = a;
    if (m->action == NULL)
        return unknown_action(r, word);
    err = read_peers(r, next_word(&at), &m->a);
    if (err == 0 && (m->action->cuts || m->action->heals))
        err = read_peers(r, next_word(&at), &m->b);
    if (err == 0 && m->action->times)
        err = read_number(r, "times", next_word(&at), 1e-3, 1e6, &m->times);
    word = next_word(&at);
    return err == 0 && word != NULL ? scenario_refuse(
               r, "found '%.32s' after the last argument, expected the end of the line", word)
                                    : err;
}

static int add_line(const struct reading *r, const struct options_setting *found)
{
    if (r->s->n_rules + r->s->n_scheduled == SCENARIO_LINES_MAX)
        return scenario_refuse(r, "found too many lines, expected at most %d", SCENARIO_LINES_MAX);
    if (strcmp(found->name, "link") == 0)
        return read_rule(r, true, found->value);
    if (strcmp(found->name, "peer") == 0)
        return read_rule(r, false, found->value);
    if (strcmp(found->name, "at") == 0)
        return read_scheduled_action(r, found->value);
    return scenario_refuse(r, "found '%.32s', expected link, peer or at", found->name);
}

static int by_time(const void *a, const void *b)
{
    const struct scheduled_action *x = a, *y = b;
    if (x->at_us != y->at_us)
        return x->at_us < y->at_us ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

/* Checks that the actions on one peer are consistent. A peer that is stopped must be continued or
 * killed later, because otherwise the simulation would never end. Returns 0, or -EINVAL with a
 * message. */
static int check_life(struct reading *r, uint32_t peer)
{
    const struct scheduled_action *stopped = NULL;
    bool killed = false;
    for (uint32_t k = 0; k < r->s->n_scheduled; k++) {
        const struct scheduled_action *m = &r->s->scheduled_action[k];
        if (!m->a[peer])
            continue;
        r->line = m->line;
        if (m->action->starts && !killed)
            return scenario_refuse(r, "restart: peer %u has not been killed before", peer);
        if (m->action->kills && killed)
            return scenario_refuse(r, "kill: peer %u has been killed before, and was not restarted",
                                   peer);
        killed = m->action->kills || (killed && !m->action->starts);
        stopped = m->action->goes ? NULL : m->action->stops ? m : stopped;
    }
    if (stopped != NULL) {
        r->line = stopped->line;
        return scenario_refuse(
            r,
            "stop: peer %u needs a later \"go\" or \"kill\", otherwise the simulation never ends",
            peer);
    }
    return 0;
}

static int read_all(struct reading *r, char *text)
{
    struct options_setting found;
    char why[OPTIONS_ERROR_MAX];
    int more, err = 0;
    while (err == 0 && (more = options_setting_next(&text, &r->line, &found, why)) != 0)
        err = more < 0 ? scenario_refuse(r, "%s", why) : add_line(r, &found);
    if (err < 0)
        return err;
    qsort(r->s->scheduled_action, r->s->n_scheduled, sizeof *r->s->scheduled_action, by_time);
    for (uint32_t i = 0; i < r->s->n && err == 0; i++)
        err = check_life(r, i);
    return err;
}

int scenario_read(struct scenario **s, char *text, uint32_t n_peers, char error[SCENARIO_ERROR_MAX])
{
    struct reading r = {.s = calloc(1, sizeof *r.s), .error = error};
    *s = NULL;
    if (r.s == NULL)
        return no_memory(&r);
    r.s->n = n_peers;
    r.s->rule = calloc(SCENARIO_LINES_MAX, sizeof *r.s->rule);
    r.s->scheduled_action = calloc(SCENARIO_LINES_MAX, sizeof *r.s->scheduled_action);
    r.s->cut = calloc((size_t)n_peers * n_peers, 1);
    int err = r.s->rule == NULL || r.s->scheduled_action == NULL || r.s->cut == NULL
                  ? no_memory(&r)
                  : read_all(&r, text);
    if (err < 0)
        scenario_close(r.s);
    else
        *s = r.s;
    return err;
}

void scenario_close(struct scenario *s)
{
    if (s == NULL)
        return;
    for (uint32_t k = 0; s->rule != NULL && k < s->n_rules; k++) {
        free(s->rule[k].a);
        free(s->rule[k].b);
    }
    for (uint32_t k = 0; s->scheduled_action != NULL && k < s->n_scheduled; k++) {
        free(s->scheduled_action[k].a);
        free(s->scheduled_action[k].b);
    }
    free(s->rule);
    free(s->scheduled_action);
    free(s->cut);
    free(s);
}
