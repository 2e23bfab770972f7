/* gossip/members/records.h -- signed records, each kept once, shared by member tables.
 *
 * A simulator runs a thousand member tables of a thousand members each in one
 * process: a million entries, but only a thousand different records. So the
 * tables hold references into one set; a real peer's set has one user.
 *
 *   bucket[hash(signature)] -> entry{record, refs} -> entry ...
 *
 * A record in the set never changes, and its signature was checked by whoever
 * put it there: finding it again saves checking it again. One thread only.
 */
#ifndef GOSSIP_MEMBERS_RECORDS_H
#define GOSSIP_MEMBERS_RECORDS_H

#include "gossip/wire/wire.h"

struct records;

/* An empty set, or NULL without memory. */
struct records *records_open(void);

/* No reference may be left (asserted). NULL is allowed. */
void records_close(struct records *s);

/* The kept record with the very contents of *r, signature and all; NULL where
 * there is none. Takes no reference. */
const struct record *records_find(const struct records *s, const struct record *r);

/* One more reference to the kept copy of *r, made if need be. NULL without
 * memory. */
const struct record *records_hold(struct records *s, const struct record *r);

/* Give back what records_hold() returned; the last one frees it. NULL is
 * allowed. */
void records_release(struct records *s, const struct record *r);

enum { SIGNED_MAX = 2048 }; /* Bytes that a signature covers, at most. */

/* Do two records say the same, signatures aside? */
bool record_equal(const struct record *a, const struct record *b);

/* Two processes speak for one identity, and each has raised its record above the other's: did
 * ours, which has just done so, begin after theirs? Of two that began at nearly the same time the
 * boot ids decide, at both ends alike. Never do both ends say yes. */
bool record_younger(const struct record *ours, const struct record *theirs);

bool record_supersedes(const struct record *r, const struct record *old);

#endif
