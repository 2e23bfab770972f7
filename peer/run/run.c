#include "peer/run/run.h"

#include "compress/compress.h"
#include "gossip/mixers/mixer.h"
#include "nn/math/number.h"
#include "peer/run/key.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    RUN_KEY_MAX = 32,    /* Of a key in a text, more than any has. */
    WARMUP_ROUNDS = 100, /* The default, at most a tenth of the run. */
    NOMINAL_SIDE = 256,  /* Square tensor on which a codec's size is taken. */
    NOMINAL_FLOATS = NOMINAL_SIDE * NOMINAL_SIDE,
    ROUNDS_DIGITS = 10
};

/* A codec under this many bytes a parameter drops so much that gossip without
 * gradients stalls; the last phase then takes a finer one. */
static const double fine_bytes_per_float = 0.4;
static const char fine_codec[] = "qsgd:4";

/* NULL if there is none; *place is its index. */
static const struct run_key *find_key(const char *name, size_t *place)
{
    for (size_t i = 0; run_keys[i].name != NULL; i++)
        if (strcmp(run_keys[i].name, name) == 0) {
            *place = i;
            return &run_keys[i];
        }
    return NULL;
}

/* ---- One value: canonical text <-> the field. ---- */

static void put_integer(void *field, size_t size, uint64_t v)
{
    if (size == sizeof(bool))
        *(bool *)field = v != 0;
    else if (size == sizeof(uint32_t))
        memcpy(field, &(uint32_t){(uint32_t)v}, sizeof(uint32_t));
    else
        memcpy(field, &v, sizeof v);
}

static uint64_t get_integer(const void *field, size_t size)
{
    uint32_t v32;
    uint64_t v;
    if (size == sizeof(bool))
        return *(const bool *)field;
    if (size == sizeof v32) {
        memcpy(&v32, field, sizeof v32);
        return v32;
    }
    memcpy(&v, field, sizeof v);
    return v;
}

/* `gamma=auto` is gamma_auto and a gamma of 0, which no number can give. */
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
        if (number_whole(canonical, &whole)) /* Else a word, which is resolved later. */
            put_integer(field, key->size, whole);
        break;
    case RUN_REAL:
        if (number_real(canonical, &real))
            memcpy(field, &real, sizeof real);
        break;
    case RUN_CHOICE:
        put_integer(field, key->size, (uint64_t)number_choice(key->choices, canonical));
        break;
    }
}

static void choice_text(const char *choices, uint64_t place, char out[RUN_VALUE_MAX])
{
    size_t n;
    const char *name = number_choice_at(choices, place, &n);
    memcpy(out, name, n);
    out[n] = '\0';
}

static void field_text(const struct run *r, const struct run_key *key, char out[RUN_VALUE_MAX])
{
    const void *field = (const char *)r + key->at;
    switch (key->kind) {
    case RUN_TEXT:
        memcpy(out, field, strlen(field) + 1);
        break;
    case RUN_UINT:
        snprintf(out, RUN_VALUE_MAX, "%llu", (unsigned long long)get_integer(field, key->size));
        break;
    case RUN_REAL:
        if (field == &r->gamma && r->gamma_auto)
            memcpy(out, "auto", sizeof "auto");
        else
            number_real_text(*(const double *)field, out);
        break;
    case RUN_CHOICE:
        choice_text(key->choices, get_integer(field, key->size), out);
        break;
    }
}

/* ---- The canonical text. ---- */

/* The key after `last` in the order of names; NULL at the end. */
static const struct run_key *next_key(const struct run_key *last)
{
    const struct run_key *next = NULL;
    for (const struct run_key *k = run_keys; k->name != NULL; k++)
        if ((last == NULL || strcmp(k->name, last->name) > 0)
            && (next == NULL || strcmp(k->name, next->name) < 0))
            next = k;
    return next;
}

/* Returns the length; over WIRE_RUN_MAX, *out is cut. */
static size_t write_text(const struct run *r, char out[WIRE_RUN_MAX + 1])
{
    char value[RUN_VALUE_MAX];
    size_t n = 0;
    for (const struct run_key *k = next_key(NULL); k != NULL; k = next_key(k)) {
        field_text(r, k, value);
        size_t at = n < WIRE_RUN_MAX ? n : WIRE_RUN_MAX;
        n += (size_t)snprintf(out + at, WIRE_RUN_MAX + 1 - at, "%s=%s\n", k->name, value);
    }
    return n;
}

/* ---- "auto". ---- */

/* final-compress=auto: the run's own codec if it is fine enough. */
static int resolve_final(const struct run_key *key, const char *codec, char out[RUN_VALUE_MAX],
                         char error[RUN_ERROR_MAX])
{
    if (strcmp(codec, RUN_AUTO) == 0)
        return run_canonical_value(key, fine_codec, out, error);
    struct segment one = {.name = "x",
                          .n = NOMINAL_FLOATS,
                          .rows = NOMINAL_SIDE, /* Square, for codecs of matrices. */
                          .cols = NOMINAL_SIDE,
                          .n_dims = 2,
                          .dims = {NOMINAL_SIDE, NOMINAL_SIDE},
                          .trained = true};
    struct compress *c;
    int rc = compress_open(&c, codec, &one, 1);
    if (rc != 0) {
        snprintf(error, RUN_ERROR_MAX, "--compress: cannot set up '%.64s'", codec);
        return rc;
    }
    double bytes = (double)compress_nominal(c) / NOMINAL_FLOATS;
    compress_close(c);
    return run_canonical_value(key, bytes >= fine_bytes_per_float ? codec : fine_codec, out, error);
}

static uint64_t resolve_warmup(uint64_t rounds)
{
    return rounds / 10 < WARMUP_ROUNDS ? rounds / 10 : WARMUP_ROUNDS;
}

/* Turn an "auto" that depends on the rest of the run into its value; any other
 * canonical text stays as it is. Another key's field must be in *r by then. */
static int resolve(const struct run *r, const struct run_key *key, char value[RUN_VALUE_MAX],
                   char error[RUN_ERROR_MAX])
{
    if (key->word == NULL || strcmp(value, key->word) != 0)
        return 0;
    if (key->at == offsetof(struct run, final_compress))
        return resolve_final(key, r->compress, value, error);
    if (key->at == offsetof(struct run, warmup))
        snprintf(value, RUN_VALUE_MAX, "%llu", (unsigned long long)resolve_warmup(r->rounds));
    return 0;
}

/* ---- Public. ---- */

int run_flags_set(struct run_flags *f, const char *name, const char *value,
                  char error[RUN_ERROR_MAX])
{
    char canonical[RUN_VALUE_MAX], q[RUN_QUOTE_MAX + 4];
    size_t place;
    const struct run_key *key = find_key(name, &place);
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
    int rc = run_canonical_value(key, value, canonical, error);
    if (rc == 0)
        memcpy(f->value[place], canonical, strlen(canonical) + 1);
    return rc;
}

const char *run_flags_value(const struct run_flags *f, const char *name)
{
    size_t place;
    const struct run_key *key = find_key(name, &place);
    assert(key != NULL);
    return f->value[place];
}

bool run_flags_any(const struct run_flags *f)
{
    for (size_t i = 0; run_keys[i].name != NULL; i++)
        if (f->value[i][0] != '\0' && run_keys[i].at != offsetof(struct run, data))
            return true;
    return false;
}

/* Was a mixer given that adds up updates and sends no models? */
static bool sends_updates(const struct run_flags *f)
{
    size_t place;
    const struct run_key *key = find_key("mixer", &place);
    assert(key != NULL);
    for (uint32_t i = 0; mixer_all[i] != NULL; i++)
        if (strcmp(f->value[place], mixer_all[i]->name) == 0)
            return mixer_all[i]->updates;
    return false;
}

/* Canonical text of what was given, or of the default. */
static int flag_or_default(const struct run_flags *f, size_t place, char value[RUN_VALUE_MAX],
                           char error[RUN_ERROR_MAX])
{
    const struct run_key *key = &run_keys[place];
    if (f->value[place][0] != '\0') {
        memcpy(value, f->value[place], RUN_VALUE_MAX);
        return 0;
    }
    if (key->at == offsetof(struct run, rounds)) { /* None: not a value to be given. */
        memcpy(value, "0", sizeof "0");
        return 0;
    }
    const char *fallback = key->fallback;
    if (key->at == offsetof(struct run, compress) && sends_updates(f))
        fallback =
            fine_codec; /* Its messages do not bring models together, so drift cannot choose. */
    return run_canonical_value(key, fallback, value, error);
}

/* ---- What goes with what. ---- */

static bool sends_models(const struct run *r)
{
    return !mixer_all[r->mixer]->updates;
}

static bool is_sgd(const struct run *r)
{
    return r->optimiser == OPTIMISER_SGD;
}

static bool is_adam(const struct run *r)
{
    return r->optimiser != OPTIMISER_SGD;
}

static bool has_one_codec(const struct run *r)
{
    return strcmp(r->compress, RUN_AUTO) != 0;
}

static bool lacks_norms(const struct run *r)
{
    return !model_has_norm(r->model);
}

/* Keys that say something of some runs only. Elsewhere they have the default,
 * so that there is one spelling, and may not be given. */
static const struct
{
    const char *name, *of; /* `of` decides whether it is of use. */
    bool (*useless)(const struct run *r);
    const char *why;
} own_keys[] = {
    {"error-feedback", "mixer", sends_models,
     "only with --mixer average: CHOCO has error feedback built in"},
    {"factor-masking", "mixer", sends_models,
     "only with --mixer average: CHOCO sends models, not momentum"},
    {"drift-target", "compress", has_one_codec,
     "only with --compress auto: nothing else chooses by the drift"},
    {"nesterov", "optimiser", is_adam, "only with --optimiser sgd: Adam's momentum has one form"},
    {"beta2", "optimiser", is_sgd, "only with --optimiser adam or adamw: SGD has no second moment"},
    {"norm", "model", lacks_norms,
     "only with a --model that has norms, such as resnet:20 or vgg11:bn"},
};

enum { OWN_KEYS = sizeof own_keys / sizeof own_keys[0] };

static void clear_useless(struct run *r)
{
    for (size_t i = 0; i < OWN_KEYS; i++) {
        size_t place;
        const struct run_key *key = find_key(own_keys[i].name, &place);
        assert(key != NULL);
        if (own_keys[i].useless(r))
            put_field(r, key, key->fallback);
    }
}

static bool is_useless(const struct run *r, const char *name)
{
    for (size_t i = 0; i < OWN_KEYS; i++)
        if (strcmp(own_keys[i].name, name) == 0)
            return own_keys[i].useless(r);
    return false;
}

/* What was given that this run has no use for? Its place in own_keys[], OWN_KEYS
 * where there is nothing. */
static size_t given_in_vain(const struct run *r, const struct run_flags *f)
{
    size_t i = 0;
    while (i < OWN_KEYS
           && (run_flags_value(f, own_keys[i].name)[0] == '\0' || !own_keys[i].useless(r)))
        i++;
    return i;
}

static int check_given(const struct run *r, const struct run_flags *f, char error[RUN_ERROR_MAX])
{
    size_t i = given_in_vain(r, f);
    if (i == OWN_KEYS)
        return 0;
    snprintf(error, RUN_ERROR_MAX, "--%s: %s", own_keys[i].name, own_keys[i].why);
    return -EINVAL;
}

/* The same of a run that we did not make: say what it has, too. */
static int check_given_to(const struct run *r, const struct run_flags *f, char error[RUN_ERROR_MAX])
{
    char theirs[RUN_VALUE_MAX];
    size_t place, i = given_in_vain(r, f);
    if (i == OWN_KEYS)
        return 0;
    const struct run_key *of = find_key(own_keys[i].of, &place);
    assert(of != NULL);
    field_text(r, of, theirs);
    snprintf(error, RUN_ERROR_MAX, "--%s: %s, and the cluster's run has %s=%.120s",
             own_keys[i].name, own_keys[i].why, of->name, theirs);
    return -EINVAL;
}

/* What one value rules out in another. */
static int check_together(const struct run *r, char error[RUN_ERROR_MAX])
{
    struct data_shape shape;
    if (!sends_models(r) && r->policy != RUN_SYNC) {
        snprintf(error, RUN_ERROR_MAX,
                 "--mixer %s: needs --policy sync: an update is made at the model that the one "
                 "before has led to",
                 mixer_all[r->mixer]->name);
        return -EINVAL;
    }
    if (!sends_models(r) && !has_one_codec(r)) {
        snprintf(
            error, RUN_ERROR_MAX,
            "--mixer %s: needs a codec by --compress, not auto: its updates do not bring models "
            "together, whatever the drift",
            mixer_all[r->mixer]->name);
        return -EINVAL;
    }
    if (strcmp(r->augment, "none") != 0 && data_kind_fixed(r->data)
        && data_shape(r->data, &shape) == 0 && shape.form != DATA_IMAGES) {
        snprintf(error, RUN_ERROR_MAX, "--augment %s: only of images, but the data are %.100s",
                 r->augment, r->data);
        return -EINVAL;
    }
    return 0;
}

/* ---- Public: flags and texts to runs and back. ---- */

static int fill_run(struct run *r, const struct run_flags *f, char error[RUN_ERROR_MAX])
{
    struct run made = {0};
    char value[RUN_VALUE_MAX], canonical[WIRE_RUN_MAX + 1];
    /* Twice: an "auto" is resolved once what it depends on is known. */
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; run_keys[i].name != NULL; i++) {
            int rc = flag_or_default(f, i, value, error);
            if (rc == 0 && pass == 1)
                rc = resolve(&made, &run_keys[i], value, error);
            if (rc != 0)
                return rc;
            put_field(&made, &run_keys[i], value);
        }
    made.gamma_auto = made.gamma == 0;
    clear_useless(&made);
    int err = check_together(&made, error);
    if (err != 0)
        return err;
    /* Unknown rounds are counted with the digits they may get. */
    size_t n = write_text(&made, canonical) + (made.rounds == 0 ? 2 * ROUNDS_DIGITS : 0);
    if (n > WIRE_RUN_MAX) {
        snprintf(error, RUN_ERROR_MAX,
                 "the run's text would have %zu bytes, at most %d are allowed: shorten --topology "
                 "or --model",
                 n, (int)WIRE_RUN_MAX);
        return -EINVAL;
    }
    *r = made;
    return 0;
}

int run_from_flags(struct run *r, const struct run_flags *f, char error[RUN_ERROR_MAX])
{
    struct run made;
    int rc = fill_run(&made, f, error);
    if (rc == 0)
        rc = check_given(&made, f, error);
    if (rc == 0)
        *r = made;
    return rc;
}

bool run_flags_orphan(const struct run_flags *f, char why[RUN_ERROR_MAX])
{
    struct run r;
    if (fill_run(&r, f, why) != 0)
        return false;
    for (size_t i = 0; i < OWN_KEYS; i++) {
        bool in_vain = run_flags_value(f, own_keys[i].name)[0] != '\0' && own_keys[i].useless(&r);
        if (in_vain && run_flags_value(f, own_keys[i].of)[0] != '\0')
            return false;
    }
    return check_given(&r, f, why) != 0;
}

size_t run_text(const struct run *r, char out[WIRE_RUN_MAX + 1])
{
    assert(r->rounds >= 1 && data_kind_fixed(r->data));
    size_t n = write_text(r, out);
    assert(n <= WIRE_RUN_MAX); /* run_from_flags() saw to it. */
    return n;
}

/* One "key=value\n" into the flags; *at moves behind it. */
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
        snprintf(error, RUN_ERROR_MAX, "the run's text has no key=value line at byte %zu", *at);
        return -EINVAL;
    }
    *equals = '\0';
    *at += len + 1;
    return run_flags_set(f, line, equals + 1, error);
}

int run_from_text(struct run *r, const char *text, size_t n, char error[RUN_ERROR_MAX])
{
    struct run_flags f = {0};
    struct run parsed;
    char again[WIRE_RUN_MAX + 1];
    if (n > WIRE_RUN_MAX) {
        snprintf(error, RUN_ERROR_MAX, "the run's text has %zu bytes, at most %d are allowed", n,
                 (int)WIRE_RUN_MAX);
        return -EINVAL;
    }
    for (size_t at = 0; at < n;) {
        int rc = read_line(&f, text, n, &at, error);
        if (rc != 0)
            return rc;
    }
    for (size_t i = 0; run_keys[i].name != NULL; i++)
        if (f.value[i][0] == '\0') {
            snprintf(error, RUN_ERROR_MAX, "the run's text lacks %s", run_keys[i].name);
            return -EINVAL;
        }
    int rc = fill_run(&parsed, &f, error);
    if (rc != 0)
        return rc;
    if (!data_kind_fixed(parsed.data)) {
        snprintf(error, RUN_ERROR_MAX, "the run's text has data=%.100s, which fixes no shapes",
                 parsed.data);
        return -EINVAL;
    }
    if (run_text(&parsed, again) != n || memcmp(again, text, n) != 0) {
        snprintf(error, RUN_ERROR_MAX, "the run's text is not canonical");
        return -EINVAL;
    }
    *r = parsed;
    return 0;
}

void run_id(const struct run *r, uint8_t id[RUN_ID_BYTES])
{
    char text[WIRE_RUN_MAX + 1];
    size_t n = run_text(r, text);
    int rc = crypto_generichash(id, RUN_ID_BYTES, (const uint8_t *)text, n, NULL, 0);
    assert(rc == 0);
}

int run_check_flags(const struct run *r, const struct run_flags *f, char error[RUN_ERROR_MAX])
{
    char mine[RUN_VALUE_MAX], theirs[RUN_VALUE_MAX];
    for (size_t i = 0; run_keys[i].name != NULL; i++) {
        if (f->value[i][0] == '\0' || is_useless(r, run_keys[i].name))
            continue;
        memcpy(mine, f->value[i], sizeof mine);
        int rc = resolve(r, &run_keys[i], mine, error);
        if (rc != 0)
            return rc;
        field_text(r, &run_keys[i], theirs);
        bool is_data = run_keys[i].at == offsetof(struct run, data);
        if (is_data ? !data_kind_agrees(mine, theirs) : strcmp(mine, theirs) != 0) {
            snprintf(error, RUN_ERROR_MAX,
                     "--%s %.120s contradicts the cluster's run, which has %s=%.120s",
                     run_keys[i].name, mine, run_keys[i].name, theirs);
            return -EINVAL;
        }
    }
    return check_given_to(r, f, error);
}
