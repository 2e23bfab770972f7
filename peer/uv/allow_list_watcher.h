/* peer/uv/allow_list_watcher.h -- the members file: read at the start, and again whenever it has changed.
 *
 *   every UV_ROSTER_MS: stat --another than the one taken, the same twice--> read, parse
 *                                                                              |
 *                        NODE_ADMIT <-- sound, and other identities <----------+--> a warning,
 *                                                                                   once a version
 *
 * By its name, inode, size and times, so that a file that is renamed into its place counts as one
 * that is written to. It has to look the same twice, so that no half-written one is read. What is
 * broken or gone changes nothing.
 */
#ifndef PEER_UV_ALLOW_LIST_WATCHER_H
#define PEER_UV_ALLOW_LIST_WATCHER_H

#include "peer/admission/allow_list.h"

#include <uv.h>

enum { UV_ROSTER_MS = 200, UV_ROSTER_ERROR_MAX = 512 };

/* Properties by which a changed file is recognised. */
struct uv_roster_mark
{
    int err; /* Result of stat(): 0 or a negative errno. */
    uint64_t device, inode, size;
    int64_t modified_ns, changed_ns;
};

struct uv_driver;

struct uv_roster
{
    uv_timer_t timer;
    struct uv_driver *driver;
    const char *path;
    struct allow_list file; /* The list that the node received last. */
    struct uv_roster_mark seen, taken;
};

/* Read the file. 0; or a negative errno (-EINVAL: it is no list of identities) with a sentence that
 * begins with the path; then *f is as before. */
__attribute__((warn_unused_result)) int uv_roster_read(struct allow_list *f, const char *path,
                                                       char error[UV_ROSTER_ERROR_MAX]);

/* Passes the list `first` to the node, takes ownership of it, and starts to watch the file. The
 * timer must be initialised. After closing the timer the caller calls uv_roster_close(). */
void uv_roster_start(struct uv_roster *r, struct uv_driver *d, const char *path,
                     struct allow_list *first);
void uv_roster_close(struct uv_roster *r);

#endif
