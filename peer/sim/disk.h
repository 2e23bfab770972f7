/* peer/sim/disk.h -- a disk in memory that loses and reorders what was not synced.
 *
 *   calls of peer/keep/disk.h --> what a process sees: all of it, at once
 *   sync, sync_dir            --> what is sure
 *   sim_disk_lose_power()     --> what is left: all that was sure; of the rest, what the stream of
 *                                 random numbers says
 *
 * Of writes that were not synced each is kept, lost or torn by itself: what is lost in the middle
 * of a file reads as zeros or as old bytes of the disk. Names that were not synced are kept up to
 * one of them, or each by itself. A sync that fails says so once; what it did not write is lost for
 * good, however often it is asked again, though the process goes on seeing it.
 *
 * Calls are counted. One of them can be made to fail, with a part of its work done, or to be the
 * last: from then on every call fails until power or the process is lost, which is what a crash
 * looks like from outside. Everything is a function of the seed and of the calls.
 */
#ifndef PEER_SIM_DISK_H
#define PEER_SIM_DISK_H

#include "peer/keep/disk.h"

#include "nn/math/rng.h"

#include <stdbool.h>

enum { SIM_DISK_NAMES = 16, SIM_DISK_NAME_MAX = 64 };

struct sim_disk_name
{
    char name[SIM_DISK_NAME_MAX]; /* Empty: there is none. */
    int inode;
};

/* A change of a name that has not been synced. */
struct sim_disk_change
{
    char from[SIM_DISK_NAME_MAX], to[SIM_DISK_NAME_MAX]; /* Either may be empty. */
    int inode;
    bool lost; /* A sync of the directory failed. */
};

struct sim_disk_write
{
    size_t at, n;
    enum { SIM_DISK_PENDING, SIM_DISK_SURE, SIM_DISK_LOST } fate;
};

struct sim_disk_inode
{
    uint8_t *bytes;
    size_t n;
    struct sim_disk_write *write;
    size_t n_writes;
    bool used, open;
};

struct sim_disk
{
    struct disk disk; /* Its calls. */
    struct rng rng;
    struct sim_disk_inode *inode;
    size_t n_inodes;
    struct sim_disk_name seen[SIM_DISK_NAMES], sure[SIM_DISK_NAMES];
    struct sim_disk_change *change; /* From sure to seen, in order. */
    size_t n_changes;
    uint64_t n_calls;
    uint64_t fail_at; /* The call that fails with fail_err; 0: none. */
    int fail_err;     /* Not negative. */
    uint64_t last;    /* The last call, in the middle of which the process ends; 0: none. */
    size_t space;     /* Bytes of all files that fit. */
};

/* An empty disk. It must not be moved. */
void sim_disk_open(struct sim_disk *d, uint64_t key);
void sim_disk_close(struct sim_disk *d);

/* Has the call `last` been made? */
bool sim_disk_dead(const struct sim_disk *d);
/* The machine goes off and on: what was not sure is lost, or not. */
void sim_disk_lose_power(struct sim_disk *d);
/* The process ends and another begins: all that it has seen is there. */
void sim_disk_lose_process(struct sim_disk *d);

/* How many files there are, and their bytes together. */
size_t sim_disk_files(const struct sim_disk *d);
size_t sim_disk_bytes(const struct sim_disk *d);
/* A file's bytes, to be looked at or spoiled; NULL where there is none. */
uint8_t *sim_disk_file(struct sim_disk *d, const char *name, size_t *n);

#endif
