/* peer/gauge/line.h -- one line of figures, for a log or behind a bar in so many columns.
 *
 *   training  42 %  round 1680/4000  152 rounds/s  11 s, 15 s left  loss 0.4123 ...       gauge_plain
 *   [=========>          ]  1680/4000  15 s left  loss 0.412  drift 1.2e-02  gauge_draw
 *
 * A figure has a full text and a brief one, and those that matter most come first: where the columns
 * do not suffice all are brief, and then the last ones are left out. The bar takes what is left.
 */
#ifndef PEER_GAUGE_LINE_H
#define PEER_GAUGE_LINE_H

#include <stddef.h>
#include <stdint.h>

enum {
    GAUGE_FIGURES = 12,
    GAUGE_FIGURE = 160, /* Bytes of one, with its NUL; */
    GAUGE_LINE = 2048,  /* and of a line. */
    GAUGE_BAR_LEAST = 10,
    GAUGE_BAR_MOST = 30
};

/* Begin with zeros. */
struct gauge_line
{
    uint32_t n;
    char full[GAUGE_FIGURES][GAUGE_FIGURE], brief[GAUGE_FIGURES][GAUGE_FIGURE];
};

/* Add a figure behind the others: its full text, and the brief one ("": it is left out there). What
 * does not fit is cut off; there is room for GAUGE_FIGURES. */
void gauge_add(struct gauge_line *l, const char *full, const char *brief);

/* All of it in full, two spaces between figures. */
void gauge_plain(const struct gauge_line *l, char out[GAUGE_LINE]);

/* Fewer than `columns` characters: a bar of which so large a share is full (0 to 1), and figures. */
void gauge_draw(const struct gauge_line *l, double share, uint32_t columns, char out[GAUGE_LINE]);

#endif
