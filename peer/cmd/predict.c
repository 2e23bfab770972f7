/* peer/cmd/predict.c -- `hearsay predict MODEL --data SPEC`: predicts a label for each sample, and
 * writes the labels as CSV.
 *
 *   index,label,probability
 *   0,Iris setosa,0.998211
 *
 * With --probabilities the CSV also has a column for each class, such as "p_Iris setosa".
 *
 * The command labels the same samples as `hearsay eval` evaluates, in the same order. In a table
 * without labels, all rows get a label.
 */
#include "nn/files/replace.h"
#include "nn/math/number.h"
#include "peer/cmd/files.h"
#include "peer/cmd/loaded.h"
#include "peer/cmd/logits.h"
#include "peer/cmd/progress.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
const struct option_row cmd_predict_rows[] = {
    CMD_ROW_MODEL_FILE,
    {.name = "data", .kind = OPTION_TEXT, .arg = "SPEC",
     .help = "data to label, of the same kind as in training (default: glyphs for a run on glyphs). Labels the held-out files that SPEC names (csv:FILE,test=FILE). Otherwise labels the held-out share of the training files, or all rows of other files"},
    {.name = "probabilities", .kind = OPTION_FLAG, .help = "also write the probability of each class, one column per class"},
    {.name = "out", .kind = OPTION_TEXT, .arg = "FILE", .help = "file for the labels; default: stdout"},
    CMD_ROW_MODEL_SPEC,
    CMD_ROW_MODEL_NORM,
    {.name = NULL},
};
/* clang-format on */

struct prediction
{
    struct cmd_loaded loaded;
    FILE *to; /* Stream for the labels: stdout, or with --out a memory stream that fills `text`. */
    char *text; /* Labels for the file of --out. Owned. NULL: the labels go to stdout. */
    size_t n_text;
    uint64_t right; /* Number of samples with a predicted label equal to the label in the data. */
    bool all;       /* True with --probabilities: write the probabilities of all classes. */
};

/* Writes one CSV field. A field that contains a comma, quote or line break gets quotes (RFC
 * 4180). */
static void put_cell(FILE *to, const char *text)
{
    if (strpbrk(text, ",\"\r\n") == NULL) {
        fputs(text, to);
        return;
    }
    putc('"', to);
    for (; *text != '\0'; text++)
        fprintf(to, *text == '"' ? "\"\"" : "%c", *text);
    putc('"', to);
}

/* Returns the class with the largest logit, and if several are equal the first of them. Sets
 * `*probability` to the softmax of that logit. Returns -EDOM if a logit is not finite. */
static int decide(const float *logits, uint32_t n, double *probability)
{
    uint32_t best = 0;
    double sum = 0;
    for (uint32_t c = 0; c < n; c++) {
        if (!isfinite(logits[c]))
            return -EDOM;
        best = logits[c] > logits[best] ? c : best;
    }
    for (uint32_t c = 0; c < n; c++)
        sum += exp((double)logits[c] - (double)logits[best]);
    *probability = 1 / sum;
    return (int)best;
}

static int take(void *self, size_t at, uint32_t n, const float *logits)
{
    struct prediction *p = self;
    const struct dataset *set = &p->loaded.data.test;
    uint32_t n_classes = p->loaded.model.n_classes;
    for (uint32_t i = 0; i < n; i++) {
        char number[8];
        double probability;
        const float *of = logits + (size_t)i * n_classes;
        int class = decide(of, n_classes, &probability);
        if (class < 0)
            return class;
        fprintf(p->to, "%zu,", at + i);
        put_cell(p->to, dataset_class(set, (uint16_t) class, number));
        fprintf(p->to, ",%.6g", probability);
        for (uint32_t c = 0; c < n_classes && p->all; c++)
            fprintf(p->to, ",%.6g", probability * exp((double)of[c] - (double)of[class]));
        putc('\n', p->to);
        p->right += set->labels != NULL && set->labels[at + i] == class;
    }
    return ferror(p->to) ? -EIO : 0;
}

static void put_header(struct prediction *p)
{
    fputs("index,label,probability", p->to);
    for (uint32_t c = 0; c < p->loaded.model.n_classes && p->all; c++) {
        char number[8], name[LABELS_NAME_MAX + 8];
        snprintf(name, sizeof name, "p_%s",
                 dataset_class(&p->loaded.data.test, (uint16_t)c, number));
        putc(',', p->to);
        put_cell(p->to, name);
    }
    putc('\n', p->to);
}

static int predict(struct prediction *p, const struct options *o)
{
    struct cmd_logits answers = {.m = &p->loaded.model,
                                 .x = p->loaded.x,
                                 .set = &p->loaded.data.test,
                                 .take = take,
                                 .self = p};
    put_header(p);
    int err = cmd_logits(&answers);
    if (err == -EDOM)
        return cmd_fail(o, CMD_FAILED, "%s: the model's outputs are not finite (NaN or infinite)",
                        options_text(o, "file"));
    if (err == -EIO)
        return cmd_fail(o, CMD_FAILED, "cannot write to stdout");
    return err < 0 ? cmd_fail(o, CMD_FAILED, "%s", strerror(-err)) : CMD_OK;
}

/* Opens the output stream. With --out the labels are first collected in memory, so that the file is
 * either complete or unchanged. A path that cannot be written is refused before the model runs.
 * Returns CMD_OK, or an exit code after a message on stderr. */
static int open_out(struct prediction *p, const struct options *o)
{
    const char *path = options_text(o, "out");
    int err = path != NULL ? replace_check(path) : 0;
    if (err < 0)
        return cmd_cannot_write(o, "out", path, err);
    p->to = options_given(o, "out") ? open_memstream(&p->text, &p->n_text) : stdout;
    return p->to != NULL ? CMD_OK : cmd_fail(o, CMD_FAILED, "out of memory");
}

static int keep(struct prediction *p, const struct options *o)
{
    const char *path = options_text(o, "out");
    if (path == NULL)
        return CMD_OK;
    int err = fclose(p->to) != 0 ? -ENOMEM : replace_file(path, p->text, p->n_text);
    p->to = NULL;
    return err < 0 ? cmd_cannot_write(o, "out", path, err) : CMD_OK;
}

/* Reports on stderr the number of labelled samples, the number of labels that agree with the data,
 * and which part of the data was labelled. */
static void say(const struct prediction *p)
{
    char percent[CMD_PROGRESS_TEXT];
    size_t n = p->loaded.data.test.n;
    struct kind_rows kind;
    if (p->loaded.data.test.names == NULL && kind_rows_parse(p->loaded.data.test.kind, "csv", &kind)
        && kind.scheme == LABELS_NAMES)
        fputs("the model file has no class names; labels are class numbers\n", stderr);
    if (p->loaded.data.test.labels == NULL) {
        fprintf(stderr, "%zu sample%s of %s, without labels\n", n, number_plural(n),
                kind_brief(p->loaded.data.test.kind).text);
        return;
    }
    fprintf(stderr, "%zu sample%s of %s, %" PRIu64 " labels match those in the data: accuracy %s\n",
            n, number_plural(n), kind_brief(p->loaded.data.test.kind).text, p->right,
            cmd_progress_percent(percent, (double)p->right / (double)n));
    if (p->loaded.data.held_out == DATA_HELD_OTHER)
        fputs("labelled all rows of --data, which are not the training files of this model\n",
              stderr);
    if (p->loaded.data.held_out == DATA_HELD_NONE)
        fputs("labelled all rows of --data; the model was trained on them\n", stderr);
    if (p->loaded.data.held_out == DATA_HELD_SHARE)
        fprintf(stderr,
                "labelled the held-out rows, a share of %g; to label all rows, give "
                "csv:FILE,test=FILE or libsvm:FILE,test=FILE\n",
                p->loaded.data.share);
}

static int prepare(struct prediction *p, const struct options *o)
{
    p->loaded.bare = true;
    p->all = options_flag(o, "probabilities");
    int code = cmd_loaded_run(&p->loaded, o, NULL);
    code = code ? code : cmd_loaded_data(&p->loaded, o);
    if (code == CMD_OK && p->loaded.data.test.shape.form == DATA_TEXT)
        code = cmd_fail(o, CMD_USAGE, "%s is a text model: use hearsay generate",
                        options_text(o, "file"));
    code = code ? code : cmd_loaded_model(&p->loaded, o);
    return code ? code : open_out(p, o);
}

int cmd_predict(const struct options *o)
{
    static struct prediction p;
    int code = prepare(&p, o);
    code = code ? code : predict(&p, o);
    code = code ? code : keep(&p, o);
    if (code == CMD_OK)
        say(&p);
    if (p.to != NULL && p.to != stdout)
        fclose(p.to);
    free(p.text);
    cmd_loaded_close(&p.loaded);
    return code != CMD_OK ? code : cmd_finish(o);
}
