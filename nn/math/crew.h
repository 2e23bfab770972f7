/* nn/math/crew.h -- a few threads that do jobs, each job on any one of them.
 *
 *   caller   give(a) give(b) give(c) ... await(b): done? else it takes a job itself, b first
 *   threads        \---- a ----\ \---- c ----\
 *
 * Jobs begin in the order in which they were given, and may end in any. What is right whatever that is
 * (each works on memory of its own) is the same with any number of members.
 */
#ifndef NN_MATH_CREW_H
#define NN_MATH_CREW_H

#include <stdint.h>

enum { CREW_MAX = 64 };

enum crew_state { CREW_IDLE, CREW_QUEUED, CREW_RUNNING, CREW_DONE };

/* The caller fills in the first two; the rest is the crew's, and begins with zeros. It must stay
 * where it is from crew_give() until crew_await(). */
struct crew_job
{
    void (*run)(void *self, uint32_t member); /* On the thread of this member; 0: the caller's. */
    void *self;
    enum crew_state state;
    struct crew_job *next;
};

struct crew; /* Opaque. Its functions are called by one thread. */

/* n_members from 1 to CREW_MAX, the caller among them. 0, -ENOMEM or -EAGAIN (no threads). */
__attribute__((warn_unused_result)) int crew_open(struct crew **c, uint32_t n_members);
/* All jobs must have been awaited. NULL is fine. */
void crew_close(struct crew *c);

/* Asserts that it is neither queued nor running. A crew of one does it at once. */
void crew_give(struct crew *c, struct crew_job *job);
/* Back when it is done, and what it wrote can be read. One that was not given is done. */
void crew_await(struct crew *c, struct crew_job *job);

#endif
