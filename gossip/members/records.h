/* gossip/members/records.h -- set of signed records with reference counts, shared by member tables.
 *
 * A simulator runs a thousand member tables of a thousand members in one process. That is a
 * million entries, but only a thousand distinct records. Tables therefore hold references into
 * one set. A real peer's set is used by one table.
 *
 *   bucket[hash(signature)] -> entry{record, refs} -> entry ...
 *
 * A record in the set never changes. Its signature was checked before it was added, so a record
 * found in the set needs no second check. The set is for use by one thread only.
 */
#ifndef GOSSIP_MEMBERS_RECORDS_H
#define GOSSIP_MEMBERS_RECORDS_H

#include "gossip/wire/wire.h"

struct records;

/* Returns an empty set of records, or NULL if memory is exhausted. */
struct records *records_open(void);

/* Frees the set of records. Asserts that no reference to a record is left. s may be NULL. */
void records_close(struct records *s);

/* Returns the stored record with exactly the contents and signature of *r, or NULL. Takes no
 * reference. */
const struct record *records_find(const struct records *s, const struct record *r);

/* Returns the stored copy of *r with one more reference, and adds it if absent. NULL if memory
 * is exhausted. */
const struct record *records_hold(struct records *s, const struct record *r);

/* Drops a reference that records_hold() gave. A record without references is freed. r may be
 * NULL. */
void records_release(struct records *s, const struct record *r);

enum { SIGNED_MAX = 2048 }; /* Maximum number of bytes that a signature covers. */

/* Returns whether two records have equal contents, apart from the signature. */
bool record_equal(const struct record *a, const struct record *b);

/* Returns whether this process started later than another process with the same identity. `ours`
 * and `theirs`: the records of the two processes, which state their ages. If the ages differ by
 * less than 2 s, the boot ids decide. At most one of the two processes gets true. */
bool record_younger(const struct record *ours, const struct record *theirs);

bool record_supersedes(const struct record *r, const struct record *old);

#endif
