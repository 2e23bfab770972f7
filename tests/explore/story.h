/* tests/explore/story.h -- writes a run as a list of protocol steps, which a golden trace stores.
 *
 * A story omits what repeats: heartbeats, step announcements, member records without news, deltas
 * that follow the one before, and jobs that change nothing. Epochs are named e1, e2, ... in the
 * order in which they appear. */
#ifndef TESTS_EXPLORE_STORY_H
#define TESTS_EXPLORE_STORY_H

#include "cluster.h"

struct story;

/* Returns NULL if no memory is left. */
struct story *story_open(FILE *f);
void story_close(struct story *s); /* The story `s` may be NULL. */

/* Writes a line with the time `now_us`. peer UINT32_MAX: the line belongs to no peer. */
void story_say(struct story *s, int64_t now_us, uint32_t peer, const char *text);
/* Writes an event that is about to reach the peer. */
void story_event(struct story *s, uint32_t peer, const struct node_event *ev, uint32_t other);
/* Writes the phase and the edges of the peer, if they have changed since the last call. */
void story_state(struct story *s, const struct cluster *c, uint32_t peer);

#endif
