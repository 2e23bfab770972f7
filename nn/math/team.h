/* nn/math/team.h -- a few threads that do the same thing to different parts.
 *
 *   team_run(team, work, self):  work(self, 0) ... work(self, n - 1), each on
 *                                its own thread, 0 on the caller's; back when
 *                                all are done
 *
 * With crew.h the door to threads. Between runs the threads sleep.
 */
#ifndef NN_MATH_TEAM_H
#define NN_MATH_TEAM_H

#include <stdint.h>

struct team; /* Opaque. */

/* A team of n >= 1, the caller counted. 0, -ENOMEM or -EAGAIN. */
__attribute__((warn_unused_result)) int team_open(struct team **team, uint32_t n);
void team_close(struct team *team);

/* Allocates nothing. One caller at a time. */
void team_run(struct team *team, void (*work)(void *self, uint32_t part), void *self);

#endif
