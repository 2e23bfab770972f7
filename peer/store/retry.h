/* peer/store/retry.h -- when what could not be stored is tried again, and when that is said.
 *
 *   failed --1 s--> failed --2--> --4--> --8--> --10--> --10--> ... until patience is over
 *   said   --------10 s--------> --20--> --40--> --60--> --60--> ...
 *
 * Pure: the caller has the clock.
 */
#ifndef PEER_STORE_RETRY_H
#define PEER_STORE_RETRY_H

#include <stdbool.h>
#include <stdint.h>

/* Begin with zeros. */
struct retry
{
    bool begun;
    int64_t end_us;                  /* Patience is over. */
    int64_t try_every_us;            /* From the next try to the one after. */
    int64_t say_at_us, say_every_us; /* The next word is due, and so long to the one after. */
};

/* A try has failed; with the first one patience begins. Returns for how long to wait before the
 * next, 0 where that was the last. *say: a word is due. */
int64_t retry_failed(struct retry *r, int64_t now_us, int64_t patience_us, bool *say);

/* So much of it is left. */
int64_t retry_left_us(const struct retry *r, int64_t now_us);

#endif
