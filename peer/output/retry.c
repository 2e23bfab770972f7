/* peer/output/retry.c -- intervals of retries and of warnings after a failed write. */
#include "peer/output/retry.h"

static const int64_t second = 1000000;

/* Shortest and longest intervals in seconds. TRY_*: between two tries. WARN_*: between two
 * warnings. */
enum { TRY_MIN_S = 1, TRY_MAX_S = 10, WARN_MIN_S = 10, WARN_MAX_S = 60 };

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t retry_left_us(const struct retry *r, int64_t now_us)
{
    return r->end_us > now_us ? r->end_us - now_us : 0;
}

/* The intervals of tries and of warnings double after each use, up to their maximum. The last wait
 * is shortened so that the last try is at the time limit. */
int64_t retry_failed(struct retry *r, int64_t now_us, int64_t patience_us, bool *say)
{
    if (!r->begun)
        *r = (struct retry){.begun = true,
                            .end_us = now_us + patience_us,
                            .try_every_us = TRY_MIN_S * second,
                            .warn_at_us = now_us,
                            .warn_every_us = WARN_MIN_S * second};
    *say = now_us >= r->warn_at_us;
    if (*say) {
        r->warn_at_us = now_us + r->warn_every_us;
        r->warn_every_us = smaller(2 * r->warn_every_us, WARN_MAX_S * second);
    }
    int64_t wait_us = smaller(r->try_every_us, retry_left_us(r, now_us));
    r->try_every_us = smaller(2 * r->try_every_us, TRY_MAX_S * second);
    return wait_us;
}
