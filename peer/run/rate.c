/* peer/run/rate.c -- parses a number followed by a unit of a bit rate. */
#include "peer/run/rate.h"

#include "nn/math/number.h"

#include <string.h>

bool rate_parse(const char *text, double *bits_per_s)
{
    static const struct
    {
        const char *name;
        double factor;
    } units[] = {{"bit", 1}, {"kbit", 1e3}, {"Mbit", 1e6}, {"Gbit", 1e9}, {"Tbit", 1e12}};
    char number[24];
    size_t n = strspn(text, "0123456789.");
    double value;
    if (n == 0 || n >= sizeof number || text[0] == '.' || text[n - 1] == '.')
        return false;
    memcpy(number, text, n);
    number[n] = '\0';
    if (!number_real(number, &value) || !(value > 0))
        return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(text + n, units[i].name) == 0) {
            *bits_per_s = value * units[i].factor;
            return true;
        }
    }
    return false;
}
