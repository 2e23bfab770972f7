/* nn/data/files.h -- finds the training files and the held-out files of a data spec.
 *
 * The files depend on PATH and on the option test= or holdout=:
 *
 *   PATH, option         training files                  held-out files
 *   file, or file with   the file                        none: the caller splits off a share
 *     holdout=
 *   file, test=          the file                        the files of test=
 *   dir                  those not named as held out     those named as held out; if there are
 *                                                        none, the caller splits off a share
 *   dir, test=           those not named as held out     the files of test=
 *   dir, holdout=        those not named as held out     none: the caller splits off a share
 *
 * If test= is a file, that file is held out. If test= is a directory, its files that are named as
 * held out are used, or all of its files if there are none.
 *
 * A file is named as held out if its name begins with "test", or if one of the parts of its name,
 * between '.', '-' and '_' and ignoring case, is t, te, tes, test, testing, val, valid, validation,
 * heldout or t10k.
 *
 * In a directory, IDX files are recognised by their names and CIFAR files by .bin. Other files are
 * recognised by their first bytes or by their names: an ending of the format (.csv), or the same
 * ending as another file that begins like the format (as in "part-00" and "part-01"). A file that
 * such a name suggests is read, or refused with an error, so no samples are left out silently.
 * README, LICENSE and COPYING count only with an ending of the format. Other files are ignored,
 * except files that are named as held out. These cause an error, because a test on the wrong data
 * would not be noticed. If both a.csv and a.csv.gz exist, a.csv is used.
 */
#ifndef NN_DATA_FILES_H
#define NN_DATA_FILES_H

#include "nn/data/format.h"
#include "nn/data/spec.h"

enum {
    /* Number of bytes at the beginning of a file that are inspected to recognise its format. */
    FILES_HEAD = 64 * 1024
};

struct files
{
    /* Paths of the n files. For IDX, each file of images is followed by its file of labels. */
    char **path;
    size_t n;
};

/* Returns whether a file's name says that the file is held out, as "test.csv" does. */
bool files_held_out(const char *name);

/* Returns whether a file's name has an ending of the format. */
bool files_named(const char *name, const struct data_format *format);

/* Finds the files of a spec that has a format and a path. If no file is held out, test->n is 0, and
 * the caller splits the training set. Returns 0, or -EINVAL, -ENOMEM or another negative errno with
 * a message. After an error both lists are empty. */
__attribute__((warn_unused_result)) int files_find(struct files *train, struct files *test,
                                                   const struct data_spec *s,
                                                   char error[DATA_ERROR_MAX]);
void files_close(struct files *f);

/* Lists all files of a directory, or only the path itself if it is a file. Returns the same errors
 * as files_find(). */
__attribute__((warn_unused_result)) int files_all(struct files *f, const char *path,
                                                  char error[DATA_ERROR_MAX]);

/* Finds the other file of an IDX pair in the same directory, plain or with .gz. Returns 0, -ENOENT
 * if the file does not exist, or -EINVAL if the path is too long. An error has a message. */
__attribute__((warn_unused_result)) int files_partner(const char *path, char found[DATA_SPEC_MAX],
                                                      char error[DATA_ERROR_MAX]);

#endif
