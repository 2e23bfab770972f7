/* peer/run/run.c -- converts flags to runs, runs to run descriptions, and run descriptions to runs.
 *
 *   flags  --fill in defaults, replace "auto"-->  struct run  --sort by name-->  text
 *   text   --read each line as a flag-->  flags  -->  struct run  --must give the same text again
 *
 * A run description from another peer is parsed like a command line, and its run must give the same
 * text again. So each value is checked in one place only, and only canonical texts are accepted. */
#include "peer/run/run.h"

#include "nn/math/number.h"
#include "peer/run/core.h"
#include "peer/run/key.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { ROUNDS_DIGITS = 10 /* Number of digits of the largest number of rounds that is allowed. */ };

const struct run_key *run_key_at(const struct run_trainer *t, size_t place)
{
    const struct run_key *key = t != NULL ? t->keys : run_core_keys;
    for (size_t i = 0; i <= place; i++, key++) {
        /* After the last key of the trainer, continue with the core keys. */
        if (key->name == NULL && t != NULL) {
            t = NULL;
            key = run_core_keys;
        }
        if (key->name == NULL)
            return NULL;
    }
    /* The index `place` of a key is also the index of its value in struct run_flags.value. */
    assert(place < RUN_KEYS_MAX);
    return key - 1;
}

/* Finds a key by its present or former name. Returns NULL if no key has that name. Sets `*place` to
 * the index of the key's value in struct run_flags. */
static const struct run_key *find_key(const struct run_trainer *t, const char *name, size_t *place)
{
    const struct run_key *key;
    for (*place = 0; (key = run_key_at(t, *place)) != NULL; (*place)++)
        if (strcmp(key->name, name) == 0 || (key->former != NULL && strcmp(key->former, name) == 0))
            return key;
    return NULL;
}

/* ---- One value: canonical text <-> field of struct run. ---- */

/* Stores an integer in a field of `size` bytes: a bool, a uint32_t (or enum) or a uint64_t. The
 * field may be in run.own, which is an array of bytes, so memcpy() is used. */
static void put_integer(void *field, size_t size, uint64_t v)
{
    if (size == sizeof(bool))
        memcpy(field, &(bool){v != 0}, sizeof(bool));
    else if (size == sizeof(uint32_t))
        memcpy(field, &(uint32_t){(uint32_t)v}, sizeof(uint32_t));
    else
        memcpy(field, &v, sizeof v);
}

static uint64_t get_integer(const void *field, size_t size)
{
    bool on;
    uint32_t v32;
    uint64_t v;
    if (size == sizeof on) {
        memcpy(&on, field, sizeof on);
        return on;
    }
    if (size == sizeof v32) {
        memcpy(&v32, field, sizeof v32);
        return v32;
    }
    memcpy(&v, field, sizeof v);
    return v;
}

/* Stores a canonical text in the field of its key. A word such as "auto" has no number:
 * `gamma=auto` and `local-steps=auto` are stored as 0, which is not a valid number for either
 * key. */
static void put_field(struct run *r, const struct run_key *key, const char *canonical)
{
    void *field = (char *)r + key->at;
    uint64_t whole;
    double real;
    assert(key->kind != RUN_TEXT || strlen(canonical) < key->size);
    switch (key->kind) {
    case RUN_TEXT:
        memcpy(field, canonical, strlen(canonical) + 1);
        break;
    case RUN_UINT:
        /* A value that is not a number is a word such as "auto". The field is then 0. */
        if (number_whole(canonical, &whole))
            put_integer(field, key->size, whole);
        break;
    case RUN_REAL:
        /* A value that is not a number is the word "auto". The field is then 0. */
        if (number_real(canonical, &real))
            memcpy(field, &real, sizeof real);
        break;
    case RUN_CHOICE:
        put_integer(field, key->size, (uint64_t)number_choice(key->choices, canonical));
        break;
    }
}

/* Writes the choice with index `place` in the list "a|b|c" as a NUL-terminated text. If the last
 * choice is "word:N", larger indexes stand for "word:1", "word:2" and so on. */
static void choice_text(const char *choices, uint64_t place, char out[RUN_VALUE_MAX])
{
    size_t n;
    uint32_t number;
    const char *name = number_choice_at(choices, place, &n, &number);
    bool numbered = n > 2 && memcmp(name + n - 2, ":N", 2) == 0;
    memcpy(out, name, n);
    out[n] = '\0';
    if (numbered)
        snprintf(out + n - 1, RUN_VALUE_MAX - n, "%lu", (unsigned long)number);
}

/* Writes the canonical text of the value in a key's field. This is the inverse of put_field(). */
static void field_text(const struct run *r, const struct run_key *key, char out[RUN_VALUE_MAX])
{
    const void *field = (const char *)r + key->at;
    double real;
    switch (key->kind) {
    case RUN_TEXT:
        memcpy(out, field, strlen(field) + 1);
        break;
    case RUN_UINT:
        if (field == &r->local_steps && r->local_steps == 0)
            memcpy(out, key->word, strlen(key->word) + 1);
        else
            snprintf(out, RUN_VALUE_MAX, "%llu", (unsigned long long)get_integer(field, key->size));
        break;
    case RUN_REAL:
        memcpy(&real, field, sizeof real);
        if (field == &r->gamma && r->gamma_auto)
            memcpy(out, "auto", sizeof "auto");
        else
            number_real_text(real, out);
        break;
    case RUN_CHOICE:
        choice_text(key->choices, get_integer(field, key->size), out);
        break;
    }
}

/* ---- Writing the canonical text. ---- */

/* Returns the name of a key in the run description. A key that was renamed keeps its former name
 * there, because peers, checkpoints and model files of other versions compare and parse the
 * description. */
static const char *text_name(const struct run_key *key)
{
    return key->former != NULL ? key->former : key->name;
}

/* Returns the key that follows `last` when all keys of the run are sorted by name. If `last` is
 * NULL, returns the first key. Returns NULL after the last key. */
static const struct run_key *next_key(const struct run *r, const struct run_key *last)
{
    const struct run_key *next = NULL, *k;
    for (size_t i = 0; (k = run_key_at(r->trainer, i)) != NULL; i++)
        if ((last == NULL || strcmp(text_name(k), text_name(last)) > 0)
            && (next == NULL || strcmp(text_name(k), text_name(next)) < 0))
            next = k;
    return next;
}

/* Finds a key whose value is incomplete (run_key.fixed), such as data=csv before the files have
 * been read. Writes that value to `value`. Returns NULL if all values are complete; only the number
 * of rounds may then still be unknown. */
static const struct run_key *open_key(const struct run *r, char value[RUN_VALUE_MAX])
{
    const struct run_key *k;
    for (size_t i = 0; (k = run_key_at(r->trainer, i)) != NULL; i++) {
        if (k->fixed == NULL)
            continue;
        field_text(r, k, value);
        if (!k->fixed(value))
            return k;
    }
    return NULL;
}

/* Writes all keys, sorted by name over the core's and the trainer's table together, so that the
 * text does not depend on which table has a key. Returns the length. If the length exceeds
 * WIRE_RUN_MAX, the text is truncated. */
static size_t write_text(const struct run *r, char out[WIRE_RUN_MAX + 1])
{
    char value[RUN_VALUE_MAX];
    size_t n = 0;
    for (const struct run_key *k = next_key(r, NULL); k != NULL; k = next_key(r, k)) {
        field_text(r, k, value);
        size_t at = n < WIRE_RUN_MAX ? n : WIRE_RUN_MAX;
        n += (size_t)snprintf(out + at, WIRE_RUN_MAX + 1 - at, "%s=%s\n", text_name(k), value);
    }
    return n;
}

/* Replaces a word such as "auto" by the value that it means in the run `r` for a peer with the
 * flags `f`. Any other value stays unchanged. The fields of all keys without such a word must
 * already be set in `r`. Returns 0, or a negative errno with a message. */
static int resolve(const struct run *r, const struct run_flags *f, const struct run_key *key,
                   char value[RUN_VALUE_MAX], char error[RUN_ERROR_MAX])
{
    if (key->resolve == NULL || strcmp(value, key->word) != 0)
        return 0;
    return key->resolve(r, f, value, error);
}

/* ---- Setting flags and reading their values. ---- */

/* A value with control characters is refused, because it would break the lines of the run
 * description or confuse a terminal. */
int run_flags_set(struct run_flags *f, const char *name, const char *value,
                  char error[RUN_ERROR_MAX])
{
    char canonical[RUN_VALUE_MAX], q[RUN_QUOTE_MAX + 4];
    size_t place;
    const struct run_key *key = find_key(f->trainer, name, &place);
    if (key == NULL) {
        snprintf(error, RUN_ERROR_MAX, "--%s: no such flag", run_quote(q, name));
        return -EINVAL;
    }
    size_t n = strnlen(value, RUN_VALUE_MAX);
    if (n == 0 || n == RUN_VALUE_MAX)
        return run_refuse(error, key->name, value, "1 to 1399 characters");
    for (size_t i = 0; i < n; i++)
        if (iscntrl((unsigned char)value[i]))
            return run_refuse(error, key->name, value, "a value without control characters");
    int err = run_canonical_value(key, value, canonical, error);
    if (err == 0)
        memcpy(f->value[place], canonical, strlen(canonical) + 1);
    return err;
}

const char *run_flags_value(const struct run_flags *f, const char *name)
{
    size_t place;
    const struct run_key *key = find_key(f->trainer, name, &place);
    assert(key != NULL);
    return f->value[place];
}

bool run_flags_any(const struct run_flags *f)
{
    const struct run_key *key;
    for (size_t i = 0; (key = run_key_at(f->trainer, i)) != NULL; i++)
        if (f->value[i][0] != '\0' && !key->is_per_peer)
            return true;
    return false;
}

/* Writes the canonical text of a key's given value, or of its default if no value was given.
 * Returns 0, or a negative errno with a message. */
static int flag_or_default(const struct run_flags *f, size_t place, char value[RUN_VALUE_MAX],
                           char error[RUN_ERROR_MAX])
{
    const struct run_key *key = run_key_at(f->trainer, place);
    if (f->value[place][0] != '\0') {
        memcpy(value, f->value[place], RUN_VALUE_MAX);
        return 0;
    }
    /* A key without a default has a placeholder such as "0" as `fallback`. The placeholder is not a
     * valid value, so it is not checked. */
    if (!run_key_has_default(key)) {
        memcpy(value, key->fallback, strlen(key->fallback) + 1);
        return 0;
    }
    const char *fallback = key->fallback_by != NULL ? key->fallback_by(f) : key->fallback;
    return run_canonical_value(key, fallback, value, error);
}

/* ---- Keys that have no effect. ---- */

static bool key_has_no_effect(const struct run *r, const struct run_key *key)
{
    return key->useless != NULL && key->useless(r);
}

/* Sets every key that has no effect in this run to its default, so that runs with equal effect have
 * equal texts. */
static void reset_keys_without_effect(struct run *r)
{
    const struct run_key *key;
    for (size_t i = 0; (key = run_key_at(r->trainer, i)) != NULL; i++)
        if (key_has_no_effect(r, key))
            put_field(r, key, key->fallback);
}

/* Returns a key that was given as a flag but has no effect in this run, or NULL if every given key
 * has an effect. */
static const struct run_key *given_without_effect(const struct run *r, const struct run_flags *f)
{
    const struct run_key *key;
    for (size_t i = 0; (key = run_key_at(r->trainer, i)) != NULL; i++)
        if (f->value[i][0] != '\0' && key_has_no_effect(r, key))
            return key;
    return NULL;
}

/* Refuses a given flag that has no effect in the run that is made from these flags. Returns 0, or
 * -EINVAL with a message. */
static int check_given(const struct run *r, const struct run_flags *f, char error[RUN_ERROR_MAX])
{
    const struct run_key *key = given_without_effect(r, f);
    if (key == NULL)
        return 0;
    snprintf(error, RUN_ERROR_MAX, "--%s: %s", key->name, key->why);
    return -EINVAL;
}

/* Refuses a given flag that has no effect in the cluster's run. The message names the key that
 * decides this, and its value in the cluster's run. */
static int check_given_to(const struct run *r, const struct run_flags *f, char error[RUN_ERROR_MAX])
{
    char theirs[RUN_VALUE_MAX];
    size_t place;
    const struct run_key *key = given_without_effect(r, f);
    if (key == NULL)
        return 0;
    const struct run_key *of = find_key(r->trainer, key->of, &place);
    assert(of != NULL);
    field_text(r, of, theirs);
    snprintf(error, RUN_ERROR_MAX, "--%s: %s, and the cluster's run has %s=%.120s", key->name,
             key->why, of->name, theirs);
    return -EINVAL;
}

/* Checks for combinations of values that are not allowed: first of core keys, then of trainer keys.
 * Returns 0, or -EINVAL with a message. */
static int check_together(const struct run *r, char error[RUN_ERROR_MAX])
{
    int err = run_core_check(r, error);
    bool asks = err == 0 && r->trainer != NULL && r->trainer->check != NULL;
    return asks ? r->trainer->check(r, error) : err;
}

/* ---- Conversion of flags and texts to runs and back. ---- */

/* Makes a run from flags, like run_from_flags(), but accepts flags that have no effect in the run.
 * On failure `*r` is unchanged. */
static int fill_run(struct run *r, const struct run_flags *f, char error[RUN_ERROR_MAX])
{
    struct run made = {.trainer = f->trainer};
    const struct run_key *key;
    char value[RUN_VALUE_MAX], canonical[WIRE_RUN_MAX + 1];
    /* The keys are set in two passes. The second pass replaces words such as "auto" by values,
     * which depend on the other keys. */
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; (key = run_key_at(f->trainer, i)) != NULL; i++) {
            int err = flag_or_default(f, i, value, error);
            if (err == 0 && pass == 1)
                err = resolve(&made, f, key, value, error);
            if (err != 0)
                return err;
            put_field(&made, key, value);
        }
    made.gamma_auto = made.gamma == 0;
    reset_keys_without_effect(&made);
    int err = check_together(&made, error);
    if (err != 0)
        return err;
    /* If the number of rounds is not known yet, leave room in the run description for two values
     * that still grow: the number of rounds, and the warm-up, which depends on it. */
    size_t n = write_text(&made, canonical) + (made.rounds == 0 ? 2 * ROUNDS_DIGITS : 0);
    if (n > WIRE_RUN_MAX) {
        snprintf(error, RUN_ERROR_MAX,
                 "the run description would have %zu bytes, expected at most %d: shorten "
                 "--topology or --model, or give --data with scale=none",
                 n, (int)WIRE_RUN_MAX);
        return -EINVAL;
    }
    *r = made;
    return 0;
}

int run_from_flags(struct run *r, const struct run_flags *f, char error[RUN_ERROR_MAX])
{
    struct run made;
    int err = fill_run(&made, f, error);
    if (err == 0)
        err = check_given(&made, f, error);
    if (err == 0)
        *r = made;
    return err;
}

/* run_flags_orphan() returns false if a flag has no effect although the flag on which it depends
 * (run_key.of) was given, too: these two flags contradict each other in every run. If the other
 * flag is missing, a cluster's run may have the right value of it. */
bool run_flags_orphan(const struct run_flags *f, char why[RUN_ERROR_MAX])
{
    struct run r;
    const struct run_key *key;
    if (fill_run(&r, f, why) != 0)
        return false;
    for (size_t i = 0; (key = run_key_at(f->trainer, i)) != NULL; i++) {
        bool in_vain = f->value[i][0] != '\0' && key_has_no_effect(&r, key);
        if (in_vain && run_flags_value(f, key->of)[0] != '\0')
            return false;
    }
    return check_given(&r, f, why) != 0;
}

bool run_is_fixed(const struct run *r)
{
    char value[RUN_VALUE_MAX];
    return r->rounds >= 1 && open_key(r, value) == NULL;
}

size_t run_text(const struct run *r, char out[WIRE_RUN_MAX + 1])
{
    assert(run_is_fixed(r));
    size_t n = write_text(r, out);
    /* n <= WIRE_RUN_MAX, because run_from_flags() refuses a run with a longer text. */
    assert(n <= WIRE_RUN_MAX);
    return n;
}

/* Parses the "key=value\n" line at offset `*at` as a flag, and moves `*at` past the line. Returns
 * 0, or -EINVAL with a message. */
static int read_line(struct run_flags *f, const char *text, size_t n, size_t *at,
                     char error[RUN_ERROR_MAX])
{
    char line[RUN_KEY_MAX + 1 + RUN_VALUE_MAX];
    const char *end = memchr(text + *at, '\n', n - *at);
    size_t len = end != NULL ? (size_t)(end - text) - *at : n - *at;
    bool fits = end != NULL && len < sizeof line && memchr(text + *at, '\0', len) == NULL;
    if (fits) {
        memcpy(line, text + *at, len);
        line[len] = '\0';
    }
    char *equals = fits ? strchr(line, '=') : NULL;
    if (equals == NULL) {
        snprintf(error, RUN_ERROR_MAX, "the run description has no key=value line at byte %zu",
                 *at);
        return -EINVAL;
    }
    *equals = '\0';
    *at += len + 1;
    return run_flags_set(f, line, equals + 1, error);
}

/* Reads each line of the text as a flag, which checks its value. In addition every key must be
 * present, every value must be complete (run_key.fixed), and the canonical text of the run must
 * equal the input. This last check refuses keys that are out of order or duplicate, and values in
 * another spelling. */
int run_from_text(struct run *r, const struct run_trainer *t, const char *text, size_t n,
                  char error[RUN_ERROR_MAX])
{
    struct run_flags f = {.trainer = t};
    struct run parsed;
    const struct run_key *key;
    char again[WIRE_RUN_MAX + 1], value[RUN_VALUE_MAX];
    if (n > WIRE_RUN_MAX) {
        snprintf(error, RUN_ERROR_MAX, "the run description has %zu bytes, expected at most %d", n,
                 (int)WIRE_RUN_MAX);
        return -EINVAL;
    }
    for (size_t at = 0; at < n;) {
        int err = read_line(&f, text, n, &at, error);
        if (err != 0)
            return err;
    }
    for (size_t i = 0; (key = run_key_at(t, i)) != NULL; i++)
        if (f.value[i][0] == '\0') {
            snprintf(error, RUN_ERROR_MAX, "the run description lacks %s", key->name);
            return -EINVAL;
        }
    int err = fill_run(&parsed, &f, error);
    if (err != 0)
        return err;
    key = open_key(&parsed, value);
    if (key != NULL) {
        snprintf(
            error, RUN_ERROR_MAX,
            "the run description has %s=%.100s, which does not determine the shapes of the data",
            key->name, value);
        return -EINVAL;
    }
    if (run_text(&parsed, again) != n || memcmp(again, text, n) != 0) {
        snprintf(error, RUN_ERROR_MAX, "the run description is not canonical");
        return -EINVAL;
    }
    *r = parsed;
    return 0;
}

/* Reads the key of the line at offset `*at`, and moves `*at` past the line. Returns false if the
 * line is malformed, or if the key has other characters than lower-case letters, digits and dashes
 * and can thus not be shown to a user. */
static bool line_key(const char *text, size_t n, size_t *at, char key[RUN_KEY_MAX + 1])
{
    const char *line = text + *at, *end = memchr(line, '\n', n - *at);
    const char *equals = end != NULL ? memchr(line, '=', (size_t)(end - line)) : NULL;
    size_t len = equals != NULL ? (size_t)(equals - line) : 0;
    if (len == 0 || len > RUN_KEY_MAX)
        return false;
    memcpy(key, line, len);
    key[len] = '\0';
    *at = (size_t)(end - text) + 1;
    return strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789-") == len;
}

bool run_text_is_of_other_trainer(const struct run_trainer *t, const char *text, size_t n,
                                  char found[RUN_KEY_MAX + 1], const char **expected)
{
    char key[RUN_KEY_MAX + 1] = "", last[RUN_KEY_MAX + 1] = "";
    size_t place, n_core = 0;
    found[0] = '\0';
    for (size_t at = 0; at < n; memcpy(last, key, sizeof last)) {
        if (!line_key(text, n, &at, key) || strcmp(last, key) >= 0)
            return false;
        if (t == NULL || strcmp(key, t->keys[0].name) == 0)
            return false;
        n_core += find_key(NULL, key, &place) != NULL;
        if (found[0] == '\0' && find_key(t, key, &place) == NULL)
            memcpy(found, key, sizeof key);
    }
    if (found[0] == '\0' || run_key_at(NULL, n_core) != NULL)
        return false;
    *expected = t->keys[0].name;
    return true;
}

/* Checks that one of the given flags `f` agrees with the value in the cluster's run. `mine` is the
 * given value. If it is a word such as "auto" that does not agree as it is, its meaning in the run
 * is compared. Returns 0, or -EINVAL with a message. */
static int check_flag(const struct run *r, const struct run_flags *f, const struct run_key *key,
                      char mine[RUN_VALUE_MAX], char error[RUN_ERROR_MAX])
{
    char theirs[RUN_VALUE_MAX];
    field_text(r, key, theirs);
    if (key->agrees != NULL && key->agrees(mine, theirs))
        return 0;
    int err = resolve(r, f, key, mine, error);
    if (err != 0)
        return err;
    if (strcmp(mine, theirs) == 0)
        return 0;
    const char *also = strcmp(key->name, "rounds") == 0 ? " (or epochs)" : "";
    snprintf(error, RUN_ERROR_MAX,
             "--%.40s %.80s%s contradicts the cluster's run, which has %.40s=%.80s", key->name,
             mine, also, key->name, theirs);
    return -EINVAL;
}

/* A given flag that has no effect in the run is not compared with the run's value, because that
 * value is only a default. Such flags are reported last, with another message. */
int run_check_flags(const struct run *r, const struct run_flags *f, char error[RUN_ERROR_MAX])
{
    char mine[RUN_VALUE_MAX];
    const struct run_key *key;
    assert(r->trainer == f->trainer);
    for (size_t i = 0; (key = run_key_at(r->trainer, i)) != NULL; i++) {
        if (f->value[i][0] == '\0' || key_has_no_effect(r, key))
            continue;
        memcpy(mine, f->value[i], sizeof mine);
        int err = check_flag(r, f, key, mine, error);
        if (err != 0)
            return err;
    }
    return check_given_to(r, f, error);
}

/* The value of a flag may be incomplete: the data kind "csv", for example, does not define the
 * shape of the data. If such a value agrees with the value in the run `r`, the value in `r` is
 * used. */
int run_with_flags(struct run *out, const struct run *r, const struct run_flags *f,
                   char error[RUN_ERROR_MAX])
{
    struct run_flags all = *f;
    char theirs[RUN_VALUE_MAX];
    const struct run_key *key;
    assert(r->trainer == f->trainer);
    for (size_t i = 0; (key = run_key_at(r->trainer, i)) != NULL; i++) {
        field_text(r, key, theirs);
        bool agrees = key->agrees != NULL && key->agrees(all.value[i], theirs);
        if (all.value[i][0] == '\0' || agrees)
            memcpy(all.value[i], theirs, sizeof theirs);
    }
    return fill_run(out, &all, error);
}
