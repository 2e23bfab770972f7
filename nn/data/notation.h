/* nn/data/notation.h -- numbers of tables with a thousands separator, a decimal comma or a unit.
 *
 *   1,957.25   1 957,25   1'957.25   1_957   0,134   1,5e3   (12.5)   $19.5   EUR 3   3.1 %   0x1f
 *
 * A notation is a decimal mark together with a thousands separator. One cell can often be read in
 * several notations: "1,234" is 1234 or 1.234. A column is read in a notation in which all of its
 * cells can be read. Sets of notations are bit masks:
 *
 *   bits         decimal mark   thousands separator of each bit, from the lowest
 *   0x00f        point          comma, space, apostrophe, underscore
 *   0x0f0        comma          point, space, apostrophe, underscore
 *   0x100        none           none: hexadecimal, after 0x
 *
 * No-break, thin and figure spaces count as spaces, U+2019 as an apostrophe, U+2212 and U+2013 as
 * minus signs. Parentheses around a number mean minus. A unit may precede or follow the number: a
 * sign (%, $), a currency (EUR) or a word of a list ("kg"). A unit of one letter needs a space
 * before it.
 */
#ifndef NN_DATA_NOTATION_H
#define NN_DATA_NOTATION_H

#include "nn/math/number.h"

enum {
    NOTATION_POINT = 0x00f,
    NOTATION_COMMA = 0x0f0,
    NOTATION_HEX = 0x100,
    NOTATION_ALL = 0x1ff,
    NOTATION_UNIT_MAX = 12 /* Size of the longest unit, in bytes with the NUL. */
};

enum notation_look {
    NOTATION_NONE, /* The text is a word. */
    /* The text has only digits, separators and signs, but is no number in any notation. */
    NOTATION_BROKEN,
    NOTATION_NUMBER /* The text is a number in at least one notation. */
};

/* A parsed number. */
struct notation_number
{
    uint32_t notations; /* Notations in which the number can be read, as bits. */
    /* minus: the number is negative. point, comma: the number contains a point or a comma. */
    bool minus, point, comma;
    /* The digits of the number, without sign and unit, with all separators in ASCII. */
    char digits[NUMBER_MAX + 1];
    char unit[NOTATION_UNIT_MAX]; /* Unit of the number. "": none. */
};

/* Parses the text p[0..n) of a cell as a number. All fields of *w are set only if the result is
 * NOTATION_NUMBER. */
enum notation_look notation_look(const uint8_t *p, size_t n, struct notation_number *w);

/* Returns the value of the number w, read in one of the notations in the bit mask `notations`. All
 * bits of the mask must be set in w->notations and stand for the same decimal mark. */
double notation_value(const struct notation_number *w, uint32_t notations);

#endif
