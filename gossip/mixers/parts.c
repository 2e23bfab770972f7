/* gossip/mixers/parts.c -- chooses, encodes and joins the fragments of a delta. */
#include "gossip/mixers/parts.h"

#include <assert.h>
#include <string.h>

enum {
    /* Least fragment size in bytes: a shorter message costs more time than it saves. */
    LEAST_BYTES = 8 * 1024,
    /* A fragment has at least 1/LEAST_SHARE of the bytes of a delta of usual size. */
    LEAST_SHARE = 4
};

/* Selects the delta to encode in fragments: the first one that the job encodes, because an encoder
 * builds one message at a time. Without faults all edges share that delta. */
void parts_plan(struct mixing *m)
{
    m->parts.of = NULL;
    m->parts.n = 0;
    m->parts.begun = m->parts.dropped = false;
    for (size_t i = 0; i < m->n_tasks && m->by_layer && m->mixer->parts; i++) {
        struct mixing_task *t = &m->task[i];
        if (!t->encodes)
            continue;
        if (t->codec != DELTA_FINAL && t->codec != DELTA_CATCHUP)
            m->parts.of = t;
        return;
    }
}

/* A fragment is encoded at the start of the packet's buffer, which is still unused. Then it is
 * moved towards the end of the buffer, directly before the fragments encoded earlier. */
size_t mixing_part(struct mixing *m, size_t from)
{
    struct mixing_task *t = m->parts.of;
    if (t == NULL || m->parts.dropped)
        return 0;
    struct compress *c = m->codec[t->codec];
    struct compress_input in = parts_input(m, t, m->x, t->replica->v);
    size_t n;
    if (!m->parts.begun)
        compress_begin(c);
    m->parts.begun = true;
    if (compress_part(c, &in, from, t->made->bytes, &n) != 0) {
        /* The error is not reported here, because the encoding of the whole delta, later in this
         * job, fails with the same error. */
        mixing_drop_parts(m);
        return 0;
    }
    m->parts.n += n;
    memmove(t->made->bytes + t->made->cap - m->parts.n, t->made->bytes, n);
    return m->parts.n;
}

void mixing_drop_parts(struct mixing *m)
{
    m->parts.dropped = true;
}

bool parts_begun(const struct mixing *m, const struct mixing_task *t)
{
    return t == m->parts.of && m->parts.begun && !m->parts.dropped;
}

struct bytes mixing_parts(const struct mixing *m, size_t from, size_t to)
{
    const struct packet *p = m->parts.of->made;
    return (struct bytes){p->bytes + p->cap - to, to - from};
}

bool mixing_has_parts(const struct mixing *m, const struct mixing_task *t)
{
    return m->parts.of != NULL && t->encode && t->made == m->parts.of->made;
}

size_t mixing_part_least(const struct mixing *m)
{
    size_t usual = m->parts.of != NULL ? compress_nominal(m->codec[m->parts.of->codec]) : 0;
    size_t least = m->part_least > 0 ? m->part_least : LEAST_BYTES;
    return m->part_least == 0 && usual / LEAST_SHARE > least ? usual / LEAST_SHARE : least;
}

void parts_finish(struct mixing *m)
{
    struct mixing_task *of = m->parts.of;
    if (of != NULL && parts_begun(m, of) && !m->diverged) {
        struct packet *p = of->made;
        assert(p->len + m->parts.n <= p->cap);
        memmove(p->bytes + p->len, p->bytes + p->cap - m->parts.n, m->parts.n);
        p->len += m->parts.n;
        for (size_t i = 0; i < m->n_tasks; i++)
            if (mixing_has_parts(m, &m->task[i]))
                m->task[i].sent.n_parts = m->parts.n;
    }
    m->parts.of = NULL;
}
