/* nn/math/parallel_for.h -- a few threads that run the same function on different parts of the
 * work.
 *
 *   parallel_for_run(team, work, self):  calls work(self, 0) ... work(self, n - 1), each on its
 *                                        own thread, part 0 on the caller's; returns when all
 *                                        have ended
 *
 * In nn/, only this module and thread_pool.h start threads. The threads sleep between runs.
 */
#ifndef NN_MATH_PARALLEL_FOR_H
#define NN_MATH_PARALLEL_FOR_H

#include <stdint.h>

struct parallel_for; /* The threads of a parallel-for. Opaque. */

/* Starts n - 1 threads for n >= 1 parts; part 0 runs on the caller's thread. Returns 0, -ENOMEM or
 * -EAGAIN. */
__attribute__((warn_unused_result)) int parallel_for_open(struct parallel_for **team, uint32_t n);
void parallel_for_close(struct parallel_for *team);

/* Runs work(self, part) for each part and waits until all parts have ended. Allocates nothing. Only
 * one thread at a time may call parallel_for_run() with the same `team`. */
void parallel_for_run(struct parallel_for *team, void (*work)(void *self, uint32_t part),
                      void *self);

#endif
