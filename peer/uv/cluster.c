/* peer/uv/cluster.c -- starts the peers of `hearsay local` as child processes, reads their
 * output, and ends them. */
#include "peer/uv/cluster.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 512 };

/* ---- Reading the output of a child ---- */

static void settle(struct uv_cluster_child *k)
{
    struct uv_cluster *c = k->cluster;
    if (k->running || k->reading)
        return;
    c->n_busy--;
    c->ended(c->self, k->index);
}

static void take_byte(struct uv_cluster_child *k, char byte)
{
    if (byte != '\n') {
        if (k->n_line + 1 < UV_CLUSTER_LINE_MAX)
            k->line[k->n_line++] = byte;
        else
            k->too_long = true;
        return;
    }
    k->line[k->n_line] = '\0';
    if (!k->too_long)
        k->cluster->line(k->cluster->self, k->index, k->line);
    k->n_line = 0;
    k->too_long = false;
}

static void on_room(uv_handle_t *h, size_t suggested, uv_buf_t *buf)
{
    /* One buffer serves all children, because on_output() uses all bytes before the next read. */
    static char room[64 * 1024];
    (void)h;
    (void)suggested;
    *buf = uv_buf_init(room, sizeof room);
}

static void on_output_closed(uv_handle_t *h)
{
    struct uv_cluster_child *k = h->data;
    k->reading = false;
    settle(k);
}

static void on_output(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
    struct uv_cluster_child *k = s->data;
    for (ssize_t i = 0; i < n; i++)
        take_byte(k, buf->base[i]);
    if (n < 0)
        uv_close((uv_handle_t *)s, on_output_closed);
}

/* ---- Ending processes ---- */

static void on_process_closed(uv_handle_t *h)
{
    struct uv_cluster_child *k = h->data;
    k->running = false;
    settle(k);
}

static void on_child_exit(uv_process_t *process, int64_t status, int signal)
{
    struct uv_cluster_child *k = process->data;
    k->status = status;
    k->signal = signal;
    uv_close((uv_handle_t *)process, on_process_closed);
}

static bool runs(const struct uv_cluster_child *k)
{
    return k->running && !uv_is_closing((const uv_handle_t *)&k->process);
}

static void signal_one(struct uv_cluster_child *k, int signal)
{
    if (runs(k))
        (void)uv_process_kill(&k->process, signal);
}

void uv_cluster_kill(struct uv_cluster *c)
{
    for (uint32_t i = 0; i < c->n; i++)
        signal_one(&c->child[i], SIGKILL);
}

static void on_overdue(uv_timer_t *timer)
{
    struct uv_cluster *c = timer->data;
    for (uint32_t i = 0; i < c->n; i++)
        if (c->child[i].ending)
            signal_one(&c->child[i], SIGKILL);
}

/* A stopped process does not handle SIGTERM until SIGCONT continues it. SIGTERM is sent first,
 * so the process handles it as soon as it continues. */
static void ask_to_end(struct uv_cluster_child *k)
{
    k->ending = true;
    signal_one(k, SIGTERM);
    signal_one(k, SIGCONT);
}

void uv_cluster_stop_one(struct uv_cluster *c, uint32_t i)
{
    ask_to_end(&c->child[i]);
    uv_timer_start(&c->timer, on_overdue, UV_CLUSTER_KILL_MS, 0);
}

/* Reads /proc/PID/stat. The state letter follows the process name, which is in parentheses and
 * may contain parentheses itself, so the last ')' counts. */
bool uv_cluster_stopped(const struct uv_cluster *c, uint32_t i)
{
    const struct uv_cluster_child *k = &c->child[i];
    char text[256] = "";
    if (!runs(k))
        return false;
    snprintf(text, sizeof text, "/proc/%d/stat", (int)uv_process_get_pid(&k->process));
    FILE *f = fopen(text, "re");
    if (f == NULL)
        return false;
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    const char *name_end = strrchr(text, ')');
    return name_end != NULL
           && (strncmp(name_end, ") T", 3) == 0 || strncmp(name_end, ") t", 3) == 0);
}

void uv_cluster_stop(struct uv_cluster *c)
{
    if (c->stopping)
        return;
    c->stopping = true;
    for (uint32_t i = 0; i < c->n; i++)
        ask_to_end(&c->child[i]);
    uv_timer_start(&c->timer, on_overdue, UV_CLUSTER_KILL_MS, 0);
}

int uv_cluster_spawn(struct uv_cluster *c, uint32_t i, char **args, char **env)
{
    struct uv_cluster_child *k = &c->child[i];
    assert(!k->spawned && c->line && c->ended);
    int err = uv_pipe_init(c->loop, &k->output, 0);
    if (err < 0)
        return err;
    uv_stdio_container_t stdio[UV_CLUSTER_LEASH_FD + 1] = {
        {.flags = UV_IGNORE},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&k->output},
        {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO},
        {.flags = UV_INHERIT_FD, .data.fd = k->listen_fd},
        {.flags = UV_INHERIT_FD, .data.fd = c->leash[0]},
    };
    uv_process_options_t options = {.file = args[0],
                                    .args = args,
                                    .env = env,
                                    .exit_cb = on_child_exit,
                                    .stdio = stdio,
                                    .stdio_count = UV_CLUSTER_LEASH_FD + 1};
    k->process.data = k->output.data = k;
    k->spawned = k->running = k->reading = true;
    c->n_busy++;
    err = uv_spawn(c->loop, &k->process, &options);
    /* The child has its own descriptor of the socket, so the parent closes this one. */
    close(k->listen_fd);
    k->listen_fd = -1;
    if (err == 0)
        err = uv_read_start((uv_stream_t *)&k->output, on_room, on_output);
    if (err < 0) {
        /* libuv requires that the handles of process and pipe are closed, also after a failed
         * uv_spawn(). */
        c->n_busy--;
        k->running = k->reading = false;
        uv_close((uv_handle_t *)&k->process, NULL);
        uv_close((uv_handle_t *)&k->output, NULL);
    }
    return err;
}

/* ---- Opening and closing ---- */

static int listen_anywhere(struct uv_cluster_child *k)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    k->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (k->listen_fd < 0 || bind(k->listen_fd, (struct sockaddr *)&a, n) < 0
        || listen(k->listen_fd, BACKLOG) < 0
        || getsockname(k->listen_fd, (struct sockaddr *)&a, &n) < 0)
        return -errno;
    k->port = ntohs(a.sin_port);
    return 0;
}

static void close_files(struct uv_cluster *c)
{
    for (uint32_t i = 0; i < c->n; i++) {
        if (c->child[i].listen_fd >= 0)
            close(c->child[i].listen_fd);
        c->child[i].listen_fd = -1;
    }
    for (int i = 0; i < 2; i++) {
        if (c->leash[i] >= 0)
            close(c->leash[i]);
        c->leash[i] = -1;
    }
}

int uv_cluster_open(struct uv_cluster *c, uv_loop_t *loop, uint32_t n)
{
    *c = (struct uv_cluster){.loop = loop, .n = n, .leash = {-1, -1}};
    c->child = calloc(n, sizeof *c->child);
    if (c->child == NULL)
        return -ENOMEM;
    int err = pipe(c->leash) < 0 ? -errno : 0;
    for (int i = 0; i < 2 && err == 0; i++) {
        if (fcntl(c->leash[i], F_SETFD, FD_CLOEXEC) < 0)
            err = -errno;
    }
    for (uint32_t i = 0; i < n; i++) {
        c->child[i].cluster = c;
        c->child[i].index = i;
        c->child[i].listen_fd = -1;
        if (err == 0)
            err = listen_anywhere(&c->child[i]);
    }
    if (err == 0)
        err = uv_timer_init(loop, &c->timer);
    if (err < 0) {
        close_files(c);
        free(c->child);
        return err;
    }
    c->timer.data = c;
    return 0;
}

void uv_cluster_close(struct uv_cluster *c)
{
    assert(c->n_busy == 0);
    close_files(c);
    uv_close((uv_handle_t *)&c->timer, NULL);
}

void uv_cluster_free(struct uv_cluster *c)
{
    free(c->child);
    c->child = NULL;
}
