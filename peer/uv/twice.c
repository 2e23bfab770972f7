/* peer/uv/twice.c -- one request that comes as two signals. */
#include "peer/uv/twice.h"

bool uv_twice(struct uv_twice *t, int number, int64_t now_us)
{
    if (t->number == number && now_us - t->at_us < UV_TWICE_US)
        return true;
    *t = (struct uv_twice){number, now_us};
    return false;
}
