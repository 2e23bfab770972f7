/* peer/sim/who.c -- parses a list of peer numbers. */
#include "peer/sim/who.h"

#include "nn/math/number.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

/* Parses one peer number such as "3" or a range such as "5-14". Returns the position after it in
 * the text, or NULL if the text has another form. */
static const char *read_range(const char *p, uint32_t n, uint64_t *from, uint64_t *to)
{
    p = number_digits(p, n - 1, from);
    *to = *from;
    if (p != NULL && *p == '-')
        p = number_digits(p + 1, n - 1, to);
    return p != NULL && *to >= *from && (*p == ',' || *p == '\0') ? p : NULL;
}

int who_read(const char *text, uint32_t n, bool *who, char error[WHO_ERROR_MAX])
{
    for (const char *p = text; p != NULL;) {
        uint64_t from = 0, to = 0;
        p = read_range(p, n, &from, &to);
        if (p == NULL) {
            snprintf(error, WHO_ERROR_MAX,
                     "found '%.32s', expected peers from 0 to %u: 3 or 0,7 or 5-14", text, n - 1);
            return -EINVAL;
        }
        for (uint64_t i = from; i <= to; i++) {
            if (who[i]) {
                snprintf(error, WHO_ERROR_MAX, "found '%.32s', which names peer %" PRIu64 " twice",
                         text, i);
                return -EINVAL;
            }
            who[i] = true;
        }
        p = *p == ',' ? p + 1 : NULL;
    }
    return 0;
}
