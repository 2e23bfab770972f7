/* peer/report/json.h -- values of JSON objects that strangers wrote: a number, a word, or a refusal.
 *
 * Each reader leaves a sentence that names the field, what was found, and what was expected.
 */
#ifndef PEER_REPORT_JSON_H
#define PEER_REPORT_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum { REPORT_JSON_WHY = 160 }; /* Bytes of a sentence. */

/* What a number may be. */
enum report_kind {
    REPORT_REAL,  /* Any. */
    REPORT_SIZE,  /* From 0 on. */
    REPORT_WHOLE, /* Whole, from 0 to 2^53. */
    REPORT_TRUTH  /* true is 1, false is 0. */
};

/* The number in `key`: NaN where it is null or not there. 0 or -EINVAL. */
__attribute__((warn_unused_result)) int report_json_number(const json_t *object, const char *key,
                                                           enum report_kind kind, double *x,
                                                           char why[REPORT_JSON_WHY]);

/* The text in `key`, of cap bytes at most with its NUL: "" where it is null or not there. 0 or
 * -EINVAL. */
__attribute__((warn_unused_result)) int report_json_text(const json_t *object, const char *key,
                                                         char *text, size_t cap,
                                                         char why[REPORT_JSON_WHY]);

/* An object from n bytes; NULL with a sentence where they are none. */
json_t *report_json_object(const char *bytes, size_t n, char why[REPORT_JSON_WHY]);

#endif
