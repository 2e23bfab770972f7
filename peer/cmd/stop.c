/* peer/cmd/stop.c -- a flag that a handler sets. */
#include "peer/cmd/stop.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
    (void)number;
    stopped = 1;
}

void cmd_stop_catch(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool cmd_stop_asked(void)
{
    return stopped != 0;
}
