/* peer/uv/metrics.c -- formats the figures of a round as one line of JSON. Unknown values are null,
 * never NaN.
 */
#include "peer/uv/metrics.h"

#include "gossip/exchange/edge.h"
#include "peer/node/timers.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    DIGITS = 9, /* Significant decimal digits that distinguish any two floats. */
    EXACT = 17  /* Significant decimal digits that distinguish any two doubles. */
};

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

/* Returns the value of a figure as JSON, or null if the value is not known. Values for Python are
 * not rounded, because Python programs compare them with numbers of their own. */
static json_t *value_of(const struct figure *f, const struct figure_values *v,
                        enum figure_output output)
{
    struct figure_value x = figure_get(f, v, output);
    switch (x.is) {
    case FIGURE_IS_WHOLE:
        return uv_metrics_whole(x.whole);
    case FIGURE_IS_REAL:
        return output == FIGURE_PYTHON ? json_real(x.real) : uv_metrics_figure(x.real);
    case FIGURE_IS_BOOL:
        return json_boolean(x.yes);
    case FIGURE_IS_TEXT:
        return uv_metrics_text(x.text);
    case FIGURE_IS_UNKNOWN:
        break;
    }
    return json_null();
}

int uv_metrics_add(json_t *object, const struct figure_values *v, enum figure_output output)
{
    const struct figure *f;
    int err = 0;
    for (uint32_t i = 1; (f = figure_at(output, i)) != NULL; i++) {
        const char *name = output == FIGURE_PYTHON && f->python != NULL ? f->python : f->name;
        err |= json_object_set_new(object, name, value_of(f, v, output));
    }
    return err == 0 ? 0 : -ENOMEM;
}

static json_t *object_of(const struct figure_values *v, enum figure_output output)
{
    json_t *object = json_object();
    if (object != NULL && uv_metrics_add(object, v, output) == 0)
        return object;
    json_decref(object);
    return NULL;
}

json_t *uv_metrics_object(const struct figure_values *v)
{
    return object_of(v, FIGURE_METRICS);
}

char *uv_metrics_line(const struct node_progress *p, double time_s)
{
    struct figure_values v;
    figure_init(&v);
    v.node = *p;
    v.time_s = time_s;
    json_t *object = uv_metrics_object(&v);
    char *text = object ? json_dumps(object, JSON_REAL_PRECISION(DIGITS)) : NULL;
    json_decref(object);
    return text;
}

char *uv_metrics_python(const struct figure_values *v)
{
    json_t *object = object_of(v, FIGURE_PYTHON);
    char *text = object ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(EXACT)) : NULL;
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
