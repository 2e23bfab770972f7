/* peer/sim/checkpoints.c -- stores the last two checkpoints of each simulated peer, for a restart
 * after a kill. */
#include "peer/sim/state.h"

#include <stdlib.h>
#include <string.h>

void checkpoints_begin_write(struct sim_world *w, struct sim_peer *p)
{
    struct sim_slot *to = &p->checkpoints.writing;
    sim_await(w, p);
    to->beat = node_checkpoint(p->node, &to->state);
    sim_post(w, p,
             (struct sim_event){.at_us = w->now_us + w->config.disk_us, .type = NODE_WRITTEN});
}

void checkpoints_end_write(struct sim_peer *p)
{
    struct sim_checkpoints *d = &p->checkpoints;
    struct sim_slot oldest = d->slot[1];
    d->slot[1] = d->slot[0];
    d->slot[0] = d->writing;
    d->writing = oldest; /* The next write reuses the memory of the oldest checkpoint. */
    d->writing.beat = 0;
}

void checkpoints_lose_write(struct sim_peer *p)
{
    p->checkpoints.writing.beat = 0;
}

static void drop_promise(struct sim_peer *p)
{
    free((void *)(uintptr_t)p->promise.p);
    p->promise = (struct bytes){NULL, 0};
}

bool checkpoints_keep_promise(void *self, const uint8_t *bytes, size_t n)
{
    struct sim_peer *p = self;
    uint8_t *copy = p->full ? NULL : malloc(n);
    if (copy == NULL)
        return false;
    memcpy(copy, bytes, n);
    drop_promise(p);
    p->promise = (struct bytes){copy, n};
    return true;
}

static void drop_model(struct sim_peer *p)
{
    free(p->model);
    p->model = NULL;
    p->n_model = 0;
    p->past = NODE_PAST_NONE;
}

bool checkpoints_keep_model(struct sim_peer *p)
{
    const struct segment *segments;
    size_t n_segments, n;
    const float *x = node_model(p->node, &segments, &n_segments, &n);
    float *copy = p->full || x == NULL ? NULL : malloc(n * sizeof *copy);
    if (copy == NULL)
        return false;
    memcpy(copy, x, n * sizeof *copy);
    drop_model(p);
    p->model = copy;
    p->n_model = n;
    p->past = node_model_is_final(p->node) ? NODE_PAST_FINAL : NODE_PAST_NONE;
    return true;
}

bool checkpoints_read_model(void *self, const struct segment *segments, size_t n_segments, float *x)
{
    const struct sim_peer *p = self;
    size_t n = 0;
    for (size_t i = 0; i < n_segments; i++)
        n += segments[i].n;
    if (p->model == NULL || p->n_model != n)
        return false;
    memcpy(x, p->model, n * sizeof *x);
    return true;
}

void checkpoints_wipe(struct sim_peer *p)
{
    drop_model(p);
    p->checkpoints.slot[0].beat = p->checkpoints.slot[1].beat = 0;
    drop_promise(p);
}

void checkpoints_close(struct sim_peer *p)
{
    drop_model(p);
    drop_promise(p);
    state_close(&p->checkpoints.slot[0].state);
    state_close(&p->checkpoints.slot[1].state);
    state_close(&p->checkpoints.writing.state);
}

void checkpoints_resume(struct sim_peer *p, struct node_config *c)
{
    for (int i = 0; i < 2 && p->checkpoints.slot[i].beat != 0; i++) {
        struct sim_slot *s = &p->checkpoints.slot[i];
        state_read(&s->view, s->state.bytes, s->state.n, s->state.section, s->state.n_sections);
        c->resume[c->n_resume++] = (struct node_resume){&s->view, s->beat, (uint32_t)i};
    }
}
