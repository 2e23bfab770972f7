/* peer/http/routes.c -- the table of paths, and the answer to a request. */
#include "peer/http/routes.h"

#include "peer/http/health.h"
#include "peer/http/live.h"
#include "peer/http/prometheus.h"

#include <string.h>

static const char plain[] = "text/plain; charset=utf-8";

/* ---- Writing the answer of each path ---- */

static unsigned write_page(struct routes *r, struct text *t, const struct snapshot *s,
                           int64_t now_us)
{
    (void)r, (void)s, (void)now_us;
    text_add_bytes(t, live_html, live_html_bytes);
    return 200;
}

static unsigned write_metrics(struct routes *r, struct text *t, const struct snapshot *s,
                              int64_t now_us)
{
    (void)r;
    prometheus_write(t, s, now_us);
    return 200;
}

static unsigned write_status(struct routes *r, struct text *t, const struct snapshot *s,
                             int64_t now_us)
{
    status_write(t, &r->history, s, now_us);
    return 200;
}

static unsigned write_live(struct routes *r, struct text *t, const struct snapshot *s,
                           int64_t now_us)
{
    char text[HEALTH_TEXT];
    (void)r;
    unsigned status = health_live(s, now_us, text) ? 200 : 503;
    text_add(t, "%s\n", text);
    return status;
}

static unsigned write_ready(struct routes *r, struct text *t, const struct snapshot *s,
                            int64_t now_us)
{
    char text[HEALTH_TEXT];
    (void)r;
    unsigned status = health_ready(s, now_us, text) ? 200 : 503;
    text_add(t, "%s\n", text);
    return status;
}

static const struct route
{
    const char *path, *type;
    unsigned (*write)(struct routes *r, struct text *t, const struct snapshot *s, int64_t now_us);
    /* Index of the cache entry that may keep the answer for this path. Only expensive answers are
     * kept. -1: the answer is not kept. */
    int place;
    const char *policy;
} route[] = {
    {"/", "text/html; charset=utf-8", write_page, -1, live_policy},
    {"/metrics", PROMETHEUS_TYPE, write_metrics, 0, NULL},
    {"/status.json", "application/json", write_status, 1, NULL},
    {"/healthz", plain, write_live, -1, NULL},
    {"/readyz", plain, write_ready, -1, NULL},
};

/* ---- Choosing the answer of a request ---- */

static bool is_read(const char *method)
{
    return strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
}

static const struct route *find(const char *path)
{
    for (size_t i = 0; i < sizeof route / sizeof *route; i++)
        if (strcmp(path, route[i].path) == 0)
            return &route[i];
    return NULL;
}

int routes_place(const char *method, const char *path)
{
    const struct route *found = is_read(method) ? find(path) : NULL;
    return found != NULL ? found->place : -1;
}

static void refuse(struct routes_answer *a, unsigned status, const char *text)
{
    a->status = status;
    a->type = plain;
    text_add(&a->body, "%s\n", text);
}

void routes_answer(struct routes *r, const char *method, const char *path, const struct snapshot *s,
                   int64_t now_us, struct routes_answer *a)
{
    const struct route *found = find(path);
    *a = (struct routes_answer){.place = -1};
    if (!is_read(method)) {
        refuse(a, 405, "found another HTTP method, expected GET or HEAD");
        a->allow = "GET, HEAD";
    } else if (found == NULL) {
        refuse(a, 404,
               "found an unknown path, expected /, /metrics, /status.json, /healthz or /readyz");
    } else {
        a->type = found->type;
        a->place = found->place;
        a->policy = found->policy;
        a->status = found->write(r, &a->body, s, now_us);
    }
    if (!a->body.failed)
        return;
    text_close(&a->body);
    *a = (struct routes_answer){.status = 503, .type = plain, .place = -1};
}

void routes_misdirected(struct routes_answer *a)
{
    *a = (struct routes_answer){.place = -1};
    refuse(a, 421,
           "this peer does not serve that host name: use an IP address, localhost, this machine's "
           "host name, or a name in --metrics, --advertise or --bootstrap");
}

void routes_close(struct routes *r)
{
    text_close(&r->history.points);
}
