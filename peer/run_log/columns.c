/* peer/run_log/columns.c -- converts the names of a table's columns to JSON and back. */
#include "peer/run_log/columns.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

char *diary_columns_text(const struct schema *s, const char **label)
{
    *label = NULL;
    if (s == NULL || s->names.n == 0)
        return NULL;
    json_t *array = json_array();
    bool whole = array != NULL;
    for (uint32_t i = 0; i < s->n && whole; i++)
        whole = json_array_append_new(array, json_string(schema_name(&s->names, i))) == 0;
    char *text = whole ? json_dumps(array, JSON_COMPACT) : NULL;
    json_decref(array);
    if (text != NULL && strlen(text) > DIARY_COLUMNS_MAX) {
        free(text);
        text = NULL;
    }
    if (text != NULL && s->has_label)
        *label = schema_name(&s->names, s->n);
    return text;
}

/* Reads the column names of a JSON array, and the label column's name, into `l`. Returns 0,
 * -ENOMEM, or -EINVAL if a name is not a string or occurs twice. */
static int read_array(const json_t *array, const char *label, struct schema_names *l)
{
    bool twice = false;
    size_t column[2], n = json_array_size(array);
    int err = schema_names_open(l, n + (label != NULL));
    for (size_t i = 0; i < n && err == 0; i++) {
        const json_t *name = json_array_get(array, i);
        err = json_is_string(name) ? schema_names_add(l, (const uint8_t *)json_string_value(name),
                                                      json_string_length(name))
                                   : -EINVAL;
    }
    if (err == 0 && label != NULL)
        err = schema_names_add(l, (const uint8_t *)label, strlen(label));
    if (err == 0)
        err = schema_names_twice(l, &twice, column);
    return twice ? -EINVAL : err;
}

int diary_columns_read(const struct safetensors_info *info, struct schema *s)
{
    const char *text = safetensors_value(info, "columns");
    *s = (struct schema){0};
    if (text == NULL)
        return 0;
    json_t *array = json_loads(text, 0, NULL);
    if (!json_is_array(array) || json_array_size(array) == 0) {
        json_decref(array);
        return -EINVAL;
    }
    struct schema_names names;
    const char *label = safetensors_value(info, "label");
    int err = read_array(array, label, &names);
    if (err == 0)
        err = schema_adopt(s, &names, label != NULL ? names.n - 1 : SIZE_MAX);
    schema_names_close(&names);
    json_decref(array);
    return err;
}
