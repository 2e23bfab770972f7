/* peer/run/grid.h -- a grid of settings of one command, and seeds: --sweep lr=0.01,0.1 --seeds 3.
 *
 *   axes       --sweep lr=0.01,0.1   --sweep batch=16,32      or both in one, with a blank between
 *   settings   lr=0.01,batch=16   lr=0.01,batch=32   lr=0.1,batch=16   lr=0.1,batch=32
 *   runs       each of them with --seed S, S + 1, ..., so many as --seeds says
 *
 * A key is any flag of the command that takes a value; what suits the flag is the parser's to say,
 * when it gets the command line of a run. Values end at a comma, so that none can have one. Pure.
 */
#ifndef PEER_RUN_GRID_H
#define PEER_RUN_GRID_H

#include "peer/run/options.h"

enum {
    GRID_AXES_MAX = 8,
    GRID_VALUES_MAX = 256, /* One axis has so many at most. */
    GRID_RUNS_MAX = 10000, /* Settings times seeds. */
    GRID_TEXT_MAX = 8192,  /* Bytes of all --sweep together. */
    GRID_NAME_MAX = 256 /* Bytes of a setting's name, with the NUL: a file system takes no more. */
};

struct grid_axis
{
    const char *key, *value[GRID_VALUES_MAX];
    uint32_t n;
};

struct grid
{
    const struct options *o; /* Borrowed. */
    struct grid_axis axis[GRID_AXES_MAX];
    uint32_t n_axes;
    uint32_t n_settings; /* At least one: that of no axes has no name. */
    uint64_t seed;       /* The first. */
    uint32_t n_seeds;
    char text[GRID_TEXT_MAX]; /* Keys and values, cut apart. */
};

/* The rows that a command has for it, which also takes the key "seed". */
#define GRID_ROWS                                                                                  \
    {.name = "sweep",                                                                              \
     .kind = OPTION_TEXT,                                                                          \
     .arg = "KEY=V,V,...",                                                                         \
     .many = true,                                                                                 \
     .help =                                                                                       \
         "run once with each of these values of the flag --KEY; several make a grid. Each run "    \
         "has a directory in --out (default hearsay-sweep), and one that has finished is not "     \
         "done again"},                                                                            \
    {                                                                                              \
        .name = "seeds", .kind = OPTION_UINT, .arg = "N", .fallback = "1", .min = 1, .max = 1000,  \
        .help = "run with so many seeds, from --seed on, and show mean and standard deviation"     \
    }

/* Was one of these flags given? */
bool grid_asked(const struct options *o);

/* Take --sweep and --seeds apart. 0, or -EINVAL with a sentence; *g must not be moved. */
__attribute__((warn_unused_result)) int grid_open(struct grid *g, const struct options *o,
                                                  char error[OPTIONS_ERROR_MAX]);

/* The value that an axis has in a setting. */
const char *grid_value(const struct grid *g, uint32_t setting, uint32_t axis);

/* "lr=0.01,batch=16", "" without axes; as the name of a directory: a slash is %2F there, and % is %25.
 * False where it is too long. */
bool grid_name(const struct grid *g, uint32_t setting, char out[GRID_NAME_MAX]);

/* The flags of a run: those that were given, the setting's, --seed and --out. `value` is NULL for a
 * flag without one; all is borrowed for the call. */
struct grid_sink
{
    void (*flag)(void *self, const char *name, const char *value);
    void *self;
};
void grid_flags(const struct grid *g, uint32_t setting, uint64_t seed, const char *out,
                const struct grid_sink *sink);

#endif
