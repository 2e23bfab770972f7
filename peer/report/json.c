/* peer/report/json.c -- values of JSON objects that strangers wrote. */
#include "peer/report/json.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const char *type_name(const json_t *v)
{
    switch (json_typeof(v)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "a list";
    case JSON_STRING:
        return "a text";
    case JSON_INTEGER:
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "a truth value";
    case JSON_NULL:
        return "null";
    }
    return "something else";
}

static const char *const expected[] = {[REPORT_REAL] = "a number or null",
                                       [REPORT_SIZE] = "a number from 0 on, or null",
                                       [REPORT_WHOLE] = "a whole number from 0 to 2^53, or null",
                                       [REPORT_TRUTH] = "true, false or null"};

static bool suits(enum report_kind kind, const json_t *v, double x)
{
    switch (kind) {
    case REPORT_REAL:
        return isfinite(x);
    case REPORT_SIZE:
        return isfinite(x) && x >= 0;
    case REPORT_WHOLE:
        return json_is_integer(v) && json_integer_value(v) >= 0
               && json_integer_value(v) <= INT64_C(1) << 53;
    case REPORT_TRUTH:
        return false;
    }
    return false;
}

int report_json_number(const json_t *object, const char *key, enum report_kind kind, double *x,
                       char why[REPORT_JSON_WHY])
{
    const json_t *v = json_object_get(object, key);
    *x = (double)NAN;
    if (v == NULL || json_is_null(v))
        return 0;
    if (kind == REPORT_TRUTH && json_is_boolean(v)) {
        *x = json_is_true(v);
        return 0;
    }
    if (json_is_number(v) && suits(kind, v, json_number_value(v))) {
        *x = json_number_value(v);
        return 0;
    }
    if (json_is_number(v))
        snprintf(why, REPORT_JSON_WHY, "%s: found %.9g, expected %s", key, json_number_value(v),
                 expected[kind]);
    else
        snprintf(why, REPORT_JSON_WHY, "%s: found %s, expected %s", key, type_name(v),
                 expected[kind]);
    return -EINVAL;
}

int report_json_text(const json_t *object, const char *key, char *text, size_t cap,
                     char why[REPORT_JSON_WHY])
{
    const json_t *v = json_object_get(object, key);
    text[0] = '\0';
    if (v == NULL || json_is_null(v))
        return 0;
    if (!json_is_string(v)) {
        snprintf(why, REPORT_JSON_WHY, "%s: found %s, expected a text or null", key, type_name(v));
        return -EINVAL;
    }
    size_t n = json_string_length(v);
    if (n >= cap) {
        snprintf(why, REPORT_JSON_WHY, "%s: found a text of %zu bytes, expected %zu at most", key,
                 n, cap - 1);
        return -EINVAL;
    }
    memcpy(text, json_string_value(v), n + 1);
    return 0;
}

json_t *report_json_object(const char *bytes, size_t n, char why[REPORT_JSON_WHY])
{
    json_error_t e;
    json_t *j = json_loadb(bytes, n, JSON_REJECT_DUPLICATES, &e);
    if (j == NULL) {
        snprintf(why, REPORT_JSON_WHY, "found no JSON (at byte %d: %.100s), expected an object",
                 e.position, e.text);
        return NULL;
    }
    if (json_is_object(j))
        return j;
    snprintf(why, REPORT_JSON_WHY, "found %s, expected an object", type_name(j));
    json_decref(j);
    return NULL;
}
