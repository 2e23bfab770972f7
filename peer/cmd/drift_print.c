/* peer/cmd/drift_print.c -- prints the results of `hearsay drift` as text or JSON.
 *
 * The output has no escape sequences, so it is the same on a terminal and in a pipe.
 */
#include "nn/math/number.h"
#include "peer/cmd/drift.h"
#include "peer/cmd/progress.h"
#include "peer/uv/metrics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Text forms of figures ---- */

static const char *of_round(char out[CMD_PROGRESS_TEXT], bool known, uint64_t round)
{
    out[0] = '\0';
    if (known)
        snprintf(out, CMD_PROGRESS_TEXT, "of round %llu", (unsigned long long)round);
    return out;
}

/* Writes the round of a peer's own estimate and the number of rounds since then, so that the user
 * sees how old the estimate is. */
static const char *when_of(char out[CMD_PROGRESS_TEXT], const struct cmd_observed *m)
{
    const struct wire_status *s = &m->status;
    of_round(out, isfinite(s->drift), s->drift_round);
    size_t at = strlen(out);
    if (at > 0)
        snprintf(out + at, CMD_PROGRESS_TEXT - at, ", %llu ago", (unsigned long long)s->drift_age);
    return out;
}

/* Writes the round or the rounds of the compared models. In the consensus phase the round counter
 * does not advance, so the text names the phase instead. */
static const char *moment_of(char out[CMD_PROGRESS_TEXT], const struct drift_compare *l)
{
    if (l->files)
        return strcpy(out, "");
    if (l->first < l->round)
        snprintf(out, CMD_PROGRESS_TEXT, "of rounds %u to %u", (uint32_t)l->first,
                 (uint32_t)l->round);
    if (l->first < l->round)
        return out;
    return l->last_phase && !l->exact ? strcpy(out, "of the consensus phase")
                                      : of_round(out, true, l->round);
}

/* Returns the number of rounds from the compared round to the newest round that any peer has
 * reported. */
static uint64_t age_of(const struct drift *d)
{
    uint64_t newest = drift_newest_round(d);
    return newest > d->look.round ? newest - d->look.round : 0;
}

static const char *percent(char out[CMD_PROGRESS_TEXT], double x)
{
    return cmd_progress_number(out, "%.1f %%", 100 * x);
}

/* Prints the names of the two models that are farthest apart, and their distance, such as "peer-1
 * and peer-4: 9.3122e-02". Prints "unknown" if there is nothing to compare, and "no two differ" if
 * all models are equal. */
static void put_pair(const struct drift_compare *l, const struct layers_figure *f)
{
    if (isnan(f->apart))
        fputs("unknown", stdout);
    else if (f->far[0] == f->far[1])
        fputs("no two differ", stdout);
    else
        printf("%s and %s: %.4e", l->name[f->far[0]], l->name[f->far[1]], f->apart);
}

/* ---- Distances of the layers ---- */

struct ranked
{
    const struct layers_part *part;
    const struct layers_figure *figure;
};

/* Compares two layers for qsort(). The layer with the larger consensus distance comes first, and a
 * layer with unknown distance last. Layers with equal distances stay in the order of the model. */
static int by_drift(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    double xi = isnan(x->figure->xi) ? -1 : x->figure->xi;
    double eta = isnan(y->figure->xi) ? -1 : y->figure->xi;
    if (xi != eta)
        return xi > eta ? -1 : 1;
    return x->part < y->part ? -1 : 1;
}

/* Returns the layers sorted by consensus distance, the largest first. The caller frees the array.
 * Returns NULL if there is no memory. */
static struct ranked *rank(const struct drift_compare *l)
{
    struct ranked *r = calloc(l->n_parts, sizeof *r);
    for (size_t i = 0; i < l->n_parts && r != NULL; i++)
        r[i] = (struct ranked){&l->part[i], &l->figure[i]};
    if (r != NULL)
        qsort(r, l->n_parts, sizeof *r, by_drift);
    return r;
}

/* Returns the share of one layer in the squared distance of the whole model, from 0 to 1. */
static double share_of(const struct drift_compare *l, const struct layers_figure *f)
{
    double all = drift_comparison_total(l)->xi;
    return f->xi * f->xi / (all * all);
}

static void print_layers(const struct drift_compare *l, const char *indent)
{
    char a[CMD_PROGRESS_TEXT], b[CMD_PROGRESS_TEXT], c[CMD_PROGRESS_TEXT], e[CMD_PROGRESS_TEXT];
    struct ranked *r = rank(l);
    int width = 16;
    for (size_t i = 0; i < l->n_parts; i++)
        width = (int)strlen(l->part[i].name) > width ? (int)strlen(l->part[i].name) : width;
    printf("%s%-*s %10s  %-10s  %-10s  %-7s  %-7s  %s\n", indent, width,
           l->exact ? "tensor" : "layer", "parameters", "drift", "relative", "share", "error",
           "farthest");
    for (size_t i = 0; i < l->n_parts && r != NULL; i++) {
        const struct layers_figure *f = r[i].figure;
        printf("%s%-*s %10zu  %-10s  %-10s  %-7s  %-7s  ", indent, width, r[i].part->name,
               r[i].part->n, cmd_progress_drift(a, "%.4e", f->xi),
               cmd_progress_drift(b, "%.4e", f->relative), percent(c, share_of(l, f)),
               f->error == 0 ? "exact" : percent(e, f->error));
        put_pair(l, f);
        putchar('\n');
    }
    free(r);
}

static json_t *pair_object(const struct drift_compare *l, const struct layers_figure *f)
{
    if (isnan(f->apart) || f->far[0] == f->far[1])
        return json_null();
    return json_pack("{s:[s, s], s:o}", "names", l->name[f->far[0]], l->name[f->far[1]], "distance",
                     uv_metrics_number(f->apart));
}

static json_t *layers_array(const struct drift_compare *l, bool layers)
{
    if (!layers || l->n == 0)
        return json_null();
    json_t *list = json_array();
    struct ranked *r = rank(l);
    for (size_t i = 0; i < l->n_parts && r != NULL; i++) {
        const struct layers_figure *f = r[i].figure;
        json_array_append_new(
            list,
            json_pack("{s:s, s:I, s:o, s:o, s:o, s:o, s:o}", "name", r[i].part->name, "parameters",
                      (json_int_t)r[i].part->n, "drift", uv_metrics_number(f->xi), "relative_drift",
                      uv_metrics_number(f->relative), "share", uv_metrics_number(share_of(l, f)),
                      "error", uv_metrics_number(f->error), "farthest", pair_object(l, f)));
    }
    free(r);
    return list;
}

/* ---- Printing JSON ---- */

static json_t *exact_object(const struct drift *d)
{
    const struct consensus *c = &d->exact;
    return json_pack("{s:o, s:o, s:o, s:o, s:I, s:I, s:I}", "drift",
                     uv_metrics_number(c->trained.xi), "relative_drift",
                     uv_metrics_number(c->trained.relative), "statistics_drift",
                     uv_metrics_number(c->statistics.xi), "statistics_relative_drift",
                     uv_metrics_number(c->statistics.relative), "models", (json_int_t)c->n,
                     "round_min", (json_int_t)d->round_min, "round_max", (json_int_t)d->round_max);
}

static json_t *sketches_object(const struct drift *d)
{
    const struct drift_compare *l = &d->look;
    if (l->n == 0 || l->exact)
        return json_null();
    const struct layers_figure *f = drift_comparison_total(l);
    return json_pack("{s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:b}", "drift", uv_metrics_number(f->xi),
                     "relative_drift", uv_metrics_number(f->relative), "error",
                     uv_metrics_number(f->error), "round", (json_int_t)l->round, "round_min",
                     (json_int_t)l->first, "age", (json_int_t)age_of(d), "peers", (json_int_t)l->n,
                     "last_phase", (int)l->last_phase);
}

static json_t *peers_array(const struct drift *d)
{
    json_t *peers = json_array();
    for (uint32_t i = 0; i < d->w.n; i++) {
        const struct cmd_observed *m = &d->w.member[i];
        if (m->answered)
            json_array_append_new(peers,
                                  json_pack("{s:s, s:o, s:o, s:o, s:o}", "name", m->record.name,
                                            "round", uv_metrics_whole(m->status.drift_round), "age",
                                            uv_metrics_whole(m->status.drift_age), "drift",
                                            uv_metrics_number(m->status.drift), "relative_drift",
                                            uv_metrics_number(m->status.relative_drift)));
    }
    return peers;
}

static void dump(json_t *j)
{
    json_dumpf(j, stdout, JSON_COMPACT | JSON_REAL_PRECISION(12));
    putchar('\n');
    json_decref(j);
}

void drift_print_json(const struct drift *d, double time_s)
{
    const struct drift_compare *l = &d->look;
    json_t *exact = d->exact.n > 0 ? exact_object(d) : json_null();
    json_t *farthest = l->n > 0 ? pair_object(l, drift_comparison_total(l)) : json_null();
    double ratio = d->xi / d->exact.trained.xi;
    json_t *j =
        json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "peers", peers_array(d),
                  "round", d->n_estimates > 0 ? uv_metrics_whole(d->estimated_round) : json_null(),
                  "drift", uv_metrics_number(d->xi), "relative_drift",
                  uv_metrics_number(d->relative), "sketches", sketches_object(d), "farthest",
                  farthest, "layers", layers_array(l, options_flag(d->o, "layers")), "exact", exact,
                  "ratio", uv_metrics_number(d->watching ? (double)NAN : ratio), "why",
                  l->n == 0 && l->why[0] != '\0' ? json_string(l->why) : json_null());
    if (!isnan(time_s))
        json_object_set_new(j, "time_s", uv_metrics_number(time_s));
    dump(j);
}

void drift_print_look_json(const struct drift_compare *l, const struct consensus *c, bool layers)
{
    dump(json_pack("{s:o, s:o, s:o, s:o, s:I, s:o, s:o}", "drift", uv_metrics_number(c->trained.xi),
                   "relative_drift", uv_metrics_number(c->trained.relative), "statistics_drift",
                   uv_metrics_number(c->statistics.xi), "statistics_relative_drift",
                   uv_metrics_number(c->statistics.relative), "models", (json_int_t)c->n,
                   "farthest", pair_object(l, drift_comparison_total(l)), "layers",
                   layers_array(l, layers)));
}

/* ---- Printing lines of text ---- */

static void print_exact(const struct consensus *c, const char *when)
{
    char a[CMD_PROGRESS_TEXT], b[CMD_PROGRESS_TEXT];
    printf("%-16s %-25s drift %-10s relative %s   (%zu models)\n", "exact", when,
           cmd_progress_drift(a, "%.4e", c->trained.xi),
           cmd_progress_drift(b, "%.4e", c->trained.relative), c->n);
    if (c->statistics.dim > 0)
        printf("%-16s %-25s drift %-10s relative %s   (running means and variances, not included "
               "in the drift)\n",
               "statistics", "", cmd_progress_drift(a, "%.4e", c->statistics.xi),
               cmd_progress_drift(b, "%.4e", c->statistics.relative));
}

static const char too_near[] = "the models differ by less than sketches can measure, or are not "
                               "finite; --exact compares the models";

static void print_sketched(const struct drift_compare *l)
{
    char a[CMD_PROGRESS_TEXT], b[CMD_PROGRESS_TEXT], e[CMD_PROGRESS_TEXT], when[CMD_PROGRESS_TEXT];
    if (l->n == 0) {
        printf("%-16s unknown: %s\n", "sketches", l->why);
        return;
    }
    const struct layers_figure *f = drift_comparison_total(l);
    if (isnan(f->xi)) {
        printf("%-16s unknown: %s\n", "sketches", too_near);
        return;
    }
    printf("%-16s %-25s drift %-10s relative %s   (%zu peer%s, standard error %s)\n", "sketches",
           moment_of(when, l), cmd_progress_drift(a, "%.4e", f->xi),
           cmd_progress_drift(b, "%.4e", f->relative), l->n, number_plural(l->n),
           f->error == 0 ? "0" : percent(e, f->error));
}

static void print_farthest(const struct drift_compare *l)
{
    char when[CMD_PROGRESS_TEXT];
    if (l->n == 0 || isnan(drift_comparison_total(l)->apart))
        return;
    printf("%-16s %-25s ", "farthest", moment_of(when, l));
    put_pair(l, drift_comparison_total(l));
    putchar('\n');
}

void drift_print_text(const struct drift *d)
{
    char a[CMD_PROGRESS_TEXT], b[CMD_PROGRESS_TEXT], when[CMD_PROGRESS_TEXT];
    const struct drift_compare *l = &d->look;
    for (uint32_t i = 0; i < d->w.n; i++) {
        const struct cmd_observed *m = &d->w.member[i];
        if (m->answered)
            printf("%-16s %-25s drift %-10s relative %s\n", m->record.name, when_of(when, m),
                   cmd_progress_drift(a, "%.4e", m->status.drift),
                   cmd_progress_drift(b, "%.4e", m->status.relative_drift));
    }
    of_round(when, d->n_estimates > 0, d->estimated_round);
    printf("%-16s %-25s drift %-10s relative %s   (%u estimates)\n", "estimated", when,
           cmd_progress_drift(a, "%.4e", d->xi), cmd_progress_drift(b, "%.4e", d->relative),
           (unsigned)d->n_estimates);
    if (d->exact.n > 0) {
        print_exact(&d->exact, of_round(when, true, d->round_max));
        printf("%-16s %s\n", "ratio", cmd_progress_drift(a, "%.3f", d->xi / d->exact.trained.xi));
    } else if (!options_flag(d->o, "exact")) {
        print_sketched(l);
    }
    print_farthest(l);
    if (l->n > 0 && options_flag(d->o, "layers")) {
        putchar('\n');
        print_layers(l, "");
    }
}

void drift_print_look(const struct drift_compare *l, const struct consensus *c, bool layers)
{
    print_exact(c, "");
    print_farthest(l);
    if (layers) {
        putchar('\n');
        print_layers(l, "");
    }
}

void drift_print_line(const struct drift *d, double time_s, bool layers)
{
    const struct drift_compare *l = &d->look;
    char a[CMD_PROGRESS_TEXT], b[CMD_PROGRESS_TEXT], e[CMD_PROGRESS_TEXT], when[CMD_PROGRESS_TEXT];
    printf("%7.1f s  ", time_s);
    if (l->n == 0 || isnan(drift_comparison_total(l)->xi)) {
        printf("drift unknown: %s", l->n == 0 ? l->why : too_near);
    } else {
        const struct layers_figure *f = drift_comparison_total(l);
        printf("%s, %llu ago  drift %s  relative %s  ", moment_of(when, l),
               (unsigned long long)age_of(d), cmd_progress_drift(a, "%.4e", f->xi),
               cmd_progress_drift(b, "%.4e", f->relative));
        if (l->exact)
            printf("(exact, %zu models)", l->n);
        else
            printf("(%zu peer%s, error %s)", l->n, number_plural(l->n), percent(e, f->error));
        fputs("  farthest ", stdout);
        put_pair(l, f);
    }
    printf("  estimated %s\n", cmd_progress_drift_at(a, d->relative, d->estimated_round));
    if (layers && l->n > 0)
        print_layers(l, "           ");
}
