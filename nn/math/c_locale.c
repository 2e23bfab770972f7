/* nn/math/c_locale.c -- sets the locale of a thread with uselocale() of POSIX 2008. */
#include "nn/math/c_locale.h"

#include <pthread.h>

static locale_t c_locale;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

locale_t c_locale_enter(void)
{
    (void)pthread_once(&once, make);
    /* If newlocale() has failed, the thread keeps its locale. */
    return uselocale(c_locale);
}

void c_locale_leave(const locale_t *former)
{
    (void)uselocale(*former);
}
