/* nn/math/parallel_for.h -- a few threads that do the same thing to different parts.
 *
 *   parallel_for_run(team, work, self):  work(self, 0) ... work(self, n - 1), each on
 *                                its own thread, 0 on the caller's; back when
 *                                all are done
 *
 * With crew.h the door to threads. Between runs the threads sleep.
 */
#ifndef NN_MATH_PARALLEL_FOR_H
#define NN_MATH_PARALLEL_FOR_H

#include <stdint.h>

struct parallel_for; /* Opaque. */

/* Starts n - 1 threads (n >= 1 parts, one of them in the calling thread). Returns 0, -ENOMEM or
 * -EAGAIN. */
__attribute__((warn_unused_result)) int parallel_for_open(struct parallel_for **team, uint32_t n);
void parallel_for_close(struct parallel_for *team);

/* Runs work(self, part) for each part and waits for all. Allocates nothing. One caller at a
 * time. */
void parallel_for_run(struct parallel_for *team, void (*work)(void *self, uint32_t part),
                      void *self);

#endif
