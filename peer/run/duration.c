/* peer/run/duration.c -- parses a number followed by a unit of time. */
#include "peer/run/duration.h"

#include "nn/math/number.h"

#include <string.h>

static const double shortest_s = 0.001, longest_s = 1e9;

/* Returns the unit of time at the end of the text, in seconds. Returns 0 if the text does not end
 * with a unit. */
static double unit_of(const char *text, size_t n)
{
    static const struct
    {
        char name;
        double s;
    } unit[] = {{'s', 1}, {'m', 60}, {'h', 3600}};
    for (size_t i = 0; i < sizeof unit / sizeof *unit && n > 0; i++)
        if (text[n - 1] == unit[i].name)
            return unit[i].s;
    return 0;
}

bool duration_parse(const char *text, int64_t *us)
{
    char digits[NUMBER_TEXT_MAX] = "";
    size_t n = strlen(text);
    double scale = unit_of(text, n), s = 0;
    *us = 0;
    if (strcmp(text, "off") == 0)
        return true;
    n -= scale > 0;
    scale = scale > 0 ? scale : 1;
    if (n < sizeof digits)
        memcpy(digits, text, n);
    if (!number_real(digits, &s) || !(s * scale >= shortest_s) || !(s * scale <= longest_s))
        return false;
    *us = (int64_t)(s * scale * 1e6);
    return true;
}
