/* peer/uv/allow_list_watcher.h -- reads the members file at the start, and again when it changes.
 *
 * stat() is called every UV_ROSTER_MS milliseconds. The file is read when its inode, size or times
 * have changed, so it may be written in place or replaced by rename(). Before that, two calls of
 * stat() must give equal results, so that a half-written file is not read. If the file has a valid
 * and different list, the node gets the list (NODE_ADMIT). If the file is invalid or missing, the
 * old list remains, and one warning is given per version of the file.
 */
#ifndef PEER_UV_ALLOW_LIST_WATCHER_H
#define PEER_UV_ALLOW_LIST_WATCHER_H

#include "peer/admission/allow_list.h"

#include <uv.h>

enum { UV_ROSTER_MS = 200, UV_ROSTER_ERROR_MAX = 512 };

/* Properties by which a changed file is recognised. */
struct uv_roster_mark
{
    int err; /* Result of stat() on the members file: 0 or a negative errno. */
    uint64_t device, inode, size;
    int64_t modified_ns, changed_ns;
};

struct uv_driver;

struct uv_roster
{
    uv_timer_t timer;
    struct uv_driver *driver;
    const char *path;
    struct allow_list file; /* The allow-list that the node received last. */
    struct uv_roster_mark seen, taken;
};

/* Reads the members file at `path` into *f. Returns 0, or a negative errno with a sentence in
 * error[] that begins with the path; *f is then unchanged. -EINVAL: the file is no list of
 * identities. */
__attribute__((warn_unused_result)) int uv_roster_read(struct allow_list *f, const char *path,
                                                       char error[UV_ROSTER_ERROR_MAX]);

/* Passes the list `first` to the node, takes ownership of the list, and starts to watch the members
 * file. r->timer must be initialised. After closing the timer the caller calls
 * uv_roster_close(). */
void uv_roster_start(struct uv_roster *r, struct uv_driver *d, const char *path,
                     struct allow_list *first);
void uv_roster_close(struct uv_roster *r);

#endif
