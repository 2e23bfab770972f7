/* peer/node/orders.c -- our model, for those who ask for it. */
#include "peer/node/orders.h"

void orders_init(struct orders *o, struct sessions *s, struct workshop *w)
{
    *o = (struct orders){.sessions = s, .workshop = w};
}

void orders_release(struct orders *o)
{
    packet_release(o->held);
    o->held = NULL;
}

void orders_take(struct orders *o, const struct link *l, uint64_t round)
{
    size_t i = (size_t)(l - o->sessions->links);
    o->at[i].on_way &= o->at[i].link == l->number;
    o->at[i].wanted = true;
    o->at[i].link = l->number;
    o->at[i].round = round;
}

/* The order of the i-th link stands: it is still the same session, and has got what it
 * ordered before. */
static bool stands(const struct orders *o, size_t i)
{
    const struct link *l = &o->sessions->links[i];
    return o->at[i].wanted && !o->at[i].on_way && l->used && l->number == o->at[i].link;
}

const struct link *orders_sent(struct orders *o, uint32_t number)
{
    for (size_t i = 0; i < NODE_LINKS_MAX; i++) {
        if (o->at[i].link != number)
            continue;
        o->at[i].on_way = false;
        if (stands(o, i))
            return &o->sessions->links[i];
    }
    return NULL;
}

bool orders_due(const struct orders *o, uint64_t round, bool *at_window)
{
    bool any = false;
    *at_window = true; /* Unless one wants it anyhow. */
    for (size_t i = 0; i < NODE_LINKS_MAX; i++) {
        bool now = o->at[i].round <= round;
        if (!stands(o, i) || !(now || o->at[i].round == WIRE_ROUND_WINDOW))
            continue;
        any = true;
        *at_window &= !now;
    }
    return any;
}

static void send_model(struct orders *o, size_t i, struct packet *model, uint64_t round)
{
    uint8_t head[WIRE_HEAD_MAX];
    struct wire_model m = {.round = round};
    m.payload.p = packet_bytes(model, &m.payload.n);
    o->at[i].wanted = false;
    o->at[i].on_way = o->sessions->links[i].observer;
    sessions_send(o->sessions, &o->sessions->links[i], true, head,
                  wire_put_model(head, sizeof head, &m), model);
}

/* The round of the copy is that before the job's local steps. */
void orders_serve(struct orders *o, struct packet *model, uint64_t round)
{
    bool window = mixing_window_began(&o->workshop->mixing);
    for (size_t i = 0; i < NODE_LINKS_MAX; i++)
        if (stands(o, i)
            && (o->at[i].round <= round || (o->at[i].round == WIRE_ROUND_WINDOW && window)))
            send_model(o, i, model, round);
    o->held = model;
}

void orders_serve_idle(struct orders *o, uint64_t round)
{
    bool at_window;
    if (o->held != NULL || !orders_due(o, round, &at_window) || at_window)
        return; /* One copy a step: the next goes out with the next. */
    struct packet *now = packet_get(&o->workshop->models);
    if (now == NULL)
        return;
    mixing_copy_model(&o->workshop->mixing, now);
    orders_serve(o, now, round);
}

void orders_serve_now(struct orders *o, const struct link *l, uint64_t round)
{
    size_t i = (size_t)(l - o->sessions->links);
    struct packet *now = stands(o, i) ? packet_get(&o->workshop->models) : NULL;
    if (now == NULL)
        return;
    mixing_copy_model(&o->workshop->mixing, now);
    send_model(o, i, now, round);
    o->held = now;
}
