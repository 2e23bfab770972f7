/* peer/uv/metrics.c -- formats the figures of a round as one line of JSON. Unknown values are null,
 * never NaN.
 */
#include "peer/uv/metrics.h"

#include "gossip/exchange/edge.h"
#include "peer/node/timers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DIGITS = 9 /* Number of digits that distinguish any two floats. */ };

const char *uv_metrics_phase(enum node_phase phase, bool holds)
{
    switch (phase) {
    case NODE_JOINING:
        return "joining";
    case NODE_TRAINING:
        return holds ? "no-quorum" : "training";
    case NODE_CONSENSUS:
        return "consensus";
    case NODE_FINISHING:
        return "finishing";
    case NODE_LEFT:
        return "left";
    }
    return "unknown"; /* A peer may send a phase number that this version does not know. */
}

const char *uv_metrics_edge(uint32_t state)
{
    switch ((enum edge_state)state) {
    case EDGE_CLOSED:
        return "closed";
    case EDGE_ASKING:
        return "asking";
    case EDGE_OPEN:
        return "open";
    case EDGE_PAUSED:
        return "paused";
    case EDGE_DONE:
        return "done";
    }
    return "unknown";
}

json_t *uv_metrics_text(const char *text)
{
    if (text == NULL)
        return json_null();
    json_t *valid = json_string(text);
    char *ascii = valid == NULL ? strdup(text) : NULL;
    if (ascii == NULL)
        return valid;
    for (char *c = ascii; *c != '\0'; c++)
        if ((unsigned char)*c >= 0x80)
            *c = '?';
    valid = json_string(ascii);
    free(ascii);
    return valid;
}

json_t *uv_metrics_number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

json_t *uv_metrics_whole(uint64_t n)
{
    return json_integer(n < INT64_MAX ? (json_int_t)n : INT64_MAX);
}

double uv_metrics_rounded(double x)
{
    char text[40];
    snprintf(text, sizeof text, "%.*g", DIGITS, x);
    return strtod(text, NULL);
}

json_t *uv_metrics_figure(double x)
{
    return uv_metrics_number(uv_metrics_rounded(x));
}

json_t *uv_metrics_timers(void)
{
    json_t *all = json_array();
    for (const struct timer *t = timer_all; t->name != NULL; t++)
        json_array_append_new(all, json_pack("{s:s, s:o, s:s}", "name", t->name, "seconds",
                                             uv_metrics_figure((double)t->period_us * 1e-6),
                                             "purpose", t->purpose));
    return all;
}

static void put_evaluation(json_t *object, const struct node_progress *p, bool has)
{
    has &= p->accuracy_samples > 0;
    json_object_set_new(object, "accuracy", uv_metrics_figure(has ? p->accuracy : (double)NAN));
    json_object_set_new(object, "test_loss", uv_metrics_figure(has ? p->test_loss : (double)NAN));
    json_object_set_new(object, "accuracy_round",
                        has ? uv_metrics_whole(p->accuracy_round) : json_null());
    json_object_set_new(object, "accuracy_samples",
                        has ? uv_metrics_whole(p->accuracy_samples) : json_null());
}

void uv_metrics_evaluation(json_t *object, const struct node_progress *p)
{
    put_evaluation(object, p, true);
}

json_t *uv_metrics_object(const struct node_progress *p, double time_s)
{
    json_t *object = json_pack(
        "{s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s?, s:o, s:o, s:o, "
        "s:o, "
        "s:o, s:o, s:o, s:o, s:o, s:o,"
        " s:o, s:o, s:o, s:o, s:o, s:s?, s:o, s:o}",
        "round", uv_metrics_whole(p->round), "rounds", uv_metrics_whole(p->n_rounds), "phase",
        uv_metrics_phase(p->phase, p->holds), "time_s", uv_metrics_figure(time_s), "loss",
        uv_metrics_figure(p->loss), "drift", uv_metrics_figure(p->drift), "relative_drift",
        uv_metrics_figure(p->relative_drift), "drift_round",
        isfinite(p->drift) ? uv_metrics_whole(p->drift_round) : json_null(), "drift_age",
        isfinite(p->drift) ? uv_metrics_whole(p->drift_age) : json_null(), "own_distance",
        uv_metrics_figure(p->own_distance), "statistics_disagreement",
        uv_metrics_figure(p->statistics_apart), "gamma", uv_metrics_figure(p->gamma), "rung",
        p->rung, "drift_excess", uv_metrics_figure(p->excess), "drift_target",
        uv_metrics_figure(p->drift_target), "bytes_sent", uv_metrics_whole(p->bytes_sent),
        "bytes_received", uv_metrics_whole(p->bytes_received), "compute_s",
        uv_metrics_figure(p->compute_s), "wait_s", uv_metrics_figure(p->wait_s), "mix_s",
        uv_metrics_figure(p->mix_s), "live", uv_metrics_whole(p->n_live), "edges",
        uv_metrics_whole(p->n_edges), "settle_rounds", uv_metrics_whole(p->settle_rounds),
        "local_steps", uv_metrics_whole(p->local_steps), "steps_done",
        uv_metrics_whole(p->steps_done), "rounds_done", uv_metrics_whole(p->rounds_done),
        "rounds_skipped", uv_metrics_whole(p->rounds_skipped), "joined_round",
        uv_metrics_whole(p->joined_round), "rung_by", p->rung_by, "goodput",
        uv_metrics_figure(p->goodput), "bytes_ahead", uv_metrics_whole(p->bytes_ahead));
    put_evaluation(object, p, p->evaluated);
    return object;
}

char *uv_metrics_line(const struct node_progress *p, double time_s)
{
    json_t *object = uv_metrics_object(p, time_s);
    char *text = object ? json_dumps(object, JSON_REAL_PRECISION(DIGITS)) : NULL;
    json_decref(object);
    return text;
}

char *uv_metrics_start(int64_t at, uint64_t from_round)
{
    char text[32] = "";
    time_t seconds = (time_t)at;
    struct tm tm;
    if (at >= 0 && gmtime_r(&seconds, &tm) != NULL)
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
    json_t *object = json_pack("{s:b, s:o, s:s, s:o}", "start", true, "at",
                               text[0] != '\0' ? json_string(text) : json_null(), "version",
                               HEARSAY_VERSION, "from_round", uv_metrics_whole(from_round));
    char *line = object ? json_dumps(object, 0) : NULL;
    json_decref(object);
    return line;
}

bool uv_metrics_due(struct uv_metrics_pace *p, const struct node_progress *g, double time_s)
{
    bool long_ago = g->settle_rounds > UV_METRICS_ROUNDS && g->phase == NODE_CONSENSUS;
    if (long_ago && time_s < p->next_s)
        return false;
    p->next_s = time_s + UV_METRICS_GAP_S;
    return true;
}
