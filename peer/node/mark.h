/* peer/node/mark.h -- marks branches of the policy code, to count which of them a test reaches.
 *
 * MARK("x") counts that this line was reached, and MARK_IF(c, "x") counts that it was reached with
 * a true condition c, which must have no side effects. Only the explorer (tests/explore) is
 * compiled with HEARSAY_MARKS and counts. In the program a mark expands to nothing, and its
 * condition is not evaluated. The name of a mark begins with the name of its module and occurs
 * once.
 */
#ifndef PEER_NODE_MARK_H
#define PEER_NODE_MARK_H

#ifdef HEARSAY_MARKS

#include <stdint.h>

/* One mark (a counted branch of the policy code). The linker's section "marks" contains pointers to
 * all marks. */
struct mark
{
    const char *name;
    /* Number of times that the mark was reached, with MARK_IF only those with a true condition. The
     * reader of the section may set it to 0. */
    uint64_t n;
};

#define MARK_IF(condition, text)                                                                   \
    do {                                                                                           \
        static struct mark mark_ = {text, 0};                                                      \
        static struct mark *const mark_at_ __attribute__((section("marks"), used)) = &mark_;       \
        mark_.n += (condition) ? 1 : 0;                                                            \
    } while (0)
#define MARK(text) MARK_IF(1, text)

#else

#define MARK_IF(condition, text) ((void)0)
#define MARK(text)               ((void)0)

#endif

#endif
