/* nn/data/files.h -- finds the files of a data spec: for training, and held out.
 *
 *   PATH is    training                     held out
 *   a file     it                           test=; else a split
 *   a directory: its files of the format, by name
 *     alone    those not named held out     those named so; else a split
 *     test=    the same, but what test= is  test=
 *     holdout= the same                     a split
 *
 *   test=      a file: it; a directory: those of its files named held out, or
 *              where there are none, all
 *
 * A name says "held out" by one of its parts, between '.', '-' and '_' and
 * without case: t, te, tes, test, testing, val, valid, validation, heldout,
 * t10k; or by beginning with "test".
 *
 * In a directory, IDX files are recognised by their names and CIFAR files by .bin. Other files are
 * recognised by their first bytes or by their names: an ending of the format (.csv), or the ending of
 * another file that looks like the format (as in "part-00" and "part-01"). A file with such a name is
 * read, or refused with an error, so that no samples are left out silently; README, LICENSE and COPYING
 * need an ending of the format. Other files are ignored, except files that are named as held out: these
 * cause an error, because a test on the wrong data would not be noticed. If both a.csv and a.csv.gz
 * exist, a.csv is used.
 */
#ifndef NN_DATA_FILES_H
#define NN_DATA_FILES_H

#include "nn/data/format.h"
#include "nn/data/spec.h"

enum {
    FILES_HEAD = 64 * 1024 /* Bytes of a file that are looked at. */
};

struct files
{
    char **path; /* n of them; of IDX, pairs of images and labels. */
    size_t n;
};

/* Does a file's name say that it is held out? */
bool files_held_out(const char *name);

/* Does its ending say that a file is of the format? */
bool files_named(const char *name, const struct data_format *format);

/* Finds the files of a spec that has a format and a path. test->n = 0: no file is held out, so
 * that the caller splits the training set. Returns 0, or -EINVAL, -ENOMEM or another errno with
 * a message; then both lists are empty. */
__attribute__((warn_unused_result)) int files_find(struct files *train, struct files *test,
                                                   const struct data_spec *s,
                                                   char error[DATA_ERROR_MAX]);
void files_close(struct files *f);

/* The path itself where it is a file; of a directory, all of its files. The
 * same outcome. */
__attribute__((warn_unused_result)) int files_all(struct files *f, const char *path,
                                                  char error[DATA_ERROR_MAX]);

/* Finds the other file of an IDX pair in the same directory: plain, or with .gz. Returns 0,
 * -ENOENT if there is none, or -EINVAL if the path is too long, with a message. */
__attribute__((warn_unused_result)) int files_partner(const char *path, char found[DATA_SPEC_MAX],
                                                      char error[DATA_ERROR_MAX]);

#endif
