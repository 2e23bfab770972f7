/* peer/cmd/version.c -- `hearsay --version [--json]`: prints how the program was built, and which
 * libraries and CPU instructions it uses on this machine.
 *
 * CMake passes facts about the build as macro definitions to this file only (CMakeLists.txt). The
 * version of a library comes from the library itself, because the loaded version may differ from
 * the version at build time.
 */
#include "peer/cmd/version.h"

#include "compress/codec.h"
#include "gossip/wire/wire.h"
#include "nn/files/file.h"
#include "nn/math/blas.h"
#include "nn/math/tile.h"
#include "peer/run/exit.h"

#include <errno.h>
#include <jansson.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

enum { TEXT_MAX = 64 };

struct fact
{
    /* Name of a fact, such as "build type". The JSON key has "_" instead of blanks. */
    const char *name;
    const char *text; /* Value of the fact, such as "Release". NULL: not known. */
};

/* Returns the version number from a text such as "OpenBLAS 0.3.21 NO_LAPACKE ...". Returns NULL if
 * the text has no second word. */
static const char *openblas_version(char out[TEXT_MAX])
{
    return sscanf(blas_library(), "%*s %63s", out) == 1 ? out : NULL;
}

/* Returns the name of the CPU instruction set that matrix products use. The name is derived from
 * the number of floats in one SIMD vector of the products. */
static const char *products_level(void)
{
    size_t lanes = tile_lanes();
    return lanes == 16 ? "avx512" : lanes == 8 ? "avx2" : "ref";
}

static const char *or_null(const char *text)
{
    return text[0] != '\0' ? text : NULL;
}

static int print_text(const struct fact *facts)
{
    printf("hearsay %s\n", facts[0].text);
    for (const struct fact *f = facts + 1; f->name != NULL; f++)
        printf("%-21s  %s\n", f->name, f->text != NULL ? f->text : "unknown");
    return 0;
}

static int print_json(const struct fact *facts)
{
    json_t *j = json_object();
    int err = 0;
    for (const struct fact *f = facts; f->name != NULL; f++) {
        char field[TEXT_MAX];
        snprintf(field, sizeof field, "%s", f->name);
        for (char *c = field; (c = strchr(c, ' ')) != NULL;)
            *c = '_';
        err |= json_object_set_new(j, field, f->text != NULL ? json_string(f->text) : json_null());
    }
    err |= json_dumpf(j, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(j);
    return err;
}

int version_print(bool as_json)
{
    char blas[TEXT_MAX];
    const struct fact facts[] = {
        {"version", HEARSAY_VERSION},
        {"revision", or_null(HEARSAY_REVISION)},
        {"compiler", COMPILER},
        {"build type", HEARSAY_BUILD_TYPE},
        {"sanitizers", HEARSAY_SANITIZERS[0] != '\0' ? HEARSAY_SANITIZERS : "none"},
        {"matrix products", products_level()},
        {"compressors", codec_level()},
        {"OpenBLAS kernels", blas_kernels()},
        {"OpenBLAS", openblas_version(blas)},
        {"libuv", uv_version_string()},
        {"libsodium", sodium_version_string()},
        {"msgpack", wire_msgpack_version()},
        {"zlib", file_zlib_version()},
        {"jansson", jansson_version_str()},
        {NULL, NULL},
    };
    int err = as_json ? print_json(facts) : print_text(facts);
    if (err != 0 || fflush(stdout) != 0) {
        fprintf(stderr, "hearsay: cannot write to stdout: %s\n", strerror(errno));
        return CMD_FAILED;
    }
    return CMD_OK;
}
