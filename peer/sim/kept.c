/* peer/sim/kept.c -- the checkpoints of a simulated peer: whole, or not there. */
#include "peer/sim/state.h"

void kept_write(struct sim_world *w, struct sim_peer *p)
{
    struct sim_slot *to = &p->kept.writing;
    sim_await(w, p);
    to->beat = node_checkpoint(p->node, &to->state);
    sim_post(w, p,
             (struct sim_event){.at_us = w->now_us + w->config.disk_us, .type = NODE_WRITTEN});
}

/* It takes the place of the older one. */
void kept_whole(struct sim_peer *p)
{
    struct sim_kept *d = &p->kept;
    struct sim_slot oldest = d->slot[1];
    d->slot[1] = d->slot[0];
    d->slot[0] = d->writing;
    d->writing = oldest; /* Its memory is used again. */
    d->writing.beat = 0;
}

void kept_lost(struct sim_peer *p)
{
    p->kept.writing.beat = 0;
}

void kept_wiped(struct sim_peer *p)
{
    p->kept.slot[0].beat = p->kept.slot[1].beat = 0;
}

void kept_close(struct sim_peer *p)
{
    state_close(&p->kept.slot[0].state);
    state_close(&p->kept.slot[1].state);
    state_close(&p->kept.writing.state);
}

void kept_resume(struct sim_peer *p, struct node_config *c)
{
    for (int i = 0; i < 2 && p->kept.slot[i].beat != 0; i++) {
        struct sim_slot *s = &p->kept.slot[i];
        state_read(&s->view, s->state.bytes, s->state.n, s->state.section, s->state.n_sections);
        c->resume[c->n_resume++] = (struct node_resume){&s->view, s->beat, (uint32_t)i};
    }
}
