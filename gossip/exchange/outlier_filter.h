/* gossip/exchange/outlier_filter.h -- how far off a neighbour's model may be, by what was seen before.
 *
 * A fuse, always on, for what no honest training does. An exchange moves x by a share of
 * D = |b - a|. It is *refused*, and x stays as it is, where
 *
 *   D > OUTLIER_FILTER_TIMES max(D of the epoch so far, |x - a|)   and   D > OUTLIER_FILTER_WAYS |x - x0|
 *
 * |x - a| is how far our own delta of the exchange had to reach: in an epoch's first
 * exchange it is all the way that our model has come from the run's initial one, x0, and
 * theirs has come about as far. So models of one run are never much farther apart than
 * that, also where all the others have long agreed and one comes late.
 *
 * What stays under that limit may still make things worse. An edge that is OUTLIER_FILTER_APART
 * times as long as most of our others, and more than half the way from x0, exchange after
 * exchange, is *suspect* once it has become OUTLIER_FILTER_GROWN times as long as when that began,
 * or its gamma w have added up to OUTLIER_FILTER_PULL: all that way we have gone towards it, and it
 * is no nearer. (Where training itself runs away all edges grow, and none is. An edge that
 * joins two halves of a healed graph is long, too, and shrinks.)
 *
 * Either is *distrust*: the node begins the edge anew, later (peer/node/edges.h). From when it was
 * suspect an exchange is refused as soon as it is as long as a suspect's.
 *
 * Our way from x0 is the measure of all that, so that who has hardly gone any is no judge. Way
 * grows about as fast as rounds do, and squared at first: of two honest models one of which has
 * trained for 5/4 as many rounds as the other none is 2 ways of the shorter off. If theirs has for
 * more (we were stopped, have skipped rounds, or are slow and do not go in lock step), the exchange
 * is refused all the same. So who was refused in training has another chance in the consensus phase, where all
 * have come all the way (peer/node/edges_trust.c): refused, it has moved nobody.
 *
 * Nothing here is agreed upon with the other end: each decides for itself what it lets in.
 */
#ifndef GOSSIP_EXCHANGE_OUTLIER_FILTER_H
#define GOSSIP_EXCHANGE_OUTLIER_FILTER_H

#include <stdbool.h>

enum {
    OUTLIER_FILTER_TIMES = 32, /* Over what is known of the edge, */
    OUTLIER_FILTER_WAYS = 2,   /* and over our own way from x0. */
    OUTLIER_FILTER_APART = 16, /* Over another edge. */
    OUTLIER_FILTER_GROWN = 4,  /* Over itself, while it was so far apart; */
    OUTLIER_FILTER_PULL = 8    /* of gamma w meanwhile. */
};

struct outlier_filter
{
    double most2; /* The largest D^2 of this epoch, and of those before a distrust; 0: none. */
    double last2; /* That of the last exchange. */
    double pull;  /* Gamma w of the exchanges since it was last near, */
    double from2; /* and D^2 of the first of them. */
    bool warned;  /* It was suspect once. */
};

/* The edge begins anew. What it was distrusted for is not forgotten. */
void outlier_filter_begin(struct outlier_filter *t);

/* What we know ourselves when an exchange is about to be mixed. */
struct outlier_filter_view
{
    double x2;      /* |x - a|^2 before our delta. */
    double way2;    /* |x - x0|^2 of a while ago. */
    double others2; /* What D^2 of our other edges is about; 0: there are none. */
};

/* The limit for D^2 of the exchange; 0: none, as nothing is known. */
double outlier_filter_limit2(const struct outlier_filter *t, const struct outlier_filter_view *v);

/* Is an edge at d2 as far off as a suspect, beside another one at other2? */
bool outlier_filter_apart(double d2, double other2, double way2);

/* The exchange was mixed at this D^2 and this gamma w; apart: from most of our others. True:
 * the edge is suspect. */
bool outlier_filter_saw(struct outlier_filter *t, double d2, double pull, bool apart);

/* It is suspect. */
void outlier_filter_warn(struct outlier_filter *t);

#endif
