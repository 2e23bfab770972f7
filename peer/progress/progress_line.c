/* peer/progress/progress_line.c -- joins progress figures into one line, as many as fit the
 * terminal. */
#include "peer/progress/progress_line.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum {
    /* BETWEEN: number of spaces between two figures. BRACKETS: number of characters around the
     * bar. */
    BETWEEN = 2,
    BRACKETS = 2
};

void gauge_add(struct progress_line *l, const char *full, const char *brief)
{
    assert(l->n < GAUGE_FIGURES);
    snprintf(l->full[l->n], GAUGE_FIGURE, "%s", full);
    snprintf(l->brief[l->n], GAUGE_FIGURE, "%s", brief);
    l->n++;
}

static const char *text_of(const struct progress_line *l, bool brief, uint32_t i)
{
    return brief ? l->brief[i] : l->full[i];
}

/* Joins the first `n` figures with two spaces between them. Empty figures are skipped. */
static void join(const struct progress_line *l, bool brief, uint32_t n, char out[GAUGE_LINE])
{
    size_t at = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < n; i++) {
        const char *text = text_of(l, brief, i);
        if (text[0] != '\0')
            at += (size_t)snprintf(out + at, GAUGE_LINE - at, "%s%s", at > 0 ? "  " : "", text);
    }
}

void gauge_plain(const struct progress_line *l, char out[GAUGE_LINE])
{
    join(l, false, l->n, out);
}

static void fill_bar(char *bar, uint32_t n, double share)
{
    uint32_t full = share >= 1 ? n : share > 0 ? (uint32_t)(share * n) : 0;
    for (uint32_t i = 0; i < n; i++)
        bar[i] = i < full ? '=' : i == full ? '>' : ' ';
    bar[n] = '\0';
}

void gauge_draw(const struct progress_line *l, double share, uint32_t columns, char out[GAUGE_LINE])
{
    char bar[GAUGE_BAR_MOST + 1], figures[GAUGE_LINE];
    size_t room = columns > 1 ? columns - 1 : 0, around = BRACKETS + BETWEEN;
    uint32_t n = l->n, least = 1;
    while (least < n && l->brief[least - 1][0] == '\0')
        least++;
    join(l, false, n, figures);
    bool brief = strlen(figures) + around + GAUGE_BAR_LEAST > room;
    if (brief)
        join(l, brief, n, figures);
    while (n > least && strlen(figures) + around + GAUGE_BAR_LEAST > room)
        join(l, brief, --n, figures);
    size_t taken = strlen(figures) + around;
    /* The first figure and the shortest bar do not fit into one line, so the bar is left out and
     * the text is truncated. */
    if (taken + GAUGE_BAR_LEAST > room) {
        snprintf(out, GAUGE_LINE, "%.*s", (int)room, figures);
        return;
    }
    size_t inside = room - taken < GAUGE_BAR_MOST ? room - taken : GAUGE_BAR_MOST;
    fill_bar(bar, (uint32_t)inside, share);
    snprintf(out, GAUGE_LINE, "[%s]  %.*s", bar, GAUGE_LINE - GAUGE_BAR_MOST - 5, figures);
}
