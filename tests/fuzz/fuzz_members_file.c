/* tests/fuzz/fuzz_members_file.c -- fuzzes the parser of allow-lists: any bytes give a sorted
 * list or an error message. */
#include "peer/admission/allow_list.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* The bytes are copied to a block of exactly their size, so that a sanitizer detects a read
 * beyond them. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char why[ALLOW_LIST_ERROR_MAX] = "", *text = malloc(n > 0 ? n : 1);
    struct allow_list f = {0};
    assert(text != NULL);
    if (n > 0)
        memcpy(text, data, n);
    int err = allow_list_parse(&f, text, n, why);
    free(text);
    if (err != 0) {
        assert(err == -EINVAL && f.n == 0 && f.id == NULL);
        assert(strstr(why, "found ") != NULL && strstr(why, ", expected ") != NULL);
        for (const char *c = why; *c != '\0'; c++)
            assert(*c >= ' ' && *c <= '~');
        return 0;
    }
    assert(f.n >= 1 && f.n <= ALLOW_LIST_IDS_MAX && f.n <= n / (2 * WIRE_ID_BYTES));
    for (size_t i = 0; i < f.n; i++) {
        assert(i == 0 || memcmp(f.id[i - 1], f.id[i], WIRE_ID_BYTES) < 0);
        assert(allow_list_has(&f, f.id[i]));
    }
    allow_list_close(&f);
    return 0;
}
