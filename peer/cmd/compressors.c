/* peer/cmd/compressors.c -- `hearsay compressors`: reads from the options which codecs to describe,
 * and which vector to compress. Other files measure the codecs (compressors_measure.c) and print
 * the results (compressors_print.c). */
#include "peer/cmd/compressors.h"

#include "gossip/exchange/codec_levels.h"
#include "peer/cmd/cmd.h"
#include "peer/cmd/training.h"
#include "peer/run/rate.h"
#include "peer/sgd/sgd_keys.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PARAMS_DEFAULT = 1000000,
    PARAMS_MAX = 1 << 28 /* Largest --params: the vector takes 1 GiB. */
};

/* clang-format off */
const struct option_row cmd_compressors_rows[] = {
    {.name = "compress", .kind = OPTION_TEXT, .arg = "SPEC...",
     .help = "only these compressors, separated by blanks: \"none topk:0.01+qsgd:4\"; default: all, with their default parameters"},
    {.name = "params", .kind = OPTION_UINT, .arg = "N", .min = 1, .max = PARAMS_MAX,
     .help = "number of parameters, in one nearly square matrix (default 1000000)"},
    {.name = "model", .kind = OPTION_TEXT, .arg = "SPEC",
     .help = "use the tensors of this model in place of --params"},
    {.name = "data", .kind = OPTION_TEXT, .arg = "SPEC",
     .help = "data set that determines the shapes of the model"},
    {.name = "measure", .kind = OPTION_FLAG,
     .help = "also measure contraction and speed, and the bandwidth below which compressing saves time"},
    {.name = "neighbours", .kind = OPTION_UINT, .arg = "N", .fallback = "2", .min = 1, .max = 100000,
     .help = "number of neighbours that receive each message"},
    {.name = "bandwidth", .former = "uplink", .kind = OPTION_TEXT, .arg = "RATE",
     .help = "rate of the link, such as 100Mbit or 1Gbit: also measure, and print whether "
             "compression saves time at this rate"},
    {.name = "seed", .kind = OPTION_UINT, .arg = "N", .fallback = "1",
     .help = "seed of the random values (standard normal)"},
    CMD_ROW_JSON,
    {.name = NULL},
};
/* clang-format on */

/* ---- Reading the options ---- */

static int read_uplink(const struct options *o, struct cmd_compressors *t)
{
    const char *text = options_text(o, "bandwidth");
    if (text == NULL || rate_parse(text, &t->uplink))
        return CMD_OK;
    return cmd_fail(o, CMD_USAGE, "--bandwidth: found '%.60s', expected %s", text, RATE_EXPECTED);
}

/* ---- The vector to compress ---- */

/* Returns one tensor of n values. Its shape is as close to a square as the divisors of n allow,
 * because some codecs work on rows and columns. */
static struct segment one_tensor(size_t n)
{
    size_t rows = 1;
    for (size_t r = 1; r * r <= n; r++)
        rows = n % r == 0 ? r : rows;
    return (struct segment){.name = "weight",
                            .n = n,
                            .rows = rows,
                            .cols = n / rows,
                            .n_dims = 2,
                            .dims = {(uint32_t)rows, (uint32_t)(n / rows)},
                            .decays = true,
                            .trained = true};
}

/* Builds the model of --model and --data. If one of these options is not given, it has the default
 * of a run. Returns CMD_OK, or CMD_USAGE with a message in `error`. */
static int read_model(const struct options *o, struct model *model, char error[RUN_ERROR_MAX])
{
    static const char *const names[] = {"model", "data"};
    static struct run_flags flags = {.trainer = &sgd_keys};
    static struct run run;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (options_given(o, names[i])
            && run_flags_set(&flags, names[i], options_text(o, names[i]), error))
            return CMD_USAGE;
    if (run_from_flags(&run, &flags, error))
        return CMD_USAGE;
    return cmd_training_model(model, &run, error) ? CMD_USAGE : CMD_OK;
}

/* Chooses the vector to compress: the trained parameters of a model, or one tensor of --params
 * values. With a model, `t` points into `*model`. Returns CMD_OK, or an exit code after a message
 * on stderr. */
static int read_vector(const struct options *o, struct cmd_compressors *t, struct model *model)
{
    static struct segment tensor;
    char error[RUN_ERROR_MAX];
    bool by_model = options_given(o, "model") || options_given(o, "data");
    if (by_model && options_given(o, "params"))
        return cmd_fail(o, CMD_USAGE, "--params and --%s contradict each other",
                        options_given(o, "model") ? "model" : "data");
    if (!by_model) {
        t->n = options_given(o, "params") ? options_uint(o, "params") : PARAMS_DEFAULT;
        tensor = one_tensor(t->n);
        t->segments = &tensor;
        t->n_segments = 1;
        return CMD_OK;
    }
    int code = read_model(o, model, error);
    if (code != CMD_OK)
        return cmd_fail(o, code, "%s", error);
    t->model = model->spec;
    t->segments = model->segments;
    /* The vector has only the trained parameters, because codecs do not compress running
     * statistics. */
    t->n = segments_trained(model->segments, model->n_segments);
    while (t->n_segments < model->n_segments && model->segments[t->n_segments].trained)
        t->n_segments++;
    return CMD_OK;
}

/* ---- The rows of the table, and the command ---- */

/* Looks at each codec in the spec. A spec is a list of rules, separated by ";". A rule has a chain
 * of codecs, separated by "+". */
bool cmd_compressors_names(const char *spec, const char *codec)
{
    size_t n = strlen(codec);
    for (const char *p = spec; *p != '\0'; p += *p == ';') {
        /* A rule may begin with the names of tensors and "=", such as "bias=". Skip them. */
        size_t match = strcspn(p, "=,;");
        p += p[match] == '=' ? match + 1 : 0;
        /* The codecs of a chain are separated by "+". */
        for (bool stage = true; stage; p += stage) {
            if (strcspn(p, ":/+,;") == n && memcmp(p, codec, n) == 0)
                return true;
            p += strcspn(p, "+,;");
            stage = *p == '+';
        }
        /* Skip to the end of the rule: only options can follow its codecs, after a comma. */
        p += strcspn(p, ";");
    }
    return false;
}

/* Sets r->info to the catalogue entry of the codec in the table row `r`. The catalogue has entries
 * only for codecs with default parameters, so r->info may stay NULL. */
static void find_info(const struct cmd_compressors *t, struct cmd_compressors_row *r)
{
    for (size_t i = 0; i < t->n_infos; i++)
        if (strcmp(r->spec, t->infos[i].preset) == 0)
            r->info = &t->infos[i];
}

/* Adds a row to the table of codecs for each codec in --compress, or without --compress for each
 * codec of the catalogue. If a model is given, each rule of a codec must match one of its tensors.
 * Returns CMD_OK, or CMD_USAGE after a message on stderr. */
static int read_rows(const struct options *o, struct cmd_compressors *t, const struct model *model)
{
    char error[COMPRESS_ERROR_MAX], why[RUN_ERROR_MAX];
    const char *specs = options_text(o, "compress");
    for (size_t i = 0; specs == NULL && i < t->n_infos; i++) {
        strcpy(t->rows[i].spec, t->infos[i].preset);
        t->rows[i].info = &t->infos[i];
        t->n_rows++;
    }
    for (const char *p = specs; p != NULL && *(p += strspn(p, " ")) != '\0';) {
        char word[COMPRESS_SPEC_MAX];
        size_t n = strcspn(p, " ");
        if (n >= sizeof word)
            return cmd_fail(o, CMD_USAGE, "--compress: %.40s...: longer than %zu characters", p,
                            sizeof word - 1);
        memcpy(word, p, n);
        word[n] = '\0';
        p += n;
        if (strcmp(word, RUN_AUTO) == 0)
            return cmd_fail(o, CMD_USAGE,
                            "--compress: found auto, which chooses a codec from %s to %s during "
                            "training; expected the name of a codec",
                            codec_levels_spec[0], codec_levels_spec[CODEC_LEVELS_RUNGS - 1]);
        struct cmd_compressors_row *r = &t->rows[t->n_rows++];
        if (compress_canonical(word, r->spec, error))
            return cmd_fail(o, CMD_USAGE, "--compress: %s", error);
        if (model->spec[0] && cmd_training_rules(model, "compress", r->spec, why))
            return cmd_fail(o, CMD_USAGE, "%s", why);
        find_info(t, r);
    }
    return t->n_rows > 0 ? CMD_OK
                         : cmd_fail(o, CMD_USAGE,
                                    "--compress: found an empty list, expected at least one codec");
}

/* Reads the catalogue of codecs and allocates the table with one row per codec. Each codec in
 * --compress takes at least two characters (a name and a blank), so the length of --compress limits
 * the number of rows. */
static int make_room(const struct options *o, struct cmd_compressors *t,
                     struct compress_info **infos)
{
    struct compress_info info;
    const char *specs = options_text(o, "compress");
    while (compress_catalogue(t->n_infos, &info))
        t->n_infos++;
    size_t n_rows = specs != NULL ? strlen(specs) / 2 + 1 : t->n_infos;
    *infos = calloc(t->n_infos, sizeof **infos);
    t->infos = *infos;
    t->rows = calloc(n_rows, sizeof *t->rows);
    if (t->infos == NULL || t->rows == NULL)
        return cmd_fail(o, CMD_FAILED, "out of memory");
    for (size_t i = 0; i < t->n_infos; i++)
        compress_catalogue(i, &(*infos)[i]);
    return CMD_OK;
}

static int report(const struct options *o, struct cmd_compressors *t)
{
    char error[CMD_COMPRESSORS_ERROR_MAX];
    int err = cmd_compressors_measure(t, error);
    if (err != 0)
        return cmd_fail(o, cmd_exit_of(err), "%s", error);
    if (!options_flag(o, "json"))
        cmd_compressors_print(t);
    else if (cmd_compressors_print_json(t))
        return cmd_fail(o, CMD_FAILED, "cannot write JSON");
    return cmd_finish(o);
}

int cmd_compressors(const struct options *o)
{
    struct compress_info *infos = NULL;
    struct model model = {.spec = ""};
    struct cmd_compressors t = {.seed = options_uint(o, "seed"),
                                .neighbours = (uint32_t)options_uint(o, "neighbours"),
                                .measured =
                                    options_flag(o, "measure") || options_given(o, "bandwidth")};
    int code = read_uplink(o, &t);
    if (code == CMD_OK)
        code = read_vector(o, &t, &model);
    if (code == CMD_OK)
        code = make_room(o, &t, &infos);
    if (code == CMD_OK)
        code = read_rows(o, &t, &model);
    if (code == CMD_OK)
        code = report(o, &t);
    free(t.rows);
    free(infos);
    model_close(&model);
    return code;
}
