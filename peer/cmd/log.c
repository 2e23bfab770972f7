/* peer/cmd/log.c -- prints messages of the selected levels, with their time. */
#include "peer/cmd/log.h"

#include "peer/trace/log_line.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Log level of the process. All threads use the same level, because all print to the same stderr.
 * The level is set before any thread starts. */
static struct
{
    bool given;
    enum note_level least;
} chosen = {.least = NOTE_INFO};

void cmd_log_open(const struct options *o)
{
    for (uint32_t i = 0; i < o->n; i++)
        if (strcmp(o->values[i].row->name, "log-level") == 0 && o->values[i].text != NULL)
            chosen.given = log_level_read(o->values[i].text, &chosen.least);
}

bool cmd_log_given(void)
{
    return chosen.given;
}

bool cmd_log_shows(enum note_level level)
{
    return level >= chosen.least;
}

static void print(const char *time, enum note_level level, const char *module, const char *source,
                  const char *text)
{
    char line[LOG_LINE_SIZE];
    if (!cmd_log_shows(level))
        return;
    log_line(time, level, module, source, text, line);
    fprintf(stderr, "%s\n", line);
}

void cmd_log_print(enum note_level level, const char *module, const char *source, const char *text)
{
    struct timespec now = {0};
    char when[LOG_TIME_SIZE];
    clock_gettime(CLOCK_REALTIME, &now);
    log_time_text(now.tv_sec > 0 ? (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 : 0, when);
    print(when, level, module, source, text);
}

void cmd_log_print_simulated(int64_t now_us, enum note_level level, const char *module,
                             const char *source, const char *text)
{
    char when[LOG_TIME_SIZE];
    snprintf(when, sizeof when, "%" PRId64 ".%06" PRId64, now_us / 1000000, now_us % 1000000);
    print(when, level, module, source, text);
}
