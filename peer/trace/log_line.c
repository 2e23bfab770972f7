/* peer/trace/log_line.c -- formats a log message: time, level, module, source and text in one
 * line. */
#include "peer/trace/log_line.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct
{
    enum note_level level;
    const char *name;
} levels[] = {
    {NOTE_ERROR, "error"}, {NOTE_WARNING, "warning"}, {NOTE_INFO, "info"}, {NOTE_DEBUG, "debug"}};

enum { N_LEVELS = sizeof levels / sizeof *levels };

const char *log_level_name(enum note_level level)
{
    size_t i = 0;
    while (i + 1 < N_LEVELS && levels[i].level != level)
        i++;
    assert(levels[i].level == level);
    return levels[i].name;
}

bool log_level_read(const char *name, enum note_level *level)
{
    for (size_t i = 0; i < N_LEVELS; i++)
        if (strcmp(levels[i].name, name) == 0) {
            *level = levels[i].level;
            return true;
        }
    return false;
}

/* The date is computed from the number of days since 1970 by the algorithm of H. Hinnant,
 * "chrono-Compatible Low-Level Date Algorithms": years begin on 1 March, and 400 years have 146,097
 * days. */
void log_time_text(int64_t unix_ms, char out[LOG_TIME_SIZE])
{
    assert(unix_ms >= 0);
    int64_t ms = unix_ms % 1000, seconds = unix_ms / 1000, in_day = seconds % 86400;
    int64_t days = seconds / 86400 + 719468; /* Number of days since 1 March of the year 0. */
    int64_t era = days / 146097, of_era = days % 146097;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * of_year + 2) / 153; /* Month of a year that begins in March. 0: March. */
    int64_t day = of_year - (153 * month + 2) / 5 + 1;
    int64_t calendar_month = month < 10 ? month + 3 : month - 9;
    snprintf(out, LOG_TIME_SIZE,
             "%04" PRId64 "-%02" PRId64 "-%02" PRId64 "T%02" PRId64 ":%02" PRId64 ":%02" PRId64
             ".%03" PRId64 "Z",
             year + era * 400 + (calendar_month <= 2), calendar_month, day, in_day / 3600,
             in_day / 60 % 60, in_day % 60, ms);
}

void log_line(const char *time, enum note_level level, const char *module, const char *source,
              const char *text, char out[LOG_LINE_SIZE])
{
    snprintf(out, LOG_LINE_SIZE, "%s %s %s %s: %s", time, log_level_name(level), module, source,
             text);
    for (char *c = out; *c != '\0'; c++)
        if ((unsigned char)*c < ' ')
            *c = ' ';
}
