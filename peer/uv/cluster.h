/* peer/uv/cluster.h -- child processes of `hearsay local`, which end when their parent ends.
 *
 *   parent                              child i
 *   listening socket 127.0.0.1:0 -----> fd 3
 *   pipe, nothing is written to it ---> fd 4: its end of file makes the child exit
 *   lines of text <-------------------- stdout
 *   stderr of the parent <------------- stderr
 *
 * All sockets listen before the first child starts. All addresses are therefore known in
 * advance, and a child that starts early can connect to a child that starts late.
 */
#ifndef PEER_UV_CLUSTER_H
#define PEER_UV_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

enum {
    UV_CLUSTER_LISTEN_FD = 3,
    UV_CLUSTER_LEASH_FD = 4,
    /* Size of the buffer for one line of a child's output, in bytes. Longer lines are dropped. */
    UV_CLUSTER_LINE_MAX = 16 * 1024,
    UV_CLUSTER_KILL_MS = 5000 /* Milliseconds from SIGTERM to SIGKILL. */
};

struct uv_cluster;

struct uv_cluster_child
{
    struct uv_cluster *cluster;
    uint32_t index;
    uv_process_t process;
    uv_pipe_t output;
    bool spawned, running, reading;
    bool ending;    /* True: SIGTERM was sent. SIGKILL follows after UV_CLUSTER_KILL_MS. */
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
    /* n: number of children. n_busy: number of children that run or have unread output. */
    uint32_t n, n_busy;
    int leash[2];
    uv_timer_t timer;
    bool stopping;
    void *self;
    void (*line)(void *self, uint32_t i, char *text);
    /* Called when child process i has ended and all its output was read. */
    void (*ended)(void *self, uint32_t i);
};

/* Makes n listening sockets, and the pipe by which the children detect the end of this process.
 * Returns 0 or a negative errno; after an error nothing is left open. The caller must set self,
 * line and ended before uv_cluster_spawn(). */
int uv_cluster_open(struct uv_cluster *c, uv_loop_t *loop, uint32_t n);

/* Starts child i, with args as for execvp() and env as for execve(). Returns 0 or a negative
 * errno; after an error ended() is not called for this child. */
int uv_cluster_spawn(struct uv_cluster *c, uint32_t i, char **args, char **env);

/* Sends SIGTERM to all processes, and SIGKILL to those that do not end in time. Stopped
 * processes are continued first, so that they can end. */
void uv_cluster_stop(struct uv_cluster *c);
/* Stops child i only, in the same way as uv_cluster_stop(): SIGTERM, then SIGKILL if the child does
 * not end in time. */
void uv_cluster_stop_one(struct uv_cluster *c, uint32_t i);
/* Returns whether the process is stopped (SIGSTOP, a debugger). Returns false if the system
 * cannot tell. */
bool uv_cluster_stopped(const struct uv_cluster *c, uint32_t i);
/* Sends SIGKILL to all processes at once. */
void uv_cluster_kill(struct uv_cluster *c);

/* Closes the sockets, the pipe to the children and the timer. Called after ended() of the last
 * child. The loop must run until it has no open handles before uv_cluster_free(). */
void uv_cluster_close(struct uv_cluster *c);
void uv_cluster_free(struct uv_cluster *c);

#endif
