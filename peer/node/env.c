/* peer/node/env.c -- opens the member table, keeps node time, and collects the effects of a
 * step. */
#include "peer/node/env.h"

#include "gossip/members/endorsements.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Initial size of the buffer for message heads, in bytes. It is enough for the deltas of dozens of
 * edges in one step. Only a step that sends the records of many members needs more. */
enum { HEADS_FIRST = WIRE_CONTROL_MAX };

/* Opens the member table with this peer's record and the members of config.known. */
static int open_members(struct env *v)
{
    const struct node_config *c = &v->config;
    struct record self = {
        .n_addresses = 0, .incarnation = c->incarnation, .boot = c->boot, .state = RECORD_RUNNING};
    memcpy(self.id, c->id, WIRE_ID_BYTES);
    snprintf(self.name, sizeof self.name, "%s", c->name);
    self.invited = c->certificate != NULL;
    if (self.invited)
        self.certificate = *c->certificate;
    for (size_t i = 0; i < c->n_resume; i++)
        self.beat[i] = c->resume[i].beat;
    for (uint32_t i = 0; i < c->n_advertise && i < WIRE_ADDRESSES_MAX; i++)
        snprintf(self.address[self.n_addresses++], WIRE_ADDRESS_MAX + 1, "%s", c->advertise[i]);
    struct members_config timing = {.suspect_us = SUSPECT_US,
                                    .confirmed_us = CONFIRMED_US,
                                    .records = c->records,
                                    .forget_us = c->forget_us};
    int err = members_open(&v->members, &self, &timing, c->crypto);
    for (uint32_t i = 0; i < c->n_known && err == 0; i++) {
        (void)members_merge(v->members, &c->known[i], 0);
        members_know(v->members, c->known[i].id, 0);
    }
    return err;
}

int env_open(struct env *v, const struct node_config *config)
{
    v->config = *config;
    v->rng = rng_stream(rng_key(config->own_seed, RNG_PEER, 0, 0));
    v->heads = malloc(HEADS_FIRST);
    if (v->heads == NULL)
        return -ENOMEM;
    v->cap_heads = HEADS_FIRST;
    v->commons = config->commons != NULL ? config->commons : calloc(1, sizeof *v->commons);
    return v->commons != NULL ? open_members(v) : -ENOMEM;
}

void env_close(struct env *v)
{
    if (v->members != NULL)
        members_close(v->members);
    free(v->heads);
    if (v->config.commons == NULL)
        free(v->commons);
}

int64_t env_begin_step(struct env *v, int64_t driver_us, int64_t due_us, struct node_effects *fx)
{
    /* The difference of the two clocks is the sum of all pauses so far. */
    int64_t now_us = driver_us - (v->driver_us - v->now_us), pause_us = 0;
    if (due_us > 0 && now_us - due_us > PAUSE_US) {
        pause_us = now_us - v->now_us;
        now_us = v->now_us;
    }
    assert(now_us >= v->now_us && driver_us >= now_us);
    fx->n_sends = fx->n_dials = fx->n_hangups = fx->n_resolves = fx->n_notes = 0;
    fx->resumed = 0;
    fx->work = fx->measured = fx->checkpoint = fx->exit = false;
    fx->write_model = false;
    v->fx = fx;
    /* The driver has copied the message heads of the last step, so their buffer is free. */
    v->n_heads = 0;
    v->now_us = now_us;
    v->driver_us = driver_us;
    return pause_us;
}

int64_t env_driver_us(const struct env *v, int64_t node_us)
{
    return node_us == INT64_MAX ? INT64_MAX : node_us + (v->driver_us - v->now_us);
}

/* The step is over, so the buffer of the message heads does not move any more, and pointers into it
 * can be set. */
void env_end_step(struct env *v)
{
    assert(v->n_heads <= v->cap_heads && v->fx->n_sends <= NODE_SENDS_MAX);
    for (uint32_t i = 0; i < v->fx->n_sends; i++)
        v->fx->sends[i].head = v->heads + v->head_at[i];
}

void env_send(struct env *v, uint32_t link, bool bulk, const uint8_t *head, size_t n_head,
              struct packet *body)
{
    struct node_effects *fx = v->fx;
    assert(n_head > 0);
    if (fx->n_sends == NODE_SENDS_MAX)
        return;
    if (v->n_heads + n_head > v->cap_heads) {
        size_t cap = 2 * v->cap_heads + n_head;
        uint8_t *grown = realloc(v->heads, cap);
        if (grown == NULL) {
            env_end(v, 1);
            return;
        }
        v->heads = grown;
        v->cap_heads = cap;
    }
    memcpy(v->heads + v->n_heads, head, n_head);
    v->head_at[fx->n_sends] = v->n_heads;
    v->n_heads += n_head;
    fx->sends[fx->n_sends++] =
        (struct node_send){.link = link, .bulk = bulk, .n_head = n_head, .body = body};
}

bool env_hang_up(struct env *v, uint32_t link, bool violation)
{
    struct node_effects *fx = v->fx;
    if (fx->n_hangups == NODE_LINKS_MAX)
        return false;
    fx->hangups[fx->n_hangups].link = link;
    fx->hangups[fx->n_hangups++].violation = violation;
    return true;
}

void env_note_from(struct env *v, const char *path, enum note_level level, const char *format, ...)
{
    struct node_effects *fx = v->fx;
    uint32_t most = level == NOTE_DEBUG ? NODE_NOTES_MAX - NODE_NOTES_KEPT : NODE_NOTES_MAX;
    if (fx->n_notes >= most)
        return;
    struct node_note *note = &fx->notes[fx->n_notes++];
    const char *slash = strrchr(path, '/'), *file = slash != NULL ? slash + 1 : path;
    note->level = level;
    snprintf(note->module, sizeof note->module, "%.*s", (int)strcspn(file, "."), file);
    va_list args;
    va_start(args, format);
    vsnprintf(note->text, sizeof note->text, format, args);
    va_end(args);
}

struct wire_members env_batch(struct env *v)
{
    return (struct wire_members){.records = v->commons->batch.records,
                                 .accusations = v->commons->batch.accusations,
                                 .vouches = v->commons->batch.vouches};
}

int env_spectrum(struct env *v, const char *topology, uint32_t n, uint64_t seed, struct spectrum *s)
{
    struct shared_scratch *c = v->commons;
    struct graph g;
    if (c->spectrum.n == n && c->spectrum.seed == seed
        && strcmp(c->spectrum.topology, topology) == 0) {
        *s = c->spectrum.is;
        return 0;
    }
    int err = graph_build(&g, topology, n, seed);
    if (err != 0)
        return err;
    err = graph_spectrum(&g, s);
    graph_close(&g);
    if (err != 0)
        return err;
    snprintf(c->spectrum.topology, sizeof c->spectrum.topology, "%s", topology);
    c->spectrum.n = n;
    c->spectrum.seed = seed;
    c->spectrum.is = *s;
    return 0;
}

void env_end(struct env *v, int exit_code)
{
    if (v->over)
        return;
    v->over = true;
    v->exit_code = exit_code;
}

int64_t env_jitter(struct env *v, int64_t d)
{
    assert(d >= 0);
    return d - d / 5 + (int64_t)rng_below(&v->rng, (uint64_t)(2 * d / 5 + 1));
}

const char *env_name(struct env *v, const uint8_t id[WIRE_ID_BYTES])
{
    const struct member *m = members_find(v->members, id);
    if (m != NULL)
        return m->record->name;
    snprintf(v->name, sizeof v->name, "peer %02x%02x%02x%02x", id[0], id[1], id[2], id[3]);
    return v->name;
}

bool env_same_id(const uint8_t *a, const uint8_t *b)
{
    return memcmp(a, b, WIRE_ID_BYTES) == 0;
}
