/* peer/uv/allow_list_watcher.c -- polls the members file with a timer.
 *
 * A timer is used because inotify does not report a rename on every file system.
 */
#include "peer/uv/allow_list_watcher.h"

#include "nn/files/file.h"
#include "peer/uv/event_adapter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Reading the file ---- */

/* Reads the members file into `text`. Reads at most one byte more than the largest valid file has,
 * so that a larger file is detected. */
static int read_bytes(const char *path, char *text, size_t *n, char error[FILE_ERROR_MAX])
{
    struct file *f;
    int err = file_open_no_input(&f, path, error);
    if (err < 0)
        return err;
    err = file_get(f, text, ALLOW_LIST_BYTES_MAX + 1, n, error);
    file_close(f);
    return err;
}

int uv_roster_read(struct allow_list *f, const char *path, char error[UV_ROSTER_ERROR_MAX])
{
    char why[ALLOW_LIST_ERROR_MAX], unread[FILE_ERROR_MAX];
    size_t n = 0;
    char *text = malloc(ALLOW_LIST_BYTES_MAX + 1);
    int err = text != NULL ? read_bytes(path, text, &n, unread) : file_no_memory(unread, path);
    if (err < 0)
        snprintf(error, UV_ROSTER_ERROR_MAX, "%s", unread);
    else if ((err = allow_list_parse(f, text, n, why)) < 0)
        snprintf(error, UV_ROSTER_ERROR_MAX, "%.200s: %s", path, why);
    free(text);
    return err;
}

/* ---- Polling the file ---- */

static struct uv_roster_mark look_at(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return (struct uv_roster_mark){.err = -errno};
    return (struct uv_roster_mark){
        .device = (uint64_t)st.st_dev,
        .inode = (uint64_t)st.st_ino,
        .size = (uint64_t)st.st_size,
        .modified_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec,
        .changed_ns = (int64_t)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec};
}

static bool same(const struct uv_roster_mark *a, const struct uv_roster_mark *b)
{
    return a->err == b->err && a->device == b->device && a->inode == b->inode && a->size == b->size
           && a->modified_ns == b->modified_ns && a->changed_ns == b->changed_ns;
}

static void tell_node(struct uv_roster *r)
{
    uv_timeval64_t now;
    /* If the clock cannot be read, the time is taken as 0, so that no certificate counts as
     * expired. */
    int64_t unix_ms = 0;
    if (uv_gettimeofday(&now) == 0)
        unix_ms = now.tv_sec * 1000 + now.tv_usec / 1000;
    uv_feed(r->driver, &(struct node_event){.type = NODE_ADMIT,
                                            .admit = {(const uint8_t(*)[WIRE_ID_BYTES])r->file.id,
                                                      r->file.n, unix_ms}});
}

static void note(const struct uv_roster *r, enum note_level level, const char *text)
{
    const struct uv_driver_config *c = r->driver->config;
    if (c->note)
        c->note(c->self, level, "allow_list", text);
}

/* Reads the changed file. If the list is valid and differs from the current one, passes it to
 * the node. */
static void take(struct uv_roster *r)
{
    char text[UV_ROSTER_ERROR_MAX + 64], why[UV_ROSTER_ERROR_MAX];
    struct allow_list now = {0};
    int err = uv_roster_read(&now, r->path, why);
    if (err < 0) {
        snprintf(text, sizeof text, "%s; the previous list stays in use", why);
        note(r, NOTE_WARNING, text);
        return;
    }
    bool other = now.n != r->file.n || memcmp(now.id, r->file.id, now.n * sizeof *now.id) != 0;
    if (!other) {
        allow_list_close(&now);
        return;
    }
    allow_list_close(&r->file);
    r->file = now;
    snprintf(text, sizeof text, "%.200s: changed, now lists %zu identities", r->path, now.n);
    note(r, NOTE_INFO, text);
    tell_node(r);
}

static void on_look(uv_timer_t *timer)
{
    struct uv_roster *r = timer->data;
    struct uv_roster_mark now = look_at(r->path);
    bool stands = same(&now, &r->seen);
    r->seen = now;
    if (!stands || same(&now, &r->taken) || r->driver->exiting)
        return;
    r->taken = now;
    take(r);
}

void uv_roster_start(struct uv_roster *r, struct uv_driver *d, const char *path,
                     struct allow_list *first)
{
    r->driver = d;
    r->path = path;
    r->file = *first;
    *first = (struct allow_list){0};
    r->timer.data = r;
    tell_node(r);
    uv_timer_start(&r->timer, on_look, UV_ROSTER_MS, UV_ROSTER_MS);
}

void uv_roster_close(struct uv_roster *r)
{
    allow_list_close(&r->file);
}
