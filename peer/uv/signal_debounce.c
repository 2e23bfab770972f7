/* peer/uv/signal_debounce.c -- signal debounce: recognises a signal that is a duplicate of the last
 * one. */
#include "peer/uv/signal_debounce.h"

#include <signal.h>
#include <stddef.h>

bool uv_twice(struct uv_twice *t, int number, int64_t now_us)
{
    if (t->number == number && now_us - t->at_us < UV_TWICE_US)
        return true;
    *t = (struct uv_twice){number, now_us};
    return false;
}

bool uv_hangup_ignored(void)
{
    struct sigaction now;
    return sigaction(SIGHUP, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}
