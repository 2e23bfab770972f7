/* peer/cmd/drift.c -- `hearsay drift`: measures the consensus distance of the peers' models.
 *
 *   Xi = sqrt((1/n) sum_i |x_i - mean|^2), and relative to |mean|
 *
 * Each peer estimates the distance itself, from sketches (random projections) that neighbours
 * exchange; the command shows these estimates. In addition, it requests sketches of all models in
 * one round and compares them (gossip/exchange/layers.h). This comparison also shows the distances
 * of layers, and the two peers that are farthest apart. With --exact every peer sends its model,
 * and Xi is computed from the models. With FILEs the models are read from files.
 *
 * With --json the command prints an object with these keys, with --watch one per comparison:
 *
 *           {"peers": [{"name", "round" (of the estimate), "age" (rounds done since),
 *                       "drift", "relative_drift"}],
 *            "round", "drift", "relative_drift": means of the peers' estimates for the
 *            newest round that has an estimate; with --exact, for the compared models only,
 *            "sketches": {"drift", "relative_drift", "error", "round", "round_min", "age",
 *                         "peers", "last_phase"} or null,
 *            "farthest": {"names", "distance"} or null,
 *            "layers": with --layers [{"name", "parameters", "drift", "relative_drift",
 *                      "share", "error", "farthest"}], else null,
 *            "exact": {"drift", "relative_drift", "statistics_drift",
 *                      "statistics_relative_drift", "models", "round_min",
 *                      "round_max"} or null, "ratio": estimated / exact,
 *            "why": null, or why nothing was compared; with --watch "time_s"}
 *
 * With --exact, a peer sends its model from the beginning of a drift window, which is the period
 * for which peers estimate Xi. The command repeats its requests until models and estimates belong
 * to the same round, so that both figures describe the same models. If the run is not in lock step
 * (all peers in the same round), the windows of the peers begin at different rounds. In this case
 * the command requests models of a future round.
 *
 * Models of different rounds are not compared. `exact` is then null, stderr names the rounds, and
 * the exit code is 1. The mean of the estimates and the ratio are null if no peer has an estimate
 * for the compared models. This is usual with --round, and for models of the consensus phase. All
 * figures are null if there is only one model.
 *
 * A peer does not store old models. If the requested round is past, the peer sends its present
 * model. If the compared models are not all of the round that --round names, the exit code is 1 and
 * stderr says what was compared.
 */
#include "peer/cmd/drift.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Time to wait for sketches (random projections of the models), in seconds. Used if neither
 * --layers nor --exact is given. */
enum { LOOK_S = 5 };

/* clang-format off */
const struct option_row cmd_drift_rows[] = {
    ROWS_BOOTSTRAP,
    {.name = "key", .kind = OPTION_TEXT, .arg = "FILE",
     .help = "file of the cluster key (hearsay key new); not needed for model files"},
    CMD_ROW_OBSERVER,
    {.name = "exact", .kind = OPTION_FLAG, .help = "get the model of every peer and compare the models"},
    {.name = "layers", .kind = OPTION_FLAG,
     .help = "show the consensus distance by layer, largest first: estimated from sketches, or exact and by tensor with --exact or model files"},
    {.name = "round", .kind = OPTION_UINT, .arg = "N", .min = 0, .max = 1e9,
     .help = "with --exact or --layers: round at which to compare; default: the next round, or with --exact the next round with a drift estimate"},
    {.name = "timeout", .kind = OPTION_UINT, .arg = "SECONDS", .fallback = "60", .min = 1, .max = 86400,
     .help = "with --exact, --layers or --watch: time to wait for models or sketches"},
    {.name = "watch", .kind = OPTION_FLAG,
     .help = "print a line every --interval, until the run ends or Ctrl-C"},
    {.name = "interval", .kind = OPTION_REAL, .arg = "SECONDS", .fallback = "2", .min = 0.2, .max = 3600,
     .help = "with --watch: time between two lines"},
    {.name = "count", .kind = OPTION_UINT, .arg = "N", .fallback = "0", .max = 1e9,
     .help = "with --watch: end after N lines; 0: at the end of the run"},
    {.name = "models", .kind = OPTION_OPERAND, .arg = "MODEL", .many = true,
     .help = "model.safetensors files of two or more peers, in place of --bootstrap: print their exact distance"},
    CMD_ROW_JSON,
    {.name = NULL},
};
/* clang-format on */

/* Checks that the compared models are of the round that --round names. Otherwise the comparison
 * does not answer the user's question, and the command fails. */
static int check_round(const struct drift *d)
{
    unsigned long long min = d->round_min, max = d->round_max;
    if (d->apart && !options_given(d->o, "round"))
        return cmd_fail(d->o, CMD_FAILED,
                        "models not compared: they are of different rounds, %llu to %llu", min,
                        max);
    unsigned long long asked = options_given(d->o, "round") ? options_uint(d->o, "round") : min;
    if (min == asked && max == asked)
        return CMD_OK;
    if (min > asked && !d->apart)
        return cmd_fail(d->o, CMD_FAILED, "round %llu is over; compared round %llu instead", asked,
                        max);
    if (max < asked && !d->apart)
        return cmd_fail(d->o, CMD_FAILED,
                        "training ended before round %llu; compared round %llu instead", asked,
                        max);
    return cmd_fail(d->o, CMD_FAILED,
                    "models not compared: expected all to be of round %llu, found rounds %llu to "
                    "%llu",
                    asked, min, max);
}

/* Fails if no sketches (random projections of models) were compared. Only sketches of the requested
 * round are ever compared, so no further check is needed. */
static int check_look(const struct drift *d)
{
    return d->look.n > 0 ? CMD_OK : cmd_fail(d->o, CMD_FAILED, "%s", d->look.why);
}

/* ---- Options that require other options ---- */

/* Returns true if the option was given on the command line. An option from the environment may be
 * meant for other commands, and is therefore never an error. */
static bool is_typed(const struct options *o, const char *name)
{
    for (uint32_t i = 0; i < o->n; i++)
        if (strcmp(o->values[i].row->name, name) == 0)
            return o->values[i].source == OPTION_COMMAND_LINE;
    return false;
}

/* Fails if the option `name` is on the command line, but the option that it needs is not given. The
 * needed option is `one`, or either of `one` and `other` if `other` is not NULL. */
static int wants(const struct options *o, const char *name, const char *one, const char *other)
{
    if (!is_typed(o, name) || options_flag(o, one) || (other && options_flag(o, other)))
        return CMD_OK;
    return cmd_fail(o, CMD_USAGE, "--%s: expected together with --%s%s%s", name, one,
                    other ? " or --" : "", other ? other : "");
}

static int check_options(const struct options *o)
{
    static const char *const of_peers[] = {"bootstrap", "round",    "timeout", "watch",
                                           "interval",  "identity", "count"};
    bool files = o->n_operands > 0;
    for (size_t i = 0; files && i < sizeof of_peers / sizeof *of_peers; i++)
        if (is_typed(o, of_peers[i]))
            return cmd_fail(o, CMD_USAGE,
                            "--%s cannot be combined with model files: it applies to peers",
                            of_peers[i]);
    if (files)
        return CMD_OK;
    if (!options_given(o, "key"))
        return cmd_fail(o, CMD_USAGE, "--key FILE is missing");
    if (options_given(o, "round") && options_flag(o, "watch"))
        return cmd_fail(o, CMD_USAGE,
                        "--round cannot be combined with --watch, which compares many rounds");
    int code = wants(o, "round", "exact", "layers");
    if (code == CMD_OK)
        code = wants(o, "interval", "watch", NULL);
    return code == CMD_OK ? wants(o, "count", "watch", NULL) : code;
}

/* ---- Running the command ---- */

/* Compares models (--exact) or sketches (random projections of models). If the user asked for
 * models or layers, it is an error if they cannot be compared. */
static int compare(struct drift *d)
{
    bool layers = options_flag(d->o, "layers");
    uint32_t seconds = layers ? (uint32_t)options_uint(d->o, "timeout") : LOOK_S;
    if (!options_flag(d->o, "exact"))
        return drift_compare_sketches(d, 1000 * seconds);
    int code = drift_models_and_estimates(d);
    return code == CMD_OK ? drift_compare_models(d, layers) : code;
}

static int once(struct drift *d)
{
    int code = compare(d);
    /* The peers' estimates of the distance are printed even if the comparison failed. */
    drift_average(d);
    if (options_flag(d->o, "json"))
        drift_print_json(d, (double)NAN);
    else
        drift_print_text(d);
    if (code == CMD_OK && options_flag(d->o, "exact"))
        code = check_round(d);
    else if (code == CMD_OK && options_flag(d->o, "layers"))
        code = check_look(d);
    return code;
}

int cmd_drift(const struct options *o)
{
    static struct drift d;
    d.o = o;
    d.exact = consensus_none;
    int code = check_options(o);
    if (code != CMD_OK)
        return code;
    if (o->n_operands > 0)
        return drift_files(o);
    code = cmd_observe(&d.w, o);
    if (code == CMD_OK)
        code = options_flag(o, "watch") ? drift_watch(&d) : once(&d);
    drift_comparison_close(&d.look);
    cmd_observe_close(&d.w);
    /* Do not call cmd_finish() after CMD_FAILED: if the failure was a write error of stdout, a
     * message has been printed, and cmd_finish() would report the same error again. */
    int flushed = code == CMD_FAILED ? code : cmd_finish(o);
    return code != CMD_OK ? code : flushed;
}
