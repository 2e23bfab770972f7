/* tests/explore/story.h -- a run as a story of protocol steps: what a golden trace keeps.
 *
 * Left out is what repeats itself: heartbeats, beats, rumours without news, deltas
 * that follow the one before, jobs after which nothing is new. Numbers are integers;
 * epochs are named in the order in which they appear (e1, e2, ...).
 */
#ifndef TESTS_EXPLORE_STORY_H
#define TESTS_EXPLORE_STORY_H

#include "cluster.h"

struct story;

/* NULL without memory. */
struct story *story_open(FILE *f);
void story_close(struct story *s); /* NULL is allowed. */

/* Writes a line with this time. peer UINT32_MAX: the line belongs to no peer. */
void story_say(struct story *s, int64_t now_us, uint32_t peer, const char *text);
/* Before the event: what reaches the peer. */
void story_event(struct story *s, uint32_t peer, const struct node_event *ev, uint32_t other);
/* Between events: what has become of the peer, where that is new. */
void story_state(struct story *s, const struct cluster *c, uint32_t peer);

#endif
