/* peer/cmd/stop.c -- a flag that a handler sets. */
#include "peer/cmd/stop.h"

#include "peer/uv/twice.h"

#include <signal.h>
#include <stddef.h>
#include <time.h>

static volatile sig_atomic_t stopped;
static struct uv_twice asked; /* For the handler only, which is not interrupted by itself. */

static void on_signal(int number)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (uv_twice(&asked, number, now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000))
        return;
    if (stopped) { /* It has its effect when the handler returns, and the signal is let through. */
        signal(number, SIG_DFL);
        raise(number);
    }
    stopped = 1;
}

void cmd_stop_catch(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigaddset(&action.sa_mask, SIGINT);
    sigaddset(&action.sa_mask, SIGTERM);
    sigaddset(&action.sa_mask, SIGHUP);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (!uv_hangup_ignored())
        sigaction(SIGHUP, &action, NULL);
}

bool cmd_stop_asked(void)
{
    return stopped != 0;
}
