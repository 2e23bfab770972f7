/* peer/cmd/files.c -- writes what commands keep under --out. */
#include "peer/cmd/files.h"

#include "nn/files/file.h"
#include "nn/files/safetensors.h"
#include "peer/cmd/cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEAD_MAX = 4096 /* Bytes of a file's beginning that tell whose it is. */ };

int cmd_path(char out[CMD_PATH_MAX], const char *dir, const char *name)
{
    int n = snprintf(out, CMD_PATH_MAX, "%s/%s", dir, name);
    return n < CMD_PATH_MAX ? 0 : -ENAMETOOLONG;
}

int cmd_may_write(const struct options *o, const char *path, const void *mark, size_t n, bool force,
                  const char *not_ours)
{
    uint8_t head[HEAD_MAX];
    char error[FILE_ERROR_MAX];
    struct stat st;
    size_t got;
    bool whole;
    if (lstat(path, &st) < 0)
        return errno == ENOENT ? CMD_OK : cmd_fail(o, CMD_USAGE, "%s: %s", path, strerror(errno));
    if (S_ISDIR(st.st_mode))
        return cmd_fail(o, CMD_USAGE, "%s is a directory, expected a file to write", path);
    if (force)
        return CMD_OK;
    bool ours = S_ISREG(st.st_mode)
                && (st.st_size == 0
                    || (file_head(path, head, n < HEAD_MAX ? n : HEAD_MAX, &got, &whole, error) == 0
                        && got >= n && memcmp(head, mark, n) == 0));
    return ours ? CMD_OK : cmd_fail(o, CMD_USAGE, "%s is there, and %s", path, not_ours);
}

int cmd_read_text(const char *path, char *text, size_t cap, char error[KEYFILE_ERROR_MAX])
{
    FILE *f = fopen(path, "re");
    size_t n = f != NULL ? fread(text, 1, cap, f) : 0;
    int err = f == NULL || ferror(f) ? -errno : n == cap ? -EFBIG : 0;
    if (f != NULL)
        fclose(f);
    text[n < cap ? n : cap - 1] = '\0';
    if (err < 0)
        snprintf(error, KEYFILE_ERROR_MAX, "%.300s: %s", path, strerror(-err));
    return err;
}

/* A text that metadata can have, to be freed; or NULL, as a model is worth more than names. */
static char *class_names(const struct labels *classes)
{
    char *text = classes != NULL ? labels_join(classes) : NULL;
    json_t *valid = text != NULL && strlen(text) <= CMD_CLASSES_MAX ? json_string(text) : NULL;
    if (valid == NULL) { /* It is not UTF-8, or too long. */
        free(text);
        text = NULL;
    }
    json_decref(valid);
    return text;
}

int cmd_write_saved(const char *path, const struct cmd_saved *s, char error[DATA_ERROR_MAX])
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
    int err = safetensors_write(path, s->x, s->segments, s->n_segments, meta, error);
    free(classes);
    return err;
}

int cmd_write_model(const char *path, const struct node *n, const char *name,
                    const struct labels *classes, char error[DATA_ERROR_MAX])
{
    struct cmd_saved s = {.name = name, .classes = classes};
    struct node_progress p;
    size_t n_params;
    s.x = node_model(n, &s.segments, &s.n_segments, &n_params);
    if (s.x == NULL)
        return 0;
    node_progress(n, &p);
    s.round = p.round;
    s.run = node_run(n);
    int err = cmd_write_saved(path, &s, error);
    return err < 0 ? err : 1;
}

int cmd_write_handed(char path[CMD_PATH_MAX], const char *dir, const struct node *n,
                     const struct labels *classes, char error[DATA_ERROR_MAX])
{
    char folder[CMD_PATH_MAX], name[WIRE_NAME_MAX + 16];
    struct node_handed h;
    size_t n_params;
    int err = node_handed(n, &h) ? cmd_path(folder, dir, "handed") : -EINVAL;
    if (err == 0 && mkdir(folder, 0777) < 0 && errno != EEXIST)
        err = -errno;
    if (err == 0) {
        snprintf(name, sizeof name, "%s.safetensors", h.name);
        err = cmd_path(path, folder, name);
    }
    if (err < 0) {
        snprintf(error, DATA_ERROR_MAX, "%.200s/handed: %s", dir, strerror(-err));
        return err;
    }
    struct cmd_saved s = {
        .x = h.x, .run = node_run(n), .round = h.round, .name = h.name, .classes = classes};
    (void)node_model(n, &s.segments, &s.n_segments, &n_params);
    return cmd_write_saved(path, &s, error);
}
