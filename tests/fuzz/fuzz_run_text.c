/* tests/fuzz/fuzz_run_text.c -- fuzzes the text of a run description, as it arrives in a HELLO of
 * an unknown peer.
 *
 *   input:   place u8 | value, a NUL | text
 *
 * An accepted text is canonical: the run writes the same text, and its values given as flags agree
 * with it. A refused text changes nothing and gives a printable error message. The input also
 * contains one flag, number `place` with `value`, which is compared with the run. Its value is
 * untrusted, because it may come from an environment file. */
#include "peer/sgd/sgd_keys.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void demand(bool ok)
{
    if (!ok)
        abort();
}

static void check_sentence(const char *error)
{
    demand(strnlen(error, RUN_ERROR_MAX) > 8 && strnlen(error, RUN_ERROR_MAX) < RUN_ERROR_MAX);
    for (const char *c = error; *c != '\0'; c++)
        demand((unsigned char)*c >= 0x20 && *c != 0x7f);
}

/* Checks that an error has a message. The message is empty before the call, so that a missing
 * message is detected. */
static int check(int err, const char *error)
{
    demand(err == 0 || err == -EINVAL);
    if (err != 0)
        check_sentence(error);
    return err;
}

/* Parses the command-line flag with index `place` and this value. If the flag is valid by itself,
 * checks whether it agrees with the run *r. */
static void give_flag(const struct run *r, uint8_t place, const char *value)
{
    /* The flags are static because they are large. This function leaves them empty. */
    static struct run_flags flags;
    static struct run out;
    char error[RUN_ERROR_MAX] = "";
    size_t n_keys = 0;
    while (run_key_at(&sgd_keys, n_keys) != NULL)
        n_keys++;
    size_t at = place % n_keys;
    const char *name = run_key_at(&sgd_keys, at)->name;
    flags.trainer = &sgd_keys;
    if (check(run_flags_set(&flags, name, value, error), error) == 0) {
        demand(strcmp(run_flags_value(&flags, name), flags.value[at]) == 0);
        error[0] = '\0';
        bool agrees = check(run_check_flags(r, &flags, error), error) == 0;
        error[0] = '\0';
        if (check(run_with_flags(&out, r, &flags, error), error) == 0 && agrees) {
            error[0] = '\0';
            demand(run_check_flags(&out, &flags, error) == 0);
        }
    }
    memset(flags.value[at], 0, sizeof flags.value[at]);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    static struct run r, untouched;
    static char again[WIRE_RUN_MAX + 1];
    char error[RUN_ERROR_MAX] = "";
    const uint8_t *end = n > 1 ? memchr(p + 1, '\0', n - 1) : NULL;
    if (end == NULL)
        return 0;
    size_t n_text = n - (size_t)(end + 1 - p);
    /* The text is copied to a block of exactly its size, so that a sanitizer detects a read
     * beyond it. */
    char *text = malloc(n_text + (n_text == 0));
    demand(text != NULL);
    memcpy(text, end + 1, n_text);
    r = untouched;
    int err = check(run_from_text(&r, &sgd_keys, text, n_text, error), error);
    if (err != 0) {
        demand(memcmp(&r, &untouched, sizeof r) == 0);
    } else {
        demand(run_is_fixed(&r) && run_text(&r, again) == n_text);
        demand(memcmp(again, text, n_text) == 0 && n_text <= WIRE_RUN_MAX);
        give_flag(&r, p[0], (const char *)p + 1);
    }
    free(text);
    return 0;
}
