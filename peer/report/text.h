/* peer/report/text.h -- a text that grows, and the ways to put strangers' words into it.
 *
 *   report_text_put     as it is: our own words
 *   report_text_html    between tags or in an attribute in double quotes
 *   report_text_csv     a field of RFC 4180
 *
 * Names and values come out of directories that anybody may have made. What is no valid UTF-8, and
 * control characters, become '?' in HTML. Without memory a text is `broken` and takes no more:
 * callers look once, at the end.
 */
#ifndef PEER_REPORT_TEXT_H
#define PEER_REPORT_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct report_text
{
    char *bytes; /* Ends with NUL; NULL while it is empty. */
    size_t n, cap;
    bool broken; /* There was no memory for all of it. */
};

/* Zeros are an empty text. */
void report_text_close(struct report_text *t);

void report_text_bytes(struct report_text *t, const void *bytes, size_t n);
void report_text_put(struct report_text *t, const char *text);
__attribute__((format(printf, 2, 3))) void report_text_print(struct report_text *t,
                                                             const char *format, ...);

void report_text_html(struct report_text *t, const char *text);

/* In double quotes where it has a comma, a quote or an end of line. A field that a spreadsheet
 * would take for a formula (=, +, -, @, tab) gets a ' in front, unless it is a number. */
void report_text_csv(struct report_text *t, const char *text);

/* The number as few digits as tell its double, 17 at most; "" where it is not finite. */
void report_text_number(struct report_text *t, double x);

#endif
