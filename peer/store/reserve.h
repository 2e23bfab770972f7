/* peer/store/reserve.h -- room on the disk that is kept for what a run is made for: its model.
 *
 * Metrics grow by a line a round, and may fill a disk. The model is written last, and would
 * then be lost. So its room is taken at the start, by a file without a name, and given back
 * just before it is written. The process's end gives it back, too, whatever ends it.
 */
#ifndef PEER_STORE_RESERVE_H
#define PEER_STORE_RESERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Embed it, zeroed. */
struct reserve
{
    int fd;
    bool held;
    uint64_t bytes; /* Asked for last. */
};

/* Take the room of `n_files` files of so many parameters each, with their headers and a
 * summary, on the disk of `dir`; what was held before is given back. 0 or a negative errno:
 * -ENOSPC where there is no room. A disk that cannot promise room holds none, which is no
 * error. */
__attribute__((warn_unused_result)) int reserve_hold(struct reserve *r, const char *dir,
                                                     size_t n_params, uint32_t n_files);

/* The same room once more, as far as it is there. */
void reserve_again(struct reserve *r, const char *dir);
void reserve_release(struct reserve *r);

/* Can `dir` take these files (the last name is NULL)? One of another run may be there, but no
 * directory of that name. 0, or a negative errno with the path at fault. */
__attribute__((warn_unused_result)) int reserve_check(const char *dir, const char *const *names,
                                                      char *path, size_t n_path);

#endif
