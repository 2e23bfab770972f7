/* nn/data/files.c -- finds the files of a data spec, and divides them into training and held-out
 * files.
 *
 *   list of the directory, sorted by name
 *     duplicates  of a.csv and a.csv.gz, only a.csv is used
 *     format      by name (IDX, .bin) or by the first bytes
 *     held out    by name, or the files of test=; all other files are for training
 *     links       if several names lead to one file, only the first is used
 *     pairs       IDX: each file of images is followed by its file of labels
 *
 * The order of the files matters: samples are numbered in the order of files, and shards and splits
 * refer to these numbers.
 */
#include "nn/data/files.h"

#include "nn/data/idx.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- What the names of files say ---- */

/* Returns the length of a name without .gz. */
static size_t stem(const char *name)
{
    size_t n = strlen(name);
    return n > 3 && strcmp(name + n - 3, ".gz") == 0 ? n - 3 : n;
}

/* Returns the lower-case form of an ASCII letter. tolower() is not used, because it depends on the
 * locale. */
static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Returns whether p[0..n) equals `word`, ignoring case. `word` is in lower case. */
static bool is_word(const char *p, size_t n, const char *word)
{
    size_t i = 0;
    /* The NUL of a `word` that is shorter than p[0..n) ends the loop. */
    while (i < n && lower(p[i]) == word[i])
        i++;
    return i == n && word[n] == '\0';
}

/* The name is split at '.', '-' and '_'. A file is held out if one of the pieces is a word of the
 * list, or if its name begins with "test". "testset.csv" and "my.test.csv" are therefore held out,
 * but "contest.csv" is not. */
bool files_held_out(const char *name)
{
    static const char *const words[] = {"t",   "te",    "tes",        "test",    "testing",
                                        "val", "valid", "validation", "heldout", "t10k"};
    size_t n = stem(name);
    if (n >= 4 && is_word(name, 4, "test"))
        return true;
    for (size_t at = 0, len; at < n; at += len + 1) {
        for (len = 0; at + len < n && strchr(".-_", name[at + len]) == NULL; len++)
            ;
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            if (is_word(name + at, len, words[i]))
                return true;
    }
    return false;
}

/* Returns whether the name, without .gz, has this ending and at least one character before it. */
static bool ends_in(const char *name, const char *ending)
{
    size_t n = stem(name), n_ending = strlen(ending);
    return n > n_ending && memcmp(name + n - n_ending, ending, n_ending) == 0;
}

/* Returns the ending of a name with its dot, or the whole name if it has no dot. Files of one
 * format usually have the same ending. */
static const char *tail(const char *name, size_t *n)
{
    size_t at = stem(name);
    while (at > 0 && name[at - 1] != '.')
        at--;
    at -= at > 0;
    *n = stem(name) - at;
    return name + at;
}

/* Returns whether both names have the same ending (tail()), ignoring digits and case. "part-00.csv"
 * and "x.CSV" are alike, and so are "part-00" and "part-01". */
static bool named_alike(const char *a, const char *b)
{
    size_t n, m, i = 0, j = 0;
    const char *p = tail(a, &n), *q = tail(b, &m);
    for (;; i++, j++) {
        while (i < n && p[i] >= '0' && p[i] <= '9')
            i++;
        while (j < m && q[j] >= '0' && q[j] <= '9')
            j++;
        if (i == n || j == m || lower(p[i]) != lower(q[j]))
            return i == n && j == m;
    }
}

/* Returns whether a file describes the data and is not data itself, such as README or
 * LICENSE.txt. */
static bool is_about(const char *name)
{
    static const char *const words[] = {"readme", "license", "licence", "copying"};
    bool about = false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        about |= stem(name) >= strlen(words[i]) && is_word(name, strlen(words[i]), words[i]);
    return about;
}

bool files_named(const char *name, const struct data_format *format)
{
    size_t n;
    const char *ending = tail(name, &n);
    bool named = false;
    for (size_t i = 0; i < DATA_ENDINGS && format->ending[i] != NULL; i++)
        named |= n < stem(name) && is_word(ending, n, format->ending[i]);
    return named;
}

/* Orders files by their names without .gz, so files give the samples in the same order whether or
 * not they are compressed. A file comes before its compressed form (a.csv, a.csv.gz). */
static int by_stem(const void *a, const void *b)
{
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    size_t n = stem(x), m = stem(y);
    int order = memcmp(x, y, n < m ? n : m);
    if (order != 0)
        return order;
    return n != m ? (n < m ? -1 : 1) : strcmp(x, y);
}

/* ---- Lists of files ---- */

void files_close(struct files *f)
{
    file_list_free(f->path, f->n);
    *f = (struct files){0};
}

static int no_memory(const char *path, char error[DATA_ERROR_MAX])
{
    file_error(error, path, "cannot list: no memory");
    return -ENOMEM;
}

/* Appends the path DIR/NAME to the list, or NAME if `dir` is NULL. */
static int append_path(struct files *f, const char *dir, const char *name,
                       char error[DATA_ERROR_MAX])
{
    size_t len = (dir != NULL ? strlen(dir) + 1 : 0) + strlen(name) + 1;
    char **grown = realloc(f->path, (f->n + 1) * sizeof *grown);
    f->path = grown != NULL ? grown : f->path;
    char *path = malloc(len);
    if (grown == NULL || path == NULL) {
        free(path);
        return no_memory(dir != NULL ? dir : name, error);
    }
    snprintf(path, len, "%s%s%s", dir != NULL ? dir : "", dir != NULL ? "/" : "", name);
    f->path[f->n++] = path;
    return 0;
}

/* Removes the files for which keep() returns false. */
static void filter(struct files *f, bool (*keep)(const char *name, void *arg), void *arg)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++) {
        if (keep(file_base_name(f->path[i]), arg))
            f->path[n++] = f->path[i];
        else
            free(f->path[i]);
    }
    f->n = n;
}

/* Removes a compressed file (a.csv.gz) if the list also has the file without .gz (a.csv). */
static void drop_twins(struct files *f)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++) {
        const char *before = n > 0 ? f->path[n - 1] : "", *name = f->path[i];
        bool twin = stem(before) == stem(name) && memcmp(before, name, stem(name)) == 0;
        if (twin)
            free(f->path[i]);
        else
            f->path[n++] = f->path[i];
    }
    f->n = n;
}

/* Lists all files of a directory, as paths. */
static int list_directory(struct files *f, const char *dir, char error[DATA_ERROR_MAX])
{
    char **names;
    size_t n;
    int err = file_list(dir, READER_FILES_MAX, &names, &n, error);
    for (size_t i = 0; i < n && err == 0; i++)
        err = append_path(f, dir, names[i], error);
    file_list_free(names, n);
    if (err == 0 && f->n > 0)
        qsort(f->path, f->n, sizeof *f->path, by_stem);
    drop_twins(f);
    return err;
}

/* ---- Recognising the files of a format. ---- */

static bool keep_ending(const char *name, void *arg)
{
    return ends_in(name, arg);
}

/* Keeps IDX files of images. pair_up() adds their files of labels later. */
static bool keep_images(const char *name, void *arg)
{
    (void)arg;
    return idx_names_images(name);
}

/* Returns whether a file belongs to the list that *arg selects. If *arg is true, these are the
 * files whose names say that they are held out (such as test.csv). If *arg is false, these are all
 * other files. */
static bool keep_held_out(const char *name, void *arg)
{
    return files_held_out(name) == *(bool *)arg;
}

/* Result of comparing a file with a format, by its first bytes and its name. */
enum look {
    LOOK_OTHER, /* The file does not begin like a file of this format. */
    LOOK_EMPTY, /* The file is empty. */
    LOOK_SO,    /* The file begins like a file of this format. */
    /* The name of the file suggests this format, but the file does not begin like a file of this
     * format. */
    LOOK_NAMED
};

/* Reads the first bytes of a file, at most FILES_HEAD. Sets *look: the file begins like the format
 * `f`, begins differently, or is empty. */
static int look_at(const char *path, const struct data_format *f, enum look *look,
                   char error[DATA_ERROR_MAX])
{
    size_t n = 0;
    bool whole = false;
    uint8_t *head = malloc(FILES_HEAD);
    int err = head != NULL ? file_head(path, head, FILES_HEAD, &n, &whole, error)
                           : no_memory(path, error);
    if (err == 0)
        *look = f->looks(head, n, whole) ? LOOK_SO : n == 0 ? LOOK_EMPTY : LOOK_OTHER;
    free(head);
    return err;
}

/* Returns whether the name of file i suggests the format: it has an ending of the format, or the
 * same ending as another file that begins like the format. */
static bool says_format(const struct files *f, const enum look *look, size_t i,
                        const struct data_format *format)
{
    const char *name = file_base_name(f->path[i]);
    bool says = files_named(name, format);
    for (size_t j = 0; j < f->n && !says && !is_about(name); j++)
        says = look[j] == LOOK_SO && named_alike(name, file_base_name(f->path[j]));
    return says;
}

/* Decides what to do with file i, which does not begin like the format. If its name does not
 * suggest the format, the file is ignored. If its name suggests the format, the file is kept,
 * because the reader gives the best error message. Text is an exception: its reader accepts any
 * bytes, so the file is refused here. A file that is named as held out is refused, too, unless the
 * spec says what to hold out. */
static int judge_name(const struct files *f, enum look *look, size_t i,
                      const struct data_format *format, bool split_wanted,
                      char error[DATA_ERROR_MAX])
{
    const char *path = f->path[i], *kind = format->family->name;
    bool says = says_format(f, look, i, format);
    if (says && format->family->shape.form != DATA_TEXT)
        look[i] = LOOK_NAMED;
    else if (!split_wanted && files_held_out(file_base_name(path)))
        return file_error(
            error, path,
            "found no %s at the start of the file, although the file name suggests "
            "held-out data (if the file is training data, name the held-out set with test=)",
            kind);
    else if (says && look[i] != LOOK_EMPTY)
        return file_error(error, path,
                          "found no %s at the start of the file, although the file name ends like "
                          "that of a %s file",
                          kind, kind);
    return 0;
}

static int look_at_all(const struct files *f, enum look *look, const struct data_format *format,
                       bool split_wanted, char error[DATA_ERROR_MAX])
{
    int err = 0;
    for (size_t i = 0; i < f->n && err == 0; i++)
        err = look_at(f->path[i], format, &look[i], error);
    for (size_t i = 0; i < f->n && err == 0; i++)
        if (look[i] != LOOK_SO)
            err = judge_name(f, look, i, format, split_wanted, error);
    return err;
}

/* Keeps the files that begin like the format or whose name suggests it. A file that is alone in the
 * directory is kept in any case, because its reader gives the best error message. */
static int keep_looks(struct files *f, const struct data_format *format, bool split_wanted,
                      char error[DATA_ERROR_MAX])
{
    if (f->n == 0 || (f->n == 1 && format->files == DATA_FILES_BY_LOOKS))
        return 0;
    enum look *look = calloc(f->n, sizeof *look);
    if (look == NULL)
        return no_memory(f->path[0], error);
    int err = look_at_all(f, look, format, split_wanted, error);
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++) {
        if (err == 0 && look[i] >= LOOK_SO)
            f->path[n++] = f->path[i];
        else
            free(f->path[i]);
    }
    f->n = n;
    free(look);
    return err;
}

/* ---- Pairs of image and label files ---- */

int files_partner(const char *path, char found[DATA_SPEC_MAX], char error[DATA_ERROR_MAX])
{
    char name[IDX_NAME_MAX], dir[DATA_SPEC_MAX];
    const char *base = file_base_name(path);
    bool ok = idx_partner(base, name) && (size_t)(base - path) < sizeof dir;
    snprintf(dir, sizeof dir, "%.*s", ok ? (int)(base - path) : 0, path);
    for (int i = 0; ok && i < 2; i++) {
        int n = snprintf(found, DATA_SPEC_MAX, "%s%s%s", dir, name, i ? ".gz" : "");
        if (n > 0 && n < DATA_SPEC_MAX && file_exists(found) && !file_is_directory(found))
            return 0;
    }
    if (!ok)
        return file_error(error, path, "the name is too long");
    file_error(error, path, "found no %s in the same directory, expected it plain or with .gz",
               name);
    return -ENOENT;
}

/* Inserts into the list `images`, after each file of images, the file of labels that belongs to
 * it. */
static int pair_up(struct files *images, char error[DATA_ERROR_MAX])
{
    struct files pairs = {0};
    int err = 0;
    for (size_t i = 0; i < images->n && err == 0; i++) {
        char labels[DATA_SPEC_MAX];
        err = files_partner(images->path[i], labels, error);
        if (err == 0)
            err = append_path(&pairs, NULL, images->path[i], error);
        if (err == 0)
            err = append_path(&pairs, NULL, labels, error);
    }
    files_close(images);
    *images = pairs;
    return err;
}

/* Refuses a file of labels without its file of images. */
static int check_labels(const struct files *f, char error[DATA_ERROR_MAX])
{
    for (size_t i = 0; i < f->n; i++) {
        char found[DATA_SPEC_MAX];
        int err = idx_names_labels(file_base_name(f->path[i]))
                      ? files_partner(f->path[i], found, error)
                      : 0;
        if (err < 0)
            return err;
    }
    return 0;
}

/* ---- Finding the files of a path ---- */

/* Writes the error message for a missing file. If the path seems to contain a mistyped option, the
 * message is about that option. `format` may be NULL. */
static int refuse_missing(const char *path, const struct data_format *format,
                          char error[DATA_ERROR_MAX])
{
    char key[32], keys[96], question[DATA_QUESTION_MAX];
    data_spec_keys(format, keys);
    if (data_spec_stray(path, key))
        file_error(error, path, "found no such file, and no option \"%s\", expected %s%s%s%s", key,
                   keys, format != NULL ? " with " : "", format != NULL ? format->family->name : "",
                   data_spec_question(format, key, question));
    else
        file_error(error, path, "found no such directory or file, expected one with %s data",
                   format != NULL ? format->family->name : "training");
    return -ENOENT;
}

/* Handles a spec that names a single file: the list gets this file. */
static int take_one_file(struct files *f, const char *path, const struct data_format *format,
                         char error[DATA_ERROR_MAX])
{
    if (format->files == DATA_FILES_IDX && !idx_names_images(file_base_name(path)))
        return file_error(error, path,
                          "found a file, expected a directory or a file named "
                          "PREFIX-images-idx3-ubyte");
    return append_path(f, NULL, path, error);
}

/* Finds the files in a directory that have the given format. */
static int find_in_directory(struct files *f, const char *dir, const struct data_format *format,
                             bool split_wanted, char error[DATA_ERROR_MAX])
{
    int err = list_directory(f, dir, error);
    size_t n = f->n, n_binary = 0;
    if (err < 0)
        return err;
    for (size_t i = 0; i < n; i++)
        n_binary += ends_in(f->path[i], ".bin");
    if (format->files == DATA_FILES_IDX) {
        err = check_labels(f, error);
        filter(f, keep_images, NULL);
    } else if (format->files == DATA_FILES_BINARY && n_binary > 0) {
        char ending[] = ".bin";
        filter(f, keep_ending, ending);
    } else
        err = keep_looks(f, format, split_wanted, error);
    if (err < 0 || f->n > 0)
        return err;
    file_error(error, dir, "found no matching file among %zu, expected %s, plain or with .gz", n,
               format->contents);
    return -ENOENT;
}

/* Keeps only the files that are named as held out (held_out true), or only the other files
 * (false). */
static void keep_named(struct files *f, bool held_out)
{
    filter(f, keep_held_out, &held_out);
}

/* Returns how many files in the list have a name that says "held out" (files_held_out()). */
static size_t count_held_out(const struct files *f)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++)
        n += files_held_out(file_base_name(f->path[i]));
    return n;
}

/* Finds the files of PATH or of test=: the file itself, or the files of a directory that have the
 * format. */
static int find_at_path(struct files *f, const char *path, const struct data_format *format,
                        bool split_wanted, char error[DATA_ERROR_MAX])
{
    if (!file_exists(path))
        return refuse_missing(path, format, error);
    return file_is_directory(path) ? find_in_directory(f, path, format, split_wanted, error)
                                   : take_one_file(f, path, format, error);
}

/* Finds the files of test=. If test= is a directory that has files named as held out (such as
 * test.csv), the directory is a whole data set. Its other files are then not used. */
static int find_test(struct files *test, const struct data_spec *s, char error[DATA_ERROR_MAX])
{
    int err = find_at_path(test, s->test, s->format, false, error);
    size_t n = err == 0 ? count_held_out(test) : 0;
    if (file_is_directory(s->test) && n > 0)
        keep_named(test, true);
    return err;
}

static bool is_listed(const struct file_id *list, size_t n, struct file_id id)
{
    bool listed = false;
    for (size_t i = 0; i < n && !listed; i++)
        listed = id.inode != 0 && list[i].device == id.device && list[i].inode == id.inode;
    return listed;
}

static struct file_id *identify(const struct files *f)
{
    struct file_id *id = calloc(f->n + 1, sizeof *id);
    for (size_t i = 0; i < f->n && id != NULL; i++)
        id[i] = file_identify(f->path[i]);
    return id;
}

/* Removes files that are also in `others`, even under another name. If `others` is NULL, removes
 * the second and further names of each file within the list. Without this, a symbolic or hard link
 * would give its samples double weight, and training samples could be in the held-out set. */
static int drop_same(struct files *f, const struct files *others, char error[DATA_ERROR_MAX])
{
    struct file_id *own = identify(f), *known = others != NULL ? identify(others) : own;
    bool ok = own != NULL && known != NULL;
    size_t n = 0, n_all = f->n;
    for (size_t i = 0; i < n_all && ok; i++)
        if (is_listed(known, others != NULL ? others->n : n, own[i])) {
            free(f->path[i]);
        } else {
            own[n] = own[i];
            f->path[n++] = f->path[i];
        }
    if (ok)
        f->n = n;
    if (known != own)
        free(known);
    free(own);
    return ok ? 0 : no_memory(f->n > 0 ? f->path[0] : "the directory", error);
}

/* Divides the files of a directory into training files and held-out files. */
static int part_directory(struct files *train, struct files *test, const struct data_spec *s,
                          char error[DATA_ERROR_MAX])
{
    size_t n = train->n, n_held_out = count_held_out(train);
    int err = 0;
    for (size_t i = 0; i < n && err == 0 && s->test == NULL && !(s->holdout > 0); i++)
        if (files_held_out(file_base_name(train->path[i])))
            err = append_path(test, NULL, train->path[i], error);
    keep_named(train, false);
    if (err == 0)
        err = drop_same(train, NULL, error);
    if (err == 0)
        err = drop_same(test, NULL, error);
    if (err == 0)
        err = drop_same(train, test, error);
    if (err < 0 || train->n > 0)
        return err;
    return file_error(error, s->path,
                      "found no file to train on, expected at least one (held out because of "
                      "their names: %zu files; other files: %zu%s)",
                      n_held_out, n - n_held_out,
                      n > n_held_out ? ", which are duplicates or named by test=" : "");
}

int files_find(struct files *train, struct files *test, const struct data_spec *s,
               char error[DATA_ERROR_MAX])
{
    assert(s->format != NULL && s->path != NULL && s->format->files != DATA_FILES_NONE);
    *train = *test = (struct files){0};
    bool other = s->test != NULL || s->holdout > 0;
    int err = find_at_path(train, s->path, s->format, other, error);
    if (err == 0 && s->test != NULL)
        err = find_test(test, s, error);
    if (err == 0 && file_is_directory(s->path))
        err = part_directory(train, test, s, error);
    if (err == 0 && s->format->files == DATA_FILES_IDX)
        err = pair_up(train, error);
    if (err == 0 && s->format->files == DATA_FILES_IDX)
        err = pair_up(test, error);
    if (err < 0) {
        files_close(train);
        files_close(test);
    }
    return err;
}

int files_all(struct files *f, const char *path, char error[DATA_ERROR_MAX])
{
    *f = (struct files){0};
    int err = !file_exists(path)        ? refuse_missing(path, NULL, error)
              : file_is_directory(path) ? list_directory(f, path, error)
                                        : append_path(f, NULL, path, error);
    if (err < 0)
        files_close(f);
    return err;
}
