/* peer/http/routes.h -- makes the answer to a request from the path and a snapshot.
 *
 *   /              the live page (live.h)
 *   /metrics       Prometheus' text format (prometheus.h)
 *   /status.json   the same and more as JSON (status.h)
 *   /healthz       200 while the main loop runs, else 503 (health.h)
 *   /readyz        200 while the peer takes part in the run, else 503; with the reason
 *   other paths    404; methods other than GET and HEAD: 405
 *   any path       421, if hosts.h does not allow the Host header
 *
 * To add a page, add a row to routes.c: a function that writes the page, and its content type.
 */
#ifndef PEER_HTTP_ROUTES_H
#define PEER_HTTP_ROUTES_H

#include "peer/http/status.h"

/* State from which answers are made, in addition to the snapshot. Initialise with zeros. */
struct routes
{
    struct status_history history;
};

struct routes_answer
{
    unsigned status;  /* HTTP status code: 200, 404, ... */
    const char *type; /* Value of the Content-Type header. */
    /* Value of the Allow header, which an answer with status 405 has. NULL with any other
     * status. */
    const char *allow;
    const char *policy; /* Content-Security-Policy of a page for browsers. Else NULL. */
    struct text body;   /* Body of the answer. The caller calls text_close() on it. */
    /* Index of the cache entry in which this answer may be kept. While the snapshot is the same,
     * the kept answer may be used for equal requests. -1: the answer must not be kept. */
    int place;
};

/* Number of cache entries. routes_answer.place is less than this number. */
enum { ROUTES_KEPT = 2 };

/* Returns the index of the cache entry in which the answer to this request may be kept
 * (routes_answer.place). -1: the answer must not be kept. */
int routes_place(const char *method, const char *path);

/* Writes the answer to a request into *a. The body of *a must be empty. */
void routes_answer(struct routes *r, const char *method, const char *path, const struct snapshot *s,
                   int64_t now_us, struct routes_answer *a);
/* Writes the answer to a request whose Host header is not allowed: status 421. */
void routes_misdirected(struct routes_answer *a);
void routes_close(struct routes *r);

#endif
