/* peer/run_log/model.c -- writes a model and its metadata to a safetensors file. */
#include "peer/run_log/model.h"

#include "nn/files/safetensors.h"
#include "peer/run_log/columns.h"
#include "peer/run_log/input.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the class names as one text for the metadata, which the caller frees. NULL if the names
 * are unusable or memory is short: the model is then written without them. */
static char *class_names(const struct labels *classes)
{
    char *text = classes != NULL ? labels_join(classes) : NULL;
    json_t *valid =
        text != NULL && strlen(text) <= DIARY_MODEL_CLASSES_MAX ? json_string(text) : NULL;
    /* The model file gets no class names, because there are none, or their text is too long or not
     * UTF-8. */
    if (valid == NULL) {
        free(text);
        text = NULL;
    }
    json_decref(valid);
    return text;
}

/* Finds the value of the line "data=..." in a run description. Returns true if the value is a data
 * kind that determines the shape of the samples. A program with its own trainer may define a key
 * `data` with another meaning; the result is then false. */
static bool find_kind(const char *text, char kind[DATA_KIND_MAX])
{
    const char *at = strncmp(text, "data=", 5) == 0 ? text : strstr(text, "\ndata=");
    if (at == NULL)
        return false;
    at = strchr(at, '=') + 1;
    size_t n = strcspn(at, "\n");
    if (n >= DATA_KIND_MAX)
        return false;
    memcpy(kind, at, n);
    kind[n] = '\0';
    return data_kind_fixed(kind);
}

/* Returns the description of the inputs, which the caller frees. NULL: memory is short; the model
 * is then written without the description. */
static char *input_text(const char *kind, const struct labels *classes)
{
    json_t *j = diary_input(kind, classes);
    char *text = j != NULL ? json_dumps(j, JSON_COMPACT | JSON_REAL_PRECISION(15)) : NULL;
    json_decref(j);
    return text;
}

const char *diary_model_trained(const struct data_trained *trained,
                                char text[DIARY_MODEL_TRAINED_MAX])
{
    snprintf(text, DIARY_MODEL_TRAINED_MAX, "%016" PRIx64 " %.9g", trained->hash, trained->share);
    return text;
}

int diary_model_write(const char *path, const struct diary_model *s, char error[FILE_ERROR_MAX])
{
    const char *label;
    char round[24], trained[DIARY_MODEL_TRAINED_MAX], text[WIRE_RUN_MAX + 1], kind[DATA_KIND_MAX];
    char *classes = class_names(s->source.classes);
    char *columns = diary_columns_text(s->source.columns, &label);
    snprintf(round, sizeof round, "%" PRIu64, s->round);
    (void)diary_model_trained(&s->source.trained, trained);
    run_text(s->run, text);
    bool ours = find_kind(text, kind);
    char *input = ours ? input_text(kind, classes != NULL ? s->source.classes : NULL) : NULL;
    const struct safetensors_meta known[] = {
        {"run", text},
        {"round", round},
        {"name", s->name},
        {"version", HEARSAY_VERSION},
        {"final", s->final ? "true" : NULL},
        {"data", ours ? kind : NULL},
        {"input", input},
        {"trained_on", ours && s->source.trained.hash != 0 ? trained : NULL},
        {"classes", classes},
        {"columns", columns},
        {"label", label},
    };
    enum { N_KNOWN = sizeof known / sizeof *known };
    struct safetensors_meta meta[N_KNOWN + 1] = {{NULL, NULL}};
    size_t n = 0;
    for (size_t i = 0; i < N_KNOWN; i++)
        if (known[i].value != NULL)
            meta[n++] = known[i];
    size_t n_segments = s->n_segments;
    while (n_segments > 0 && s->segments[n_segments - 1].type == SEGMENT_OPAQUE)
        n_segments--;
    int err = safetensors_write(path, s->x, s->segments, n_segments, meta, error);
    free(input);
    free(classes);
    free(columns);
    return err;
}

bool diary_model_is_final(const char *path, const char *run)
{
    struct safetensors_info info;
    char error[FILE_ERROR_MAX];
    if (safetensors_info(path, &info, error) != 0)
        return false;
    const char *its_run = safetensors_value(&info, "run");
    bool final =
        its_run != NULL && strcmp(its_run, run) == 0 && safetensors_value(&info, "final") != NULL;
    safetensors_info_close(&info);
    return final;
}

int diary_model_of_node(const char *path, const struct node *n, const char *name,
                        const struct run_log_source *source, char error[FILE_ERROR_MAX])
{
    struct diary_model s = {.name = name, .source = *source};
    struct node_progress p;
    size_t n_params;
    s.x = node_model(n, &s.segments, &s.n_segments, &n_params);
    if (s.x == NULL)
        return 0;
    node_progress(n, &p);
    s.round = p.round;
    s.run = node_run(n);
    s.final = node_model_is_final(n);
    int err = diary_model_write(path, &s, error);
    return err < 0 ? err : 1;
}
