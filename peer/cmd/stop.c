/* peer/cmd/stop.c -- installs handlers of SIGINT, SIGTERM and SIGHUP. The handlers set a flag,
 * which the command polls. */
#include "peer/cmd/stop.h"

#include "peer/uv/signal_debounce.h"

#include <signal.h>
#include <stddef.h>
#include <time.h>

static volatile sig_atomic_t stopped;
/* Only on_signal() uses the variable `asked`. SIGINT, SIGTERM and SIGHUP are blocked while the
 * handler runs, so the handler does not interrupt itself. */
static struct uv_twice asked;

static void on_signal(int number)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (uv_twice(&asked, number, now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000))
        return;
    /* The signal `number` is blocked while this handler runs. The signal that raise() sends is
     * delivered when the handler returns, and has its default effect. */
    if (stopped) {
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
