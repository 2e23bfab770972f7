/* peer/sim/heap.c -- a binary heap of events by time; events of equal time keep their order. */
#include "peer/sim/heap.h"

#include <assert.h>
#include <stdlib.h>

static bool before(const struct sim_event *a, const struct sim_event *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->seq < b->seq;
}

void sim_heap_push(struct sim_heap *h, struct sim_event e)
{
    if (h->n == h->cap) {
        h->cap = h->cap > 0 ? 2 * h->cap : 256;
        h->at = realloc(h->at, h->cap * sizeof *h->at);
        if (h->at == NULL)
            abort();
    }
    e.seq = h->seq++;
    size_t i = h->n++;
    for (; i > 0 && before(&e, &h->at[(i - 1) / 2]); i = (i - 1) / 2)
        h->at[i] = h->at[(i - 1) / 2];
    h->at[i] = e;
}

struct sim_event sim_heap_pop(struct sim_heap *h)
{
    assert(h->n > 0);
    struct sim_event top = h->at[0], last = h->at[--h->n];
    size_t i = 0;
    for (size_t c = 1; c < h->n; c = 2 * i + 1) {
        if (c + 1 < h->n && before(&h->at[c + 1], &h->at[c]))
            c++;
        if (!before(&h->at[c], &last))
            break;
        h->at[i] = h->at[c];
        i = c;
    }
    h->at[i] = last;
    return top;
}

void sim_heap_close(struct sim_heap *h)
{
    for (size_t i = 0; i < h->n; i++)
        free(h->at[i].bytes);
    free(h->at);
    *h = (struct sim_heap){0};
}

void sim_queue_add(struct sim_queue *q, struct sim_event e)
{
    if (q->n == q->cap) {
        q->cap = q->cap > 0 ? 2 * q->cap : 16;
        q->at = realloc(q->at, q->cap * sizeof *q->at);
        if (q->at == NULL)
            abort();
    }
    q->at[q->n++] = e;
}

void sim_queue_close(struct sim_queue *q)
{
    for (size_t i = 0; i < q->n; i++)
        free(q->at[i].bytes);
    free(q->at);
    *q = (struct sim_queue){0};
}
