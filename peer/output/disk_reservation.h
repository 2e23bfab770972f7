/* peer/output/disk_reservation.h -- reserves disk space for the model that a run writes at its end.
 *
 * metrics.jsonl grows by one line per round and may fill the disk. The model is written last and
 * would then be lost. Therefore an unnamed file takes the space of the model when the run starts.
 * The space is released just before the model is written. The kernel also releases it when the
 * process ends for any reason. */
#ifndef PEER_OUTPUT_DISK_RESERVATION_H
#define PEER_OUTPUT_DISK_RESERVATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One reservation of disk space. Set all bytes to zero before the first use. */
struct disk_reservation
{
    /* Descriptor of the unnamed file that takes the space. Valid while `held` is true. */
    int fd;
    bool held;
    uint64_t bytes; /* Size of the last reservation, in bytes. */
};

/* Returns the number of bytes that disk_reservation_hold() reserves. */
uint64_t disk_reservation_bytes(size_t n_params, uint32_t n_files);

/* Reserves space on the disk of `dir` for `n_files` model files of `n_params` floats each, with
 * their headers, and for summary.json. An earlier reservation of `r` is released first. Returns 0
 * or a negative errno: -ENOSPC if the disk has too little space. On a file system that cannot
 * reserve space, nothing is reserved and 0 is returned. */
__attribute__((warn_unused_result)) int disk_reservation_hold(struct disk_reservation *r,
                                                              const char *dir, size_t n_params,
                                                              uint32_t n_files);

/* Reserves the same amount of space again after disk_reservation_release(). An error is ignored. */
void disk_reservation_hold_again(struct disk_reservation *r, const char *dir);
/* Gives the reserved space back to the disk. Does nothing if no space is reserved. */
void disk_reservation_release(struct disk_reservation *r);

/* Checks whether the files `names` (ended by NULL) can be written in `dir`. Existing files are
 * allowed, directories of these names are not. Returns 0, or a negative errno with the offending
 * path in `path`. */
__attribute__((warn_unused_result)) int disk_reservation_check(const char *dir,
                                                               const char *const *names, char *path,
                                                               size_t n_path);

#endif
