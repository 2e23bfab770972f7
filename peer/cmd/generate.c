/* peer/cmd/generate.c -- `hearsay generate MODEL`: generates text that continues a prompt. */
#include "nn/models/generate.h"

#include "nn/models/printable.h"
#include "peer/cmd/loaded.h"
#include "peer/sgd/sgd_keys.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
const struct option_row cmd_generate_rows[] = {
    CMD_ROW_MODEL_FILE,
    {.name = "prompt", .kind = OPTION_TEXT, .arg = "TEXT",
     .help = "text to continue; it is printed first; default: a new line, which is not printed"},
    {.name = "length", .kind = OPTION_UINT, .arg = "N", .fallback = "256", .min = 1, .max = 1e12,
     .help = "number of bytes to generate"},
    {.name = "temperature", .kind = OPTION_REAL, .arg = "X", .fallback = "1", .min = 0, .max = 1000,
     .help = "divides the logits: below 1, likely bytes become more likely; 0: always the most likely byte"},
    {.name = "top-k", .kind = OPTION_UINT, .arg = "K", .fallback = "0", .min = 0, .max = GENERATE_CLASSES,
     .help = "draw among the K most likely bytes; 0: among all"},
    {.name = "seed", .kind = OPTION_UINT, .arg = "N", .fallback = "1",
     .help = "random seed: the same seed gives the same text"},
    {.name = "raw", .kind = OPTION_FLAG,
     .help = "print the bytes unchanged; without --raw, bytes that are not printable UTF-8 are shown as U+FFFD"},
    CMD_ROW_MODEL_SPEC,
    {.name = "data", .kind = OPTION_TEXT, .arg = "SPEC",
     .help = "with --model: data kind and context length in bytes, such as text/256; default: text/128"},
    {.name = NULL},
};
/* clang-format on */

/* Checks that the model of the run generates text. Returns CMD_OK, or CMD_USAGE after a message on
 * stderr. */
static int check_text(const struct options *o, const struct cmd_loaded *l)
{
    struct data_shape shape;
    const struct sgd_values *v = sgd_values(&l->run);
    if (data_shape(v->data, &shape) == 0 && shape.form == DATA_TEXT)
        return CMD_OK;
    return cmd_fail(o, CMD_USAGE, "%s: found %s for %s, expected a text model: lstm or gpt",
                    options_text(o, "file"), v->model, v->data);
}

static int prepare(const struct options *o, struct cmd_loaded *l)
{
    if (options_given(o, "data") && !options_given(o, "model"))
        return cmd_fail(o, CMD_USAGE,
                        "--data: only allowed with --model, because the model file "
                        "already names its data");
    int code = cmd_loaded_run(l, o, "text/128");
    code = code ? code : check_text(o, l);
    return code ? code : cmd_loaded_model(l, o);
}

/* Prints one byte of text, unchanged if `raw`, otherwise as printable UTF-8. cmd_finish() reports
 * write errors of stdout later. */
static void put(struct printable *p, bool raw, uint8_t byte)
{
    char text[PRINTABLE_MAX];
    if (raw)
        putchar(byte);
    else
        fwrite(text, 1, printable_put(p, byte, text), stdout);
}

static int generate(const struct options *o, struct generate *g)
{
    struct printable p = {.n = 0};
    char text[PRINTABLE_MAX];
    bool raw = options_flag(o, "raw");
    const char *prompt = options_text(o, "prompt");
    generate_feed(g, (const uint8_t *)"\n", 1);
    if (prompt != NULL)
        generate_feed(g, (const uint8_t *)prompt, strlen(prompt));
    for (size_t i = 0; prompt != NULL && prompt[i] != '\0'; i++)
        put(&p, raw, (uint8_t)prompt[i]);
    uint64_t length = options_uint(o, "length");
    for (uint64_t i = 0; i < length && !ferror(stdout); i++) {
        int byte = generate_next(g);
        if (byte < 0)
            return cmd_fail(o, CMD_FAILED,
                            "%s: the model's outputs are not finite (NaN or infinite)",
                            options_text(o, "file"));
        put(&p, raw, (uint8_t)byte);
        /* The output is flushed after each byte, so that the user sees the text while it is
         * generated. */
        fflush(stdout);
    }
    fwrite(text, 1, printable_end(&p, text), stdout);
    if (!raw)
        putchar('\n');
    return cmd_finish(o);
}

int cmd_generate(const struct options *o)
{
    static struct cmd_loaded l;
    static struct generate g;
    int code = prepare(o, &l);
    if (code == CMD_OK) {
        struct generate_config config = {.m = &l.model,
                                         .x = l.x,
                                         .temperature = options_real(o, "temperature"),
                                         .top_k = (uint32_t)options_uint(o, "top-k"),
                                         .seed = options_uint(o, "seed")};
        code = generate_init(&g, &config) < 0 ? cmd_fail(o, CMD_FAILED, "out of memory")
                                              : generate(o, &g);
    }
    generate_close(&g);
    cmd_loaded_close(&l);
    return code;
}
