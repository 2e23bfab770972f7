/* peer/uv/crowd.c -- token buckets for those who knock at the door. */
#include "peer/uv/crowd.h"

#include "nn/math/rng.h"

#include <string.h>

static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

/* So many tokens are there now. */
static double level(const struct crowd_bucket *b, uint32_t per_s, uint32_t burst, uint64_t now_ms)
{
    double tokens = b->tokens + (double)(now_ms - b->at_ms) * 1e-3 * per_s;
    return tokens < burst ? tokens : burst;
}

static bool take(struct crowd_bucket *b, uint32_t per_s, uint32_t burst, uint64_t now_ms)
{
    b->tokens = level(b, per_s, burst, now_ms);
    b->at_ms = now_ms;
    if (b->tokens < 1)
        return false;
    b->tokens -= 1;
    return true;
}

void crowd_init(struct crowd *c, const struct crowd_limits *limits, uint64_t salt, uint64_t now_ms)
{
    *c = (struct crowd){.limits = *limits, .salt = salt};
    c->all = (struct crowd_bucket){limits->calm_burst, now_ms};
}

uint64_t crowd_key(const struct crowd *c, const union uv_address *a)
{
    uint8_t text[8 + 1 + 8];
    size_t n = 9;
    memcpy(text, &c->salt, 8);
    const uint8_t *v6 = a->v6.sin6_addr.s6_addr;
    if (a->any.sa_family == AF_INET) {
        text[8] = 4;
        memcpy(text + n, &a->v4.sin_addr.s_addr, 4);
        n += 4;
    } else if (memcmp(v6, mapped, sizeof mapped) == 0) {
        text[8] = 4;
        memcpy(text + n, v6 + sizeof mapped, 4);
        n += 4;
    } else {
        text[8] = 6;
        memcpy(text + n, v6, 8);
        n += 8;
    }
    return rng_hash(text, n) | 1;
}

static struct crowd_entry *entry_of(struct crowd *c, const union uv_address *a, uint64_t now_ms)
{
    uint64_t key = crowd_key(c, a);
    struct crowd_entry *set = c->at[(key >> 32) % CROWD_SETS], *oldest = set;
    for (uint32_t i = 0; i < CROWD_WAYS; i++) {
        if (set[i].key == key)
            return &set[i];
        if (set[i].key == 0 || (oldest->key != 0 && set[i].knocks.at_ms < oldest->knocks.at_ms))
            oldest = &set[i];
    }
    const struct crowd_limits *l = &c->limits;
    bool here = uv_resolve_loopback(a);
    *oldest = (struct crowd_entry){
        key, {here ? l->loopback_burst : l->burst, now_ms}, {l->looks_per_s, now_ms}};
    return oldest;
}

bool crowd_is_thick(const struct crowd *c, uint64_t now_ms)
{
    return level(&c->all, c->limits.calm_per_s, c->limits.calm_burst, now_ms) < 1;
}

/* The address pays in calm times, too: whoever brings the crowd about is the first to feel it. */
enum crowd_welcome crowd_knock(struct crowd *c, const union uv_address *a, uint64_t now_ms)
{
    const struct crowd_limits *l = &c->limits;
    struct crowd_entry *e = entry_of(c, a, now_ms);
    bool here = uv_resolve_loopback(a);
    bool calm = take(&c->all, l->calm_per_s, l->calm_burst, now_ms);
    bool within = take(&e->knocks, here ? l->loopback_per_s : l->per_s,
                       here ? l->loopback_burst : l->burst, now_ms);
    return calm || within ? CROWD_WELCOME : CROWD_HASTY;
}

bool crowd_look(struct crowd *c, const union uv_address *a, uint64_t now_ms)
{
    return take(&entry_of(c, a, now_ms)->looks, c->limits.looks_per_s, c->limits.looks_per_s,
                now_ms);
}
