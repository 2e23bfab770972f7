/* peer/http/health.c -- derives health and readiness from a snapshot. */
#include "peer/http/health.h"

#include "nn/math/number.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* Writes the reason for the health answer `answer` to text[], unless `text` is NULL. Returns
 * `answer`. */
__attribute__((format(printf, 3, 4))) static bool say(char text[HEALTH_TEXT], bool answer,
                                                      const char *format, ...)
{
    va_list list;
    va_start(list, format);
    if (text != NULL)
        vsnprintf(text, HEALTH_TEXT, format, list);
    va_end(list);
    return answer;
}

bool health_live(const struct snapshot *s, int64_t now_us, char text[HEALTH_TEXT])
{
    int64_t silent_us = now_us - s->taken_us;
    if (s->number == 0)
        return say(text, true,
                   "starting: the peer reads its data, or asks the cluster for the run");
    if (silent_us > HEALTH_SILENT_US)
        return say(text, false, "the event loop has not responded for %.0f s",
                   (double)silent_us * 1e-6);
    return say(text, true, "alive");
}

static bool gathers(const struct snapshot *s, char text[HEALTH_TEXT])
{
    uint32_t live = s->figures.node.n_live;
    if (!s->figures.has_run)
        return say(text, false,
                   "joining: this peer has no run yet, and waits for a peer that has one");
    if (live < s->figures.min_peers)
        return say(text, false, "joining: %u of %u members are present", live,
                   s->figures.min_peers);
    return say(text, false,
               "joining: %u member%s present, of %u needed; this peer waits for their edges or "
               "for a model",
               live, number_plural(live), s->figures.min_peers);
}

bool health_ready(const struct snapshot *s, int64_t now_us, char text[HEALTH_TEXT])
{
    const struct node_progress *p = &s->figures.node;
    if (!health_live(s, now_us, text) || s->number == 0)
        return false;
    switch (p->phase) {
    case NODE_JOINING:
        return gathers(s, text);
    case NODE_TRAINING:
        if (p->holds)
            return say(text, false, "no-quorum: fewer members are alive than the run's quorum");
        return say(text, true, "training: round %" PRIu64 " of %" PRIu64, p->round, p->n_rounds);
    case NODE_CONSENSUS:
        return say(text, true, "consensus: round %" PRIu64 " of the consensus phase",
                   p->settle_rounds);
    case NODE_FINISHING:
        return say(text, true, "finishing: the model of this peer is final");
    case NODE_LEFT:
        break;
    }
    return say(text, false, "left: this peer has left the run");
}
