/* peer/node/model_handoff.c -- offers this peer's model to other members, and takes models that
 * they offer. */
#include "peer/node/model_handoff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void model_handoff_init(struct model_handoff *h, struct env *env, struct sessions *s,
                        struct run_context *w)
{
    *h = (struct model_handoff){
        .env = env, .sessions = s, .workshop = w, .to = UINT32_MAX, .from = UINT32_MAX};
}

void model_handoff_release(struct model_handoff *h)
{
    packet_release(h->held);
    h->held = NULL;
}

void model_handoff_close(struct model_handoff *h)
{
    model_handoff_release(h);
    free(h->taken);
    free(h->tried);
    h->taken = NULL;
    h->tried = NULL;
    h->n_tried = h->cap_tried = 0;
    h->giving = false;
}

static void say(struct model_handoff *h, const struct link *l, enum wire_hand_word word)
{
    uint8_t out[16];
    struct wire_hand m = {.word = word};
    sessions_send(h->sessions, l, false, out, wire_put_hand(out, sizeof out, &m), NULL);
}

static const char *name_of(const struct model_handoff *h, const uint8_t *id)
{
    const struct member *m = members_find(h->env->members, id);
    return m != NULL ? m->record->name : "a member";
}

/* ---- giving this peer's own model away ---- */

void model_handoff_begin(struct model_handoff *h)
{
    h->giving = true;
    h->silent = false;
    h->n_tried = 0;
    h->n_passes = 0;
    h->since_us = h->env->now_us;
}

/* Returns whether this member was asked in the present pass over all members. */
static bool was_tried(const struct model_handoff *h, const uint8_t *id)
{
    for (size_t i = 0; i < h->n_tried; i++)
        if (env_same_id(h->tried[i], id))
            return true;
    return false;
}

/* Adds a member to the list of asked members. Returns false if memory is not available; no further
 * member is then asked, because the same one would be asked again and again. */
static bool add_tried(struct model_handoff *h, const uint8_t *id)
{
    if (h->n_tried == h->cap_tried) {
        size_t cap = 2 * h->cap_tried + 8;
        void *grown = realloc(h->tried, cap * sizeof *h->tried);
        if (grown == NULL)
            return false;
        h->tried = grown;
        h->cap_tried = cap;
    }
    memcpy(h->tried[h->n_tried++], id, WIRE_ID_BYTES);
    return true;
}

/* Offers the model to the next member that was not asked in this pass. Returns false if all
 * were asked. */
static bool offer_to_next(struct model_handoff *h)
{
    for (size_t i = 0; i < NODE_LINKS_MAX; i++) {
        const struct link *l = &h->sessions->links[i];
        if (!link_talks(l) || l->doomed || !l->same_run || was_tried(h, l->id))
            continue;
        if (!add_tried(h, l->id))
            return false;
        h->to = l->number;
        h->to_us = h->env->now_us;
        say(h, l, WIRE_HAND_OFFERED);
        return true;
    }
    return false;
}

/* Offers the model to the next member. After the last one, a new pass over all members begins if
 * one of them did not answer, because that member may have been busy with another peer's model. If
 * no new pass may begin, h->to stays UINT32_MAX, and the model is lost. */
static void offer(struct model_handoff *h)
{
    h->to = UINT32_MAX;
    h->sent = false;
    if (offer_to_next(h) || !h->silent || ++h->n_passes == MODEL_HANDOFF_PASSES)
        return;
    if (h->env->now_us - h->since_us >= h->env->config.patience_us)
        return;
    h->silent = false;
    h->n_tried = 0;
    (void)offer_to_next(h);
}

bool model_handoff_update(struct model_handoff *h)
{
    if (!h->giving)
        return false;
    const struct link *l = h->to != UINT32_MAX ? sessions_link(h->sessions, h->to) : NULL;
    int64_t most_us = h->sent ? MODEL_HANDOFF_TRANSFER_US : MODEL_HANDOFF_ANSWER_US;
    bool late = l != NULL && h->env->now_us - h->to_us > most_us;
    h->silent |= late;
    if (l == NULL || l->doomed || late)
        offer(h);
    h->giving = h->to != UINT32_MAX;
    if (!h->giving)
        env_note(h->env, NOTE_WARNING, "no other peer could store this peer's model: it is lost");
    return h->giving;
}

static void send_model(struct model_handoff *h, const struct link *l, uint64_t round)
{
    uint8_t head[WIRE_HEAD_MAX];
    struct packet *copy = packet_get(&h->workshop->models);
    if (copy == NULL)
        return; /* Without memory nothing is sent, and the offer times out. */
    mixing_copy_model(&h->workshop->mixing, copy);
    struct wire_model m = {.round = round, .piece = WIRE_PIECE_WHOLE};
    m.payload.p = packet_bytes(copy, &m.payload.n);
    sessions_send(h->sessions, l, true, head, wire_put_model(head, sizeof head, &m), copy);
    h->held = copy;
    h->sent = true;
    h->to_us = h->env->now_us;
}

/* Handles the answer of a member to which this peer's own model was offered or sent. */
static void hear_answer(struct model_handoff *h, const struct link *l, enum wire_hand_word word,
                        uint64_t round)
{
    if (!h->giving || l->number != h->to)
        /* The answer is late and is ignored, because the offer to this member has timed out. */
        return;
    if (word == WIRE_HAND_WANTED && !h->sent && h->held == NULL) {
        send_model(h, l, round);
    } else if (word == WIRE_HAND_REFUSED) {
        h->to = UINT32_MAX;
    } else if (word == WIRE_HAND_STORED && h->sent) {
        snprintf(h->with, sizeof h->with, "%s", name_of(h, l->id));
        h->giving = false;
        env_note(h->env, NOTE_WARNING,
                 "this peer's model is stored by %s, as handed/%s.safetensors in its --out",
                 h->with, h->env->config.name);
    }
}

/* ---- taking another peer's model ---- */

/* Returns whether another peer's model is being stored or is expected to arrive. */
static bool is_busy(const struct model_handoff *h)
{
    const struct link *l = h->from != UINT32_MAX ? sessions_link(h->sessions, h->from) : NULL;
    bool waits = l != NULL && !l->doomed && h->env->now_us - h->from_us < MODEL_HANDOFF_TRANSFER_US;
    return h->taken != NULL || waits;
}

/* Returns the index of the member in h->giver. A new member gets the index n_givers. Returns
 * MODEL_HANDOFF_MOST if the member's model must be refused. */
static size_t giver_of(struct model_handoff *h, const uint8_t *id, const char *name)
{
    size_t i = 0;
    while (i < h->n_givers && !env_same_id(h->giver[i].id, id)) {
        if (strcmp(h->giver[i].name, name) == 0)
            /* The model is refused, because its name belongs to another member's stored model. */
            return MODEL_HANDOFF_MOST;
        i++;
    }
    return i;
}

/* Answers an offer with WANTED or REFUSED, or not at all while this peer is busy. */
static void hear_offer(struct model_handoff *h, const struct link *l, bool may_take)
{
    const struct member *m = members_find(h->env->members, l->id);
    const char *name = m != NULL ? m->record->name : "";
    size_t i = m != NULL ? giver_of(h, l->id, name) : MODEL_HANDOFF_MOST;
    if (!may_take || !l->same_run || i == MODEL_HANDOFF_MOST) {
        say(h, l, WIRE_HAND_REFUSED);
        return;
    }
    if (is_busy(h))
        /* This peer sends no answer. The giver's offer times out, and the giver asks again in its
         * next pass over all members. */
        return;
    if (i == h->n_givers) {
        memcpy(h->giver[i].id, l->id, WIRE_ID_BYTES);
        snprintf(h->giver[i].name, sizeof h->giver[i].name, "%s", name);
        h->n_givers++;
    }
    h->giving_place = i;
    h->from = l->number;
    h->from_us = h->env->now_us;
    say(h, l, WIRE_HAND_WANTED);
}

void model_handoff_said(struct model_handoff *h, const struct link *l, const struct wire_hand *m,
                        bool may_take, uint64_t round)
{
    if (m->word == WIRE_HAND_OFFERED)
        hear_offer(h, l, may_take);
    else
        hear_answer(h, l, m->word, round);
}

bool model_handoff_model(struct model_handoff *h, const struct link *l, const struct wire_model *m)
{
    const struct mixing *mixing = &h->workshop->mixing;
    const char *wrong = NULL;
    size_t bytes = h->workshop->ready ? mixing_model_bytes(mixing) : 0;
    if (!h->workshop->ready || l->number != h->from || h->taken != NULL)
        wrong = "MODEL not asked for";
    else if (m->payload.n != bytes)
        wrong = "bad MODEL";
    else if ((h->taken = malloc(bytes)) == NULL)
        say(h, l, WIRE_HAND_REFUSED);
    else
        memcpy(h->taken, m->payload.p, bytes);
    if (h->taken != NULL && wrong == NULL
        && !(vec_finite(h->taken, mixing->n_floats)
             && statistics_proper(&mixing->statistics, h->taken + mixing->dim))) {
        wrong = "MODEL is not finite";
        free(h->taken);
        h->taken = NULL;
    }
    if (wrong != NULL)
        sessions_violation(h->sessions, l, wrong);
    if (wrong != NULL || h->taken == NULL)
        return false;
    h->taken_round = m->round;
    return true;
}

void model_handoff_stored(struct model_handoff *h, bool stored)
{
    const struct link *l = sessions_link(h->sessions, h->from);
    free(h->taken);
    h->taken = NULL;
    h->from = UINT32_MAX;
    if (l != NULL && !l->doomed)
        say(h, l, stored ? WIRE_HAND_STORED : WIRE_HAND_REFUSED);
}
