/* peer/cmd/progress_format.c -- formats the figures of the progress display as text. */
#include "peer/cmd/progress.h"

#include <math.h>
#include <string.h>

/* Numbers of at least this absolute value are written with four significant digits, as "1.173e+19".
 * Smaller numbers are written in the format that the caller gives. */
#define LARGE_NUMBER 1e6

const char *cmd_progress_percent(char out[CMD_PROGRESS_TEXT], double x)
{
    return cmd_progress_number(out, "%.2f %%", 100 * x);
}

const char *cmd_progress_bytes(char out[CMD_PROGRESS_TEXT], uint64_t n)
{
    static const char *const unit[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    double x = (double)n;
    uint32_t i = 0;
    for (; x >= 1000 && i < 5; i++)
        x /= 1000;
    snprintf(out, CMD_PROGRESS_TEXT, "%.*f %s", i == 0 ? 0 : 2, x, unit[i]);
    return out;
}

const char *cmd_progress_number(char out[CMD_PROGRESS_TEXT], const char *format, double x)
{
    if (!isfinite(x))
        return strcpy(out, "-");
    snprintf(out, CMD_PROGRESS_TEXT, fabs(x) < LARGE_NUMBER ? format : "%.4g", x);
    return out;
}

const char *cmd_progress_drift(char out[CMD_PROGRESS_TEXT], const char *format, double x)
{
    return isfinite(x) ? cmd_progress_number(out, format, x) : strcpy(out, "unknown");
}

const char *cmd_progress_phase(const char *phase, uint64_t round, uint64_t rounds)
{
    return strcmp(phase, "left") == 0 && rounds > 0 && round >= rounds ? "finished" : phase;
}

const char *cmd_progress_rounds(char out[CMD_PROGRESS_TEXT], uint64_t round, uint64_t rounds)
{
    if (rounds == 0)
        return strcpy(out, "-");
    snprintf(out, CMD_PROGRESS_TEXT, "%llu/%llu", (unsigned long long)round,
             (unsigned long long)rounds);
    return out;
}

/* Returns true if a consensus distance is not worth showing: it is not known, or it is the distance
 * 0 before the first round, when all peers still have the same model. */
static bool drift_has_no_information(double x, uint64_t round)
{
    return !isfinite(x) || (x == 0 && round == 0);
}

const char *cmd_progress_drift_at(char out[CMD_PROGRESS_TEXT], double x, uint64_t round)
{
    if (drift_has_no_information(x, round))
        return strcpy(out, "unknown");
    snprintf(out, CMD_PROGRESS_TEXT, "%.2e @%llu", x, (unsigned long long)round);
    return out;
}

const char *cmd_progress_drift_aged(char out[CMD_PROGRESS_TEXT], double x, uint64_t round,
                                    uint64_t age)
{
    if (drift_has_no_information(x, round))
        return strcpy(out, "unknown");
    snprintf(out, CMD_PROGRESS_TEXT, "%.2e @%llu, %llu ago", x, (unsigned long long)round,
             (unsigned long long)age);
    return out;
}

/* ---- Codec chosen by --compress auto ---- */

/* The list of codecs is short (one entry per codec level), so a linear search is enough. */
void cmd_progress_codecs_add(struct cmd_progress_codecs *r, const char *rung, double excess)
{
    uint32_t i = 0;
    if (rung == NULL)
        return;
    while (i < r->n_specs && strcmp(r->spec[i], rung) != 0)
        i++;
    /* r->spec has room for every codec level, so it is full only if `rung` is not a codec level. */
    if (i == CMD_PROGRESS_LEVELS)
        return;
    r->spec[i] = rung;
    r->n_specs += i == r->n_specs;
    r->count[i]++;
    r->n_peers++;
    r->n_looked += isfinite(excess) ? 1 : 0;
}

void cmd_progress_codecs_print(const struct cmd_progress_codecs *r, FILE *out)
{
    if (r->n_peers == 0)
        return;
    fputs("codec of the last rounds: ", out);
    for (uint32_t i = 0; i < r->n_specs; i++) {
        fprintf(out, "%s%s", i > 0 ? ", " : "", r->spec[i]);
        if (r->n_specs > 1)
            fprintf(out, " (%u of %u peers)", (unsigned)r->count[i], (unsigned)r->n_peers);
    }
    fprintf(out, ", chosen by --compress auto%s\n",
            r->by_link ? ", which also used the bandwidth of the link" : "");
    if (r->n_looked == 0 && !r->by_link)
        fputs("the consensus distance was not known during training (an estimate takes a window of "
              "rounds, and is rare for small models and without --policy sync), so --compress auto "
              "kept its first codec\n",
              out);
}
