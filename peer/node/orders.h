/* peer/node/orders.h -- models that others have asked us for.
 *
 * Owned here, and written by orders.c only: who wants our model and of which round, and the
 * copy that is in this step's sends. An order belongs to a link and ends with it.
 *
 *    none --MODEL_REQ--> wanted --a copy of that round, or of a drift window--> none
 *
 * An observer has one model on its way at a time: who asks and does not read would else make
 * us hold as many as a session's queue takes.
 */
#ifndef PEER_NODE_ORDERS_H
#define PEER_NODE_ORDERS_H

#include "peer/node/workshop.h"

struct orders
{
    struct sessions *sessions;
    struct workshop *workshop;
    struct
    {
        bool wanted;
        bool on_way;    /* To an observer, which is sent nothing else in bulk. */
        uint32_t link;  /* Its number: another session in its place has ordered nothing. */
        uint64_t round; /* They want our model at or after this round. */
    } at[NODE_LINKS_MAX];
    struct packet *held; /* In this step's sends; released in the next. */
};

void orders_init(struct orders *o, struct sessions *s, struct workshop *w);

/* The sends of the last step are out. */
void orders_release(struct orders *o);

void orders_take(struct orders *o, const struct link *l, uint64_t round);

/* Bulk has left us for the link of this number: the link, if its next order stands. */
const struct link *orders_sent(struct orders *o, uint32_t number);

/* Does somebody want the model of this round? *at_window: only if a drift window begins. */
bool orders_due(const struct orders *o, uint64_t round, bool *at_window);

/* Send this copy of the model to all who want one of its round or before. Takes it. */
void orders_serve(struct orders *o, struct packet *model, uint64_t round);

/* The same while no job runs: make a copy and send it to all who want the present round's. */
void orders_serve_idle(struct orders *o, uint64_t round);

/* Send the model as it is to one who has ordered it, unless one is on its way there. No job
 * may be running. */
void orders_serve_now(struct orders *o, const struct link *l, uint64_t round);

#endif
