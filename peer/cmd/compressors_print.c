/* peer/cmd/compressors_print.c -- prints the tables and the JSON of `hearsay compressors`. */
#include "nn/math/number.h"
#include "peer/cmd/compressors.h"
#include "peer/uv/metrics.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    TEXT = 40,
    MARGIN = 2 /* Number of spaces between two columns of a printed table. */
};

/* ---- Text forms of numbers ---- */

/* Writes an integer with commas between thousands: 1000000 becomes "1,000,000". */
static const char *grouped(char out[TEXT], uint64_t n)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%" PRIu64, n);
    char *at = out;
    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            *at++ = ',';
        *at++ = digits[i];
    }
    *at = '\0';
    return out;
}

/* Writes a rate in bits per second, such as "64 Gbit/s". For a rate of 0 or less, writes
 * "never". */
static const char *rate_text(char out[TEXT], double rate)
{
    static const char *const unit[] = {"bit", "kbit", "Mbit", "Gbit", "Tbit", "Pbit"};
    size_t i = 0;
    if (!(rate > 0))
        return strcpy(out, "never");
    for (; rate >= 999.5 && i + 1 < sizeof unit / sizeof *unit; i++)
        rate /= 1000;
    snprintf(out, TEXT, "%.3g %s/s", rate, unit[i]);
    return out;
}

static const char *seconds_text(char out[TEXT], double s)
{
    if (s >= 0.9995)
        snprintf(out, TEXT, "%.3g s", s);
    else if (s >= 0.9995e-3)
        snprintf(out, TEXT, "%.3g ms", 1e3 * s);
    else
        snprintf(out, TEXT, "%.3g us", 1e6 * s);
    return out;
}

/* Returns the compression ratio: the bytes of the vector as float32, divided by the bytes of the
 * message. */
static double ratio(const struct cmd_compressors *t, const struct cmd_compressors_row *r)
{
    return 4.0 * (double)t->n / (double)r->bytes;
}

/* Returns the speed of an operation that takes `seconds` for the vector, in Gelem/s (billions of
 * elements per second). */
static double speed(const struct cmd_compressors *t, double seconds)
{
    return 1e-9 * (double)t->n / seconds;
}

/* ---- Printing the table as text ---- */

/* Returns the width of the column of specs in characters: the longest spec and a margin. */
static int spec_width(const struct cmd_compressors *t)
{
    size_t width = strlen("compressor");
    for (size_t i = 0; i < t->n_rows; i++) {
        size_t n = strlen(t->rows[i].spec);
        width = n > width ? n : width;
    }
    return (int)width + MARGIN;
}

static void print_head(const struct cmd_compressors *t)
{
    char a[TEXT], b[TEXT], c[TEXT];
    if (t->model != NULL)
        printf("%s: %s trained parameters in %zu tensor%s", t->model, grouped(a, t->n),
               t->n_segments, number_plural(t->n_segments));
    else
        printf("%s parameters, one tensor of %zu x %zu", grouped(a, t->n), t->segments->rows,
               t->segments->cols);
    printf("; standard normal values, seed %" PRIu64 "\n", t->seed);
    if (!t->measured)
        return;
    printf("one thread: axpy %.2f, memcpy %.2f Gelem/s; messages to %" PRIu32 " neighbour%s\n",
           speed(t, t->axpy_s), speed(t, t->memcpy_s), t->neighbours, number_plural(t->neighbours));
    if (t->uplink > 0)
        printf("at %s, sending the floats uncompressed takes %s\n", rate_text(b, t->uplink),
               seconds_text(c, cmd_compressors_without(t)));
}

/* Prints the class, message bytes and error bound of each codec. These values do not depend on the
 * machine. */
static void print_classes(const struct cmd_compressors *t)
{
    char a[TEXT];
    int width = spec_width(t);
    printf("\n%-*s%-13s%13s%11s  %s\n", width, "compressor", "class", "bytes", "less by", "bound");
    for (size_t i = 0; i < t->n_rows; i++) {
        const struct cmd_compressors_row *r = &t->rows[i];
        printf("%-*s%-13s%13s%10.1fx  %s\n", width, r->spec, r->info ? r->info->class : "-",
               grouped(a, r->bytes), ratio(t, r), r->info ? r->info->bound : "-");
    }
}

/* Prints what a codec does, and at which position of a chain of codecs it can stand. */
static void print_info(const struct compress_info *info)
{
    static const struct
    {
        const char *role, *use;
    } roles[] = {{"values", "used alone or after a selector, as in topk:0.01+"},
                 {"selector", "used alone or before a codec for the values, as in "},
                 {"body", "used alone: "}};
    printf("\n%s\n    %s", info->form, info->about);
    if (strcmp(info->source, "-") != 0)
        printf(" (%s)", info->source);
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (strcmp(info->role, roles[i].role) == 0)
            printf("\n    %s%s%s\n", roles[i].use, info->name, i == 1 ? "+fp16" : "");
    if (info->unbiased != NULL)
        printf("    unbiased %s%s\n", info->unbiased[0] ? "with " : "as it is", info->unbiased);
}

/* Prints a description of each codec that occurs in any row of the table. */
static void print_infos(const struct cmd_compressors *t)
{
    for (size_t i = 0; i < t->n_infos; i++) {
        bool used = false;
        for (size_t k = 0; k < t->n_rows && !used; k++)
            used = cmd_compressors_names(t->rows[k].spec, t->infos[i].name);
        if (used)
            print_info(&t->infos[i]);
    }
    puts("\n"
         "C(v): the vector that a message for v adds at the receiver; delta: |v - C(v)|^2 <= (1 "
         "- delta) |v|^2.\n"
         "contraction: each message has delta >= 0; expected: delta >= 0 on average over the "
         "random choices;\n"
         "unbiased: C(v) is v on average; neither: no guarantee, for comparison with published "
         "results.\n"
         "\n"
         "--compress auto, the default of a run, chooses one of these codecs by the measured "
         "drift.");
}

static void print_measured(const struct cmd_compressors *t)
{
    char a[TEXT], b[TEXT], c[TEXT];
    int width = spec_width(t);
    bool at = t->uplink > 0;
    printf("\n%*s%13s%11s%10s%9s%6s%8s%9s%6s%8s%16s%s\n", width, "", "", "", "", "encode", "of",
           "of", "apply", "of", "of", "pays below", at ? "    there" : "");
    printf("%-*s%13s%11s%10s%9s%6s%8s%9s%6s%8s%16s%s\n", width, "compressor", "bytes", "less by",
           "delta", "Gelem/s", "axpy", "memcpy", "Gelem/s", "axpy", "memcpy", "an uplink of",
           at ? "    it takes  pays" : "");
    for (size_t i = 0; i < t->n_rows; i++) {
        const struct cmd_compressors_row *r = &t->rows[i];
        printf("%-*s%13s%10.1fx%10.4f%9.3f%6.2f%8.2f%9.3f%6.2f%8.2f%16s", width, r->spec,
               grouped(a, r->bytes), ratio(t, r), r->delta, speed(t, r->encode_s),
               t->axpy_s / r->encode_s, t->memcpy_s / r->encode_s, speed(t, r->apply_s),
               t->axpy_s / r->apply_s, t->memcpy_s / r->apply_s,
               rate_text(b, cmd_compressors_pays_below(t, r)));
        if (at)
            printf("%12s  %s", seconds_text(c, cmd_compressors_with(t, r)),
                   cmd_compressors_with(t, r) < cmd_compressors_without(t) ? "yes" : "no");
        putchar('\n');
    }
}

void cmd_compressors_print(const struct cmd_compressors *t)
{
    print_head(t);
    if (t->measured) {
        print_measured(t);
        return;
    }
    print_classes(t);
    print_infos(t);
}

/* ---- Printing the table as JSON ---- */

static void set_text(json_t *j, const char *key, const char *text)
{
    json_object_set_new(j, key, text != NULL ? json_string(text) : json_null());
}

static void set_number(json_t *j, const char *key, double x)
{
    json_object_set_new(j, key, uv_metrics_number(x));
}

static void set_whole(json_t *j, const char *key, uint64_t n)
{
    json_object_set_new(j, key, json_integer((json_int_t)n));
}

/* Returns a JSON array with the names of the codecs that occur in the spec. */
static json_t *codecs_of(const struct cmd_compressors *t, const char *spec)
{
    json_t *names = json_array();
    for (size_t i = 0; i < t->n_infos; i++)
        if (cmd_compressors_names(spec, t->infos[i].name))
            json_array_append_new(names, json_string(t->infos[i].name));
    return names;
}

/* Sets those JSON keys of a table row that come from the catalogue of codecs. If the codec has no
 * catalogue entry, these keys are null, so that all rows have the same keys. */
static void set_info(json_t *j, const struct compress_info *info)
{
    set_text(j, "name", info ? info->name : NULL);
    set_text(j, "form", info ? info->form : NULL);
    set_text(j, "role", info ? info->role : NULL);
    set_text(j, "class", info ? info->class : NULL);
    set_text(j, "bound", info ? info->bound : NULL);
    set_text(j, "unbiased", info ? info->unbiased : NULL);
    set_text(j, "about", info ? info->about : NULL);
    set_text(j, "source", info ? info->source : NULL);
}

static void set_measured(json_t *j, const struct cmd_compressors *t,
                         const struct cmd_compressors_row *r)
{
    double below = cmd_compressors_pays_below(t, r);
    set_number(j, "delta", r->delta);
    set_number(j, "encode_s", r->encode_s);
    set_number(j, "validate_s", r->validate_s);
    set_number(j, "apply_s", r->apply_s);
    set_number(j, "encode_gelem_per_s", speed(t, r->encode_s));
    set_number(j, "encode_of_axpy", t->axpy_s / r->encode_s);
    set_number(j, "encode_of_memcpy", t->memcpy_s / r->encode_s);
    set_number(j, "apply_gelem_per_s", speed(t, r->apply_s));
    set_number(j, "apply_of_axpy", t->axpy_s / r->apply_s);
    set_number(j, "apply_of_memcpy", t->memcpy_s / r->apply_s);
    set_number(j, "pays_below_bit_per_s", below > 0 ? below : NAN);
    if (!(t->uplink > 0))
        return;
    set_number(j, "with_s", cmd_compressors_with(t, r));
    json_object_set_new(j, "pays",
                        json_boolean(cmd_compressors_with(t, r) < cmd_compressors_without(t)));
}

static json_t *row_object(const struct cmd_compressors *t, const struct cmd_compressors_row *r)
{
    json_t *j = json_object();
    set_text(j, "spec", r->spec);
    json_object_set_new(j, "codecs", codecs_of(t, r->spec));
    set_info(j, r->info);
    set_whole(j, "bytes", r->bytes);
    set_number(j, "ratio", ratio(t, r));
    if (t->measured)
        set_measured(j, t, r);
    return j;
}

int cmd_compressors_print_json(const struct cmd_compressors *t)
{
    json_t *j = json_object(), *rows = json_array();
    for (size_t i = 0; i < t->n_rows; i++)
        json_array_append_new(rows, row_object(t, &t->rows[i]));
    set_whole(j, "n_params", t->n);
    set_text(j, "model", t->model);
    set_whole(j, "n_tensors", t->n_segments);
    if (t->model == NULL) {
        set_whole(j, "rows", t->segments->rows);
        set_whole(j, "cols", t->segments->cols);
    }
    set_whole(j, "seed", t->seed);
    if (t->measured) {
        set_number(j, "axpy_gelem_per_s", speed(t, t->axpy_s));
        set_number(j, "memcpy_gelem_per_s", speed(t, t->memcpy_s));
        set_whole(j, "neighbours", t->neighbours);
    }
    if (t->uplink > 0) {
        set_number(j, "uplink_bit_per_s", t->uplink);
        set_number(j, "without_s", cmd_compressors_without(t));
    }
    json_object_set_new(j, "compressors", rows);
    int err = j != NULL ? json_dumpf(j, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(12)) : -1;
    json_decref(j);
    putchar('\n');
    return err;
}
