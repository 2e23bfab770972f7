/* peer/run/arms.h -- the file of `hearsay compare`: arms, each a grid of settings of one command.
 *
 *   command = sim              sim or local; of the top only, as seed, seeds and budget
 *   peers = 8                  settings of all arms: the command's flags, as in a file of --config
 *   seeds = 3
 *   lr = 0.01, 0.03, 0.1       candidates: one of them is chosen for each arm
 *   budget = bytes, seconds:20
 *   [choco]                    an arm
 *   compress = topk:0.01
 *   [exact]                    two arms: a list is an axis
 *   mixer = average
 *   compress = none, qsgd:4    "exact,compress=none" and "exact,compress=qsgd:4"
 *
 * What an arm says stands before what the top says, and a --set KEY=VALUES before both; rounds and
 * epochs, which rule each other out, take each other's place so, too. A list ends at the line's end
 * and has commas between its values; what is in quotes is one value, and so is data, whose commas are
 * its own. Without sections there is one arm. Pure.
 */
#ifndef PEER_RUN_ARMS_H
#define PEER_RUN_ARMS_H

#include "peer/run/grid.h"

enum {
    ARMS_MAX = 128,          /* Arms, their lists multiplied out. */
    ARMS_SECTIONS_MAX = 64,  /* With the top. */
    ARMS_SETTINGS_MAX = 512, /* Lines of a file, and --set. */
    ARMS_VALUES_MAX = 64,    /* A list has so many at most. */
    ARMS_RUNS_MAX = 10000,
    ARMS_BUDGETS_MAX = 4,
    ARMS_TEXT_MAX = 2 * OPTIONS_FILE_MAX,
    ARMS_NAME_MAX = GRID_NAME_MAX
};

struct arms_setting
{
    const char *key, *value[ARMS_VALUES_MAX];
    uint32_t n, section, line; /* Section 0 is the top; line 0 is a --set. */
};

struct arms_budget
{
    bool bytes;  /* Else seconds. */
    double most; /* 0: the least that any run came to. */
};

/* A key with the value that it has in an arm. */
struct arms_pair
{
    const char *key, *value;
};

struct arm
{
    char name[ARMS_NAME_MAX];           /* For people. */
    char dir[ARMS_NAME_MAX];            /* The same as the name of a directory. */
    struct arms_pair pair[OPTIONS_MAX]; /* All but lr. */
    uint32_t n;
    const struct arms_setting *lr; /* The candidates; NULL: none is given. */
};

struct arms
{
    const struct command *command;
    struct arms_setting setting[ARMS_SETTINGS_MAX];
    uint32_t n_settings;
    const char *section[ARMS_SECTIONS_MAX];
    uint32_t n_sections;
    struct arm *arm; /* Owned. */
    uint32_t n_arms;
    uint64_t seed; /* The first. */
    uint32_t n_seeds;
    struct arms_budget budget[ARMS_BUDGETS_MAX];
    uint32_t n_budgets;
    char text[ARMS_TEXT_MAX];
    size_t n_text;
};

/* Read the text of the file `path` (for sentences only), and n_sets texts KEY=VALUES on top of it.
 * 0, or -EINVAL with a sentence that names file, line, what was found and expected, or -ENOMEM; then
 * nothing is held. *a borrows `commands`, and must not be moved. */
__attribute__((warn_unused_result)) int arms_open(struct arms *a, const char *path,
                                                  const char *text, const char *const *sets,
                                                  uint32_t n_sets, const struct command *commands,
                                                  char error[OPTIONS_ERROR_MAX]);
void arms_close(struct arms *a);

/* How many learning rates an arm has: 1 where none is given. */
uint32_t arms_rates(const struct arms *a, uint32_t arm);
/* Its i-th; NULL where none is given: then it is the command's default. */
const char *arms_rate(const struct arms *a, uint32_t arm, uint32_t i);
/* "lr-0.01", "lr-default". */
void arms_rate_dir(const struct arms *a, uint32_t arm, uint32_t i, char out[ARMS_NAME_MAX]);
/* Is it the least or the greatest of several? Where one is no number: false. */
bool arms_rate_at_edge(const struct arms *a, uint32_t arm, uint32_t i);

/* The value that a key has in an arm; NULL: none was given. Not of lr. */
const char *arms_value(const struct arms *a, uint32_t arm, const char *key);

/* The flags of a run. `validate` puts that key behind the data, so that the run is tested on training
 * samples that it leaves out. */
void arms_flags(const struct arms *a, uint32_t arm, uint32_t rate, bool validate, uint64_t seed,
                const char *out, const struct grid_sink *sink);

#endif
