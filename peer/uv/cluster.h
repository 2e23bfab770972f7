/* peer/uv/cluster.h -- child processes on a leash: none outlives its parent.
 *
 *   parent                           child i
 *   listening socket 127.0.0.1:0 --> fd 3
 *   leash (write end, never used)    fd 4: its end is the child's end
 *   lines of text <----------------- stdout
 *   stderr ........................> the parent's
 *
 * The sockets listen before any child runs, so that every address is known
 * beforehand and a child that starts early is not refused by one that is late.
 */
#ifndef PEER_UV_CLUSTER_H
#define PEER_UV_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

enum {
    UV_CLUSTER_LISTEN_FD = 3,
    UV_CLUSTER_LEASH_FD = 4,
    UV_CLUSTER_LINE_MAX = 16 * 1024, /* Longer lines are dropped. */
    UV_CLUSTER_KILL_MS = 5000        /* From SIGTERM to SIGKILL. */
};

struct uv_cluster;

struct uv_cluster_child
{
    struct uv_cluster *cluster;
    uint32_t index;
    uv_process_t process;
    uv_pipe_t output;
    bool spawned, running, reading;
    bool ending;    /* The process was asked to end. It is killed if it does not. */
    int64_t status; /* Exit code of a process that ended by itself. */
    int signal;     /* Signal that ended the process. 0: none. */
    int listen_fd;
    uint16_t port;
    uint32_t n_line;
    bool too_long;
    char line[UV_CLUSTER_LINE_MAX];
};

struct uv_cluster
{
    uv_loop_t *loop;
    struct uv_cluster_child *child;
    uint32_t n, n_busy; /* n_busy: running, or with output still to be read. */
    int leash[2];
    uv_timer_t timer;
    bool stopping;
    void *self;
    void (*line)(void *self, uint32_t i, char *text);
    void (*ended)(void *self, uint32_t i); /* The process has ended, and all its output was read. */
};

/* Makes n listening sockets and the leash. 0 or a negative errno: then nothing
 * is left. Set self, line and ended before spawning. */
int uv_cluster_open(struct uv_cluster *c, uv_loop_t *loop, uint32_t n);

/* Start child i: args as for execvp, env as for execve. 0 or a negative errno;
 * then ended() does not come. */
int uv_cluster_spawn(struct uv_cluster *c, uint32_t i, char **args, char **env);

/* Sends SIGTERM to all processes, and SIGKILL to those that do not end in time. Stopped
 * processes are continued first, so that they can end. */
void uv_cluster_stop(struct uv_cluster *c);
/* Does the same for one process. */
void uv_cluster_stop_one(struct uv_cluster *c, uint32_t i);
/* Returns whether the process is stopped (SIGSTOP, a debugger). Returns false if the system
 * cannot tell. */
bool uv_cluster_stopped(const struct uv_cluster *c, uint32_t i);
/* SIGKILL to all, now. */
void uv_cluster_kill(struct uv_cluster *c);

/* After the last ended(): closes what is left. Run the loop until it is empty,
 * then free. */
void uv_cluster_close(struct uv_cluster *c);
void uv_cluster_free(struct uv_cluster *c);

#endif
