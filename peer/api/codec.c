/* peer/api/codec.c -- codecs by themselves, on a vector of the caller's. */
#include "peer/api/hearsay.h"

uint32_t hearsay_api(void)
{
    return HEARSAY_API;
}
