/* peer/node/timers.c -- the table of all timers as an array. */
#include "peer/node/timers.h"

#include <stddef.h>

#define ROW(name, period_us, purpose) {#name, period_us, purpose},

const struct timer timer_all[] = {TIMERS(ROW, ROW){NULL, 0, NULL}};
