/* peer/cmd/fields.c -- `hearsay fields`: lists the table of figures (peer/node/figure.h).
 * deploy/man makes the tables of peer/docs/json.md and the fields of the Python package from the
 * JSON. */
#include "peer/cmd/cmd.h"

#include "peer/node/figure.h"

#include <jansson.h>
#include <stdio.h>

const struct option_row cmd_fields_rows[] = {
    CMD_ROW_JSON,
    {.name = NULL},
};

static const char *const output_name[FIGURE_OUTPUTS] = {[FIGURE_METRICS] = "metrics.jsonl",
                                                        [FIGURE_SUMMARY] = "summary.json",
                                                        [FIGURE_SIM] = "sim",
                                                        [FIGURE_LOCAL] = "local",
                                                        [FIGURE_STATUS_JSON] = "/status.json",
                                                        [FIGURE_STATUS] = "status",
                                                        [FIGURE_PROMETHEUS] = "/metrics",
                                                        [FIGURE_PYTHON] = "Python"};

/* Returns the name of the type of a figure's values, as in peer/docs/json.md. */
static const char *kind_of(const struct figure *f)
{
    switch (f->kind) {
    case FIGURE_OTHER:
        return "other";
    case FIGURE_U64:
    case FIGURE_U32:
        return "whole";
    case FIGURE_BOOL:
        return "bool";
    case FIGURE_REAL:
        return "real";
    case FIGURE_TEXT:
    case FIGURE_CHARS:
    case FIGURE_PHASE:
        break;
    }
    return "text";
}

static json_t *object_of(const struct figure *f)
{
    json_t *places = json_object();
    for (int i = 0; i < FIGURE_OUTPUTS; i++)
        if (f->place[i] > 0)
            json_object_set_new(places, output_name[i], json_integer(f->place[i]));
    json_t *j = json_pack(
        "{s:s, s:s?, s:s, s:s, s:s, s:s, s:s?, s:s?, s:s, s:o}", "name", f->name, "unit", f->unit,
        "kind", kind_of(f), "type", f->type == FIGURE_COUNTER ? "counter" : "gauge", "help",
        f->help, "about", f->about != NULL ? f->about : f->help, "prometheus", f->metric, "label",
        f->label, "python", f->python != NULL ? f->python : f->name, "places", places);
    return j;
}

static void print_json(void)
{
    json_t *all = json_array();
    for (const struct figure *f = figure_all; f->name != NULL; f++)
        json_array_append_new(all, object_of(f));
    json_t *j = json_pack("{s:o}", "fields", all);
    json_dumpf(j, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(j);
}

static void print_table(void)
{
    printf("%-24s %-12s %s\n", "field", "unit", "meaning, and name in Prometheus");
    for (const struct figure *f = figure_all; f->name != NULL; f++) {
        printf("%-24s %-12s %s", f->name, f->unit != NULL ? f->unit : "-", f->help);
        if (f->metric != NULL)
            printf(" (hearsay_%s%s%s%s)", f->metric, f->label != NULL ? "{" : "",
                   f->label != NULL ? f->label : "", f->label != NULL ? "}" : "");
        putchar('\n');
    }
}

int cmd_fields(const struct options *o)
{
    if (options_flag(o, "json"))
        print_json();
    else
        print_table();
    return cmd_finish(o);
}
