/* peer/node/edge/flap_damping.c -- detects neighbours that come and go too often. */
#include "peer/node/edge/flap_damping.h"

#include "peer/node/mark.h"

#include <assert.h>
#include <math.h>

/* Half-life of the penalty, and two limits of the penalty, in seconds. A neighbour becomes flapping
 * when its penalty exceeds `most_s`, and stable when the penalty is `least_s` or less. */
static const double half_life_s = 10, most_s = 3, least_s = 1;
/* Half-life of the count of absences, in seconds. A count above `often` means that the neighbour
 * was absent several times recently. */
static const double n_half_life_s = 60, often = 1.4;

struct flap_damping flap_damping_begun(int64_t now_us)
{
    return (struct flap_damping){.at_us = now_us, .since_us = now_us, .away = true};
}

void flap_damping_look(struct flap_damping *a, bool away, int64_t there_us, int64_t now_us)
{
    assert(now_us >= a->at_us && there_us <= now_us);
    double dt = (double)(now_us - a->at_us) * 1e-6;
    a->at_us = now_us;
    a->s = a->s * exp2(-dt / half_life_s) + (away ? dt : 0);
    a->n = a->n * exp2(-dt / n_half_life_s) + (away && !a->away);
    a->flapping = a->s > (a->flapping ? least_s : most_s);
    MARK_IF(a->flapping, "flap_damping: a neighbour flaps");
    if (away && !a->away)
        a->since_us = there_us;
    if (away)
        a->away_us = now_us - a->since_us;
    a->away = away;
    assert(a->away_us >= 0);
}

bool flap_damping_often(const struct flap_damping *a)
{
    MARK_IF(a->n > often, "flap_damping: a neighbour is absent often");
    return a->n > often;
}
