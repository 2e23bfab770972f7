/* peer/diary/model.c -- a model and its metadata become a safetensors file. */
#include "peer/diary/model.h"

#include "nn/files/safetensors.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int join(char out[OUTDIR_PATH_MAX], const char *dir, const char *name)
{
    int n = snprintf(out, OUTDIR_PATH_MAX, "%s/%s", dir, name);
    return n < OUTDIR_PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* A text that metadata can have, to be freed; or NULL, as a model is worth more than names. */
static char *class_names(const struct labels *classes)
{
    char *text = classes != NULL ? labels_join(classes) : NULL;
    json_t *valid =
        text != NULL && strlen(text) <= DIARY_MODEL_CLASSES_MAX ? json_string(text) : NULL;
    if (valid == NULL) { /* It is not UTF-8, or too long. */
        free(text);
        text = NULL;
    }
    json_decref(valid);
    return text;
}

int diary_model_write(const char *path, const struct diary_model *s, char error[FILE_ERROR_MAX])
{
    char round[24], text[WIRE_RUN_MAX + 1], *classes = class_names(s->classes);
    snprintf(round, sizeof round, "%" PRIu64, s->round);
    run_text(s->run, text);
    const struct safetensors_meta meta[] = {{"run", text},
                                            {"round", round},
                                            {"name", s->name},
                                            {"version", HEARSAY_VERSION},
                                            {classes != NULL ? "classes" : NULL, classes},
                                            {NULL, NULL}};
    size_t n = s->n_segments;
    while (n > 0 && s->segments[n - 1].type == SEGMENT_OPAQUE)
        n--;
    int err = safetensors_write(path, s->x, s->segments, n, meta, error);
    free(classes);
    return err;
}

int diary_model_of_node(const char *path, const struct node *n, const char *name,
                        const struct labels *classes, char error[FILE_ERROR_MAX])
{
    struct diary_model s = {.name = name, .classes = classes};
    struct node_progress p;
    size_t n_params;
    s.x = node_model(n, &s.segments, &s.n_segments, &n_params);
    if (s.x == NULL)
        return 0;
    node_progress(n, &p);
    s.round = p.round;
    s.run = node_run(n);
    int err = diary_model_write(path, &s, error);
    return err < 0 ? err : 1;
}

int diary_model_handed(char path[OUTDIR_PATH_MAX], const char *dir, const struct node *n,
                       const struct labels *classes, char error[FILE_ERROR_MAX])
{
    char folder[OUTDIR_PATH_MAX], name[WIRE_NAME_MAX + 16];
    struct node_handed h;
    size_t n_params;
    int err = node_handed(n, &h) ? join(folder, dir, "handed") : -EINVAL;
    if (err == 0 && mkdir(folder, 0777) < 0 && errno != EEXIST)
        err = -errno;
    if (err == 0) {
        snprintf(name, sizeof name, "%s.safetensors", h.name);
        err = join(path, folder, name);
    }
    if (err < 0) {
        snprintf(error, FILE_ERROR_MAX, "%.200s/handed: %s", dir, strerror(-err));
        return err;
    }
    struct diary_model s = {
        .x = h.x, .run = node_run(n), .round = h.round, .name = h.name, .classes = classes};
    (void)node_model(n, &s.segments, &s.n_segments, &n_params);
    return diary_model_write(path, &s, error);
}
