/* peer/sim/disk.h -- a disk in memory that can lose and reorder unsynced data, for tests.
 *
 * The process sees the result of each call of peer/checkpoints/disk.h at once. The calls sync and
 * sync_dir make data and names durable. After sim_disk_lose_power() all durable data remain, and
 * random numbers decide what happens to other data.
 *
 * At a power loss each unsynced write is kept, lost or kept in part, independently of the others.
 * A lost range inside a file reads as zeros or as random bytes. Of the unsynced name changes either
 * the first few are kept, or each is kept or lost independently. A failed sync returns an error
 * once. Data that it did not make durable stay visible to the process, but are lost at the next
 * power loss, even if a later sync succeeds.
 *
 * Calls are counted. The test can choose a call that fails, with all, part or none of its work
 * done (`fail_at`). It can also choose a call in which the process dies (`last`): this call and
 * all later calls fail until sim_disk_lose_power() or sim_disk_lose_process() starts a new
 * process. All results depend only on the seed and the calls.
 */
#ifndef PEER_SIM_DISK_H
#define PEER_SIM_DISK_H

#include "peer/checkpoints/disk.h"

#include "nn/math/rng.h"

#include <stdbool.h>

enum { SIM_DISK_NAMES = 16, SIM_DISK_NAME_MAX = 64 };

struct sim_disk_name
{
    char name[SIM_DISK_NAME_MAX]; /* Name of a file. Empty: unused entry. */
    int inode;
};

/* A creation, renaming or removal of a name that was not synced yet. */
struct sim_disk_change
{
    /* Old and new name of the file. If `from` is empty, the file is created. If `to` is empty, the
     * file is removed. */
    char from[SIM_DISK_NAME_MAX], to[SIM_DISK_NAME_MAX];
    int inode;
    bool lost; /* True: a sync of the directory failed, so the change is never durable. */
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
    struct disk disk; /* File operations that the code under test calls. */
    struct rng rng;
    struct sim_disk_inode *inode;
    size_t n_inodes;
    struct sim_disk_name seen[SIM_DISK_NAMES], sure[SIM_DISK_NAMES];
    /* Name changes that are not synced yet, in order. Applied to the durable names `sure`, they
     * give the names that the process sees, `seen`. */
    struct sim_disk_change *change;
    size_t n_changes;
    uint64_t n_calls;
    uint64_t fail_at; /* Number of the disk call, from 1, that fails with fail_err. 0: none. */
    int fail_err;     /* Positive errno with which the chosen disk call fails. */
    uint64_t last;    /* Number of the disk call in which the process dies. 0: none. */
    size_t space;     /* Capacity of the disk in bytes, for all files together. */
};

/* Initialises an empty disk with random seed `key`. The struct must not be moved. */
void sim_disk_open(struct sim_disk *d, uint64_t key);
void sim_disk_close(struct sim_disk *d);

/* Returns whether the simulated process has died in its disk call with the number `last`. */
bool sim_disk_dead(const struct sim_disk *d);
/* Simulates a power failure and restart: data that are not durable may be lost. */
void sim_disk_lose_power(struct sim_disk *d);
/* Simulates the end of the process and the start of a new one: all data that the process saw
 * remain. */
void sim_disk_lose_process(struct sim_disk *d);

/* sim_disk_files() returns the number of files, sim_disk_bytes() their total bytes. */
size_t sim_disk_files(const struct sim_disk *d);
size_t sim_disk_bytes(const struct sim_disk *d);
/* Returns a file's bytes, for reading or corrupting, and their number in *n. NULL: no such file. */
uint8_t *sim_disk_file(struct sim_disk *d, const char *name, size_t *n);

#endif
