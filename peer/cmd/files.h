/* peer/cmd/files.h -- what commands keep under --out: models. */
#ifndef PEER_CMD_FILES_H
#define PEER_CMD_FILES_H

#include "nn/data/data.h"
#include "nn/data/labels.h"
#include "peer/node/node.h"
#include "peer/secure/channel.h"
#include "peer/secure/keyfile.h"

struct options;

enum { CMD_PATH_MAX = 1024, CMD_CLASSES_MAX = 1 << 16 };

/* DIR/NAME; asserts nothing: a path that is too long is -ENAMETOOLONG. */
__attribute__((warn_unused_result)) int cmd_path(char out[CMD_PATH_MAX], const char *dir,
                                                 const char *name);

/* May a command write there? Only over what begins with the n bytes of `mark`, unless `force`. A link is
 * not followed, but its place taken. CMD_OK, or an exit code, and then it has been said; `not_ours`: what
 * the file is else, and what to do. */
__attribute__((warn_unused_result)) int cmd_may_write(const struct options *o, const char *path,
                                                      const void *mark, size_t n, bool force,
                                                      const char *not_ours);

/* A small file as a text that ends with NUL; -EFBIG where it has cap bytes or more. */
__attribute__((warn_unused_result)) int cmd_read_text(const char *path, char *text, size_t cap,
                                                      char error[KEYFILE_ERROR_MAX]);

/* A model on its way to a file. */
struct cmd_saved
{
    const float *x;
    const struct segment *segments;
    size_t n_segments;
    const struct run *run;
    uint64_t round; /* The model has been through so many rounds. */
    const char *name;
    const struct labels *classes; /* Their names, where the run's data have such; or NULL. */
};

/* Write a model as safetensors, with the metadata "run" (its canonical text),
 * "round", "name" and "version", and where classes have names "classes": these, with newlines between
 * (if they are UTF-8, and of CMD_CLASSES_MAX bytes at most). 0, or a negative errno with a sentence. */
__attribute__((warn_unused_result)) int cmd_write_saved(const char *path, const struct cmd_saved *s,
                                                        char error[DATA_ERROR_MAX]);

/* The same of a node's model. 0 and nothing written while it has none; 1 where it is there. */
__attribute__((warn_unused_result)) int cmd_write_model(const char *path, const struct node *n,
                                                        const char *name,
                                                        const struct labels *classes,
                                                        char error[DATA_ERROR_MAX]);

/* The model that another peer has handed to this node, as DIR/handed/NAME.safetensors; its path goes
 * to `path`. It is of our own run, and its classes are ours. 0, or a negative errno with a sentence. */
__attribute__((warn_unused_result)) int cmd_write_handed(char path[CMD_PATH_MAX], const char *dir,
                                                         const struct node *n,
                                                         const struct labels *classes,
                                                         char error[DATA_ERROR_MAX]);

#endif
