/* peer/uv/rate_limit.c -- limits the rate of new connections with token buckets. */
#include "peer/uv/rate_limit.h"

#include "nn/math/rng.h"

#include <string.h>

static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

/* Returns the number of tokens in a bucket at `now_ms`. */
static double level(const struct rate_limit_bucket *b, uint32_t per_s, uint32_t burst,
                    uint64_t now_ms)
{
    double tokens = b->tokens + (double)(now_ms - b->at_ms) * 1e-3 * per_s;
    return tokens < burst ? tokens : burst;
}

static bool take(struct rate_limit_bucket *b, uint32_t per_s, uint32_t burst, uint64_t now_ms)
{
    b->tokens = level(b, per_s, burst, now_ms);
    b->at_ms = now_ms;
    if (b->tokens < 1)
        return false;
    b->tokens -= 1;
    return true;
}

void rate_limit_init(struct rate_limit *c, const struct rate_limit_limits *limits, uint64_t salt,
                     uint64_t now_ms)
{
    *c = (struct rate_limit){.limits = *limits, .salt = salt};
    c->all = (struct rate_limit_bucket){limits->calm_burst, now_ms};
}

uint64_t rate_limit_key(const struct rate_limit *c, const union uv_address *a)
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

static struct rate_limit_entry *entry_of(struct rate_limit *c, const union uv_address *a,
                                         uint64_t now_ms)
{
    uint64_t key = rate_limit_key(c, a);
    struct rate_limit_entry *set = c->at[(key >> 32) % RATE_LIMIT_SETS], *oldest = set;
    for (uint32_t i = 0; i < RATE_LIMIT_WAYS; i++) {
        if (set[i].key == key)
            return &set[i];
        if (set[i].key == 0 || (oldest->key != 0 && set[i].knocks.at_ms < oldest->knocks.at_ms))
            oldest = &set[i];
    }
    const struct rate_limit_limits *l = &c->limits;
    bool here = uv_resolve_loopback(a);
    *oldest = (struct rate_limit_entry){
        key, {here ? l->loopback_burst : l->burst, now_ms}, {l->looks_per_s, now_ms}};
    return oldest;
}

bool rate_limit_is_thick(const struct rate_limit *c, uint64_t now_ms)
{
    return level(&c->all, c->limits.calm_per_s, c->limits.calm_burst, now_ms) < 1;
}

/* Takes a token from the bucket of all addresses and one from the bucket of this address. The
 * second token is taken even if the first bucket has tokens left. An address that starts a flood
 * therefore empties its own bucket early, and is limited before other addresses are. */
enum rate_limit_welcome rate_limit_knock(struct rate_limit *c, const union uv_address *a,
                                         uint64_t now_ms)
{
    const struct rate_limit_limits *l = &c->limits;
    struct rate_limit_entry *e = entry_of(c, a, now_ms);
    bool here = uv_resolve_loopback(a);
    bool calm = take(&c->all, l->calm_per_s, l->calm_burst, now_ms);
    bool within = take(&e->knocks, here ? l->loopback_per_s : l->per_s,
                       here ? l->loopback_burst : l->burst, now_ms);
    return calm || within ? RATE_LIMIT_WELCOME : RATE_LIMIT_HASTY;
}

bool rate_limit_look(struct rate_limit *c, const union uv_address *a, uint64_t now_ms)
{
    return take(&entry_of(c, a, now_ms)->looks, c->limits.looks_per_s, c->limits.looks_per_s,
                now_ms);
}
