/* peer/cmd/expand.c -- replaces an option value that names a file by the contents of that file, or
 * by a more precise value. */
#include "nn/data/data.h"
#include "nn/files/file.h"
#include "peer/cmd/cmd.h"
#include "topology/topology.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Largest size of a file of edges, in bytes. The edges of a larger file would not fit into a run
 * description. */
enum { EDGE_FILE_MAX = 1 << 20 };

static const char prefix[] = "edges:";

static_assert((int)TOPOLOGY_SPEC_MAX <= (int)RUN_VALUE_MAX, "a spec fits into a run's value");

/* Replaces "edges:FILE" by the list of the edges in the file, in canonical form. Returns the same
 * values as cmd_expand(). */
static int expand_topology(const char *value, char out[RUN_VALUE_MAX],
                           char error[OPTIONS_ERROR_MAX])
{
    char canonical[TOPOLOGY_SPEC_MAX], why[TOPOLOGY_ERROR_MAX], file_why[DATA_ERROR_MAX];
    size_t n = sizeof prefix - 1;
    if (strncmp(value, prefix, n) != 0 || !value[n]
        || topology_canonical(value, canonical, why) == 0)
        /* The option keeps its value: the value is not "edges:FILE", or it already lists the
         * edges. */
        return 0;
    const char *path = value + n;
    uint8_t *bytes;
    size_t len;
    if (file_read(path, EDGE_FILE_MAX, NULL, &bytes, &len, file_why)) {
        snprintf(error, OPTIONS_ERROR_MAX, "%s", file_why);
        return -EINVAL;
    }
    int err = topology_edges_text((const char *)bytes, len, canonical, why);
    free(bytes);
    if (err != 0) {
        snprintf(error, OPTIONS_ERROR_MAX, "%.200s: %.280s", path, why);
        return -EINVAL;
    }
    memcpy(out, canonical, strlen(canonical) + 1);
    return 1;
}

/* Adds the data kind to a path: "DIR" becomes "mnist:DIR" if the directory contains MNIST files.
 * Returns 1 if `out` has the new value, 0 if `value` stays, or -EINVAL with a message. */
static int expand_data(const char *value, char out[RUN_VALUE_MAX], char error[OPTIONS_ERROR_MAX])
{
    char kind[DATA_KIND_MAX], why[DATA_ERROR_MAX];
    if (!data_is_path(value))
        return 0;
    if (data_sniff(value, kind, why)) {
        snprintf(error, OPTIONS_ERROR_MAX, "%s", why);
        return -EINVAL;
    }
    int n = snprintf(out, RUN_VALUE_MAX, "%s:%s", kind, value);
    if (n < RUN_VALUE_MAX)
        return 1;
    snprintf(error, OPTIONS_ERROR_MAX, "the path has %zu characters, expected fewer than %d",
             strlen(value), RUN_VALUE_MAX - (int)strlen(kind) - 1);
    return -EINVAL;
}

int cmd_expand(const char *key, const char *value, char out[RUN_VALUE_MAX],
               char error[OPTIONS_ERROR_MAX])
{
    if (strcmp(key, "topology") == 0 || strcmp(key, "final-topology") == 0)
        return expand_topology(value, out, error);
    return strcmp(key, "data") == 0 ? expand_data(value, out, error) : 0;
}
