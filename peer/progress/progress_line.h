/* peer/progress/progress_line.h -- one line of progress figures, for a log or for a terminal with a
 * progress bar.
 *
 *   training  42 %  round 1680/4000  152 rounds/s  11 s, 15 s left  ...       gauge_plain
 *   [=========>          ]  1680/4000  15 s left  loss 0.412                  gauge_draw
 *
 * Each figure has a full text and a brief text. The most important figure comes first. If the full
 * texts are too long for the terminal, all figures become brief. If they are still too long, the
 * last ones are left out. The bar takes the rest of the line.
 */
#ifndef PEER_PROGRESS_PROGRESS_LINE_H
#define PEER_PROGRESS_PROGRESS_LINE_H

#include <stddef.h>
#include <stdint.h>

enum {
    /* Largest number of figures in a line. */
    GAUGE_FIGURES = 12,
    GAUGE_FIGURE = 160, /* Size of one figure's text, in bytes, with the NUL. */
    GAUGE_LINE = 2048,  /* Size of a line, in bytes, with the NUL. */
    /* Shortest and longest bar, in characters between the brackets. */
    GAUGE_BAR_LEAST = 10,
    GAUGE_BAR_MOST = 30
};

/* A line of `n` figures. Set all bytes to zero before the first gauge_add(). */
struct progress_line
{
    /* Number of figures, and the full and the brief text of each figure. */
    uint32_t n;
    char full[GAUGE_FIGURES][GAUGE_FIGURE], brief[GAUGE_FIGURES][GAUGE_FIGURE];
};

/* Appends a figure with its full and its brief text. An empty brief text leaves the figure out of
 * brief lines. Longer texts are cut off. At most GAUGE_FIGURES figures fit (asserted). */
void gauge_add(struct progress_line *l, const char *full, const char *brief);

/* Writes all figures in full, with two spaces between them. */
void gauge_plain(const struct progress_line *l, char out[GAUGE_LINE]);

/* Writes a progress bar and figures in fewer than `columns` characters. `share`: part of the bar
 * that is filled, 0 to 1. */
void gauge_draw(const struct progress_line *l, double share, uint32_t columns,
                char out[GAUGE_LINE]);

#endif
