/* peer/api/share.c -- selects this peer's share of a data set that all peers have. */
#include "nn/shards/shard.h"
#include "peer/api/handle.h"

#include <errno.h>
#include <stdlib.h>

uint64_t hearsay_shares(const struct hearsay *h)
{
    /* The cast drops const: locking modifies `lock`, and nothing else is modified. */
    struct hearsay *unlocked = (struct hearsay *)h;
    if (h == NULL)
        return 0;
    uv_mutex_lock(&unlocked->lock);
    uint64_t n = h->shares;
    uv_mutex_unlock(&unlocked->lock);
    return n;
}

/* Opens this peer's share of a data set that has no labels. The samples are assigned as `hearsay
 * peer` assigns them. */
static int open_shard(struct hearsay *h, struct shard *s, const struct dataset *set,
                      char error[DATA_ERROR_MAX])
{
    struct shard_config config = {.local_steps = 1};
    int err = shard_spec_parse(&config.spec, options_text(h->o, "shard"), error);
    if (err < 0)
        return err;
    uv_mutex_lock(&h->lock);
    config.seed = h->seed;
    config.peer = h->own_key;
    err = shard_open(s, &config, set, error);
    if (err == 0 && h->n_keys > 0)
        err = shard_members(s, h->keys, h->n_keys, h->own_key);
    uv_mutex_unlock(&h->lock);
    return err;
}

uint64_t hearsay_share(struct hearsay *h, uint64_t n, uint64_t *ids, uint64_t cap)
{
    char error[DATA_ERROR_MAX];
    struct dataset set = {.n = (size_t)n};
    struct shard s;
    if (h == NULL || h->o == NULL || n == 0 || n > UINT32_MAX)
        return 0;
    if (open_shard(h, &s, &set, error) < 0) {
        (void)handle_fail(h, HEARSAY_USAGE, "--shard: %s", error);
        return 0;
    }
    for (uint64_t i = 0; i < s.count && i < cap && ids != NULL; i++)
        ids[i] = s.sample != NULL ? s.sample[i] : i;
    uint64_t count = s.count;
    shard_close(&s);
    return count;
}
