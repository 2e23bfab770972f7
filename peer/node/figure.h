/* peer/node/figure.h -- the table of all figures of a peer: one row for each number or text that
 * hearsay shows to users and programs.
 *
 *   figure_all[]  ->  JSON files, /status.json, status --json          peer/uv/metrics.c
 *                     /metrics                                         peer/http/prometheus.c
 *                     hearsay_figures_json(), and from it Python       peer/api/hearsay.c
 *                     hearsay fields, and from it peer/docs/json.md    peer/cmd/fields.c
 *
 * A row names its value, the outputs that show it, and its place in each output. To add a figure,
 * add a row. If no field of struct figure_values has the value yet, also add a field, and set it
 * where the value is measured.
 */
#ifndef PEER_NODE_FIGURE_H
#define PEER_NODE_FIGURE_H

#include "peer/node/node.h"

struct wire_status;

/* All values of one peer that figures show, at one point in time. Initialised by figure_init(). */
struct figure_values
{
    struct node_progress node;
    bool has_run; /* True: the peer knows its run, so min_peers and final_drift are known. */
    uint32_t min_peers;
    double final_drift; /* Relative drift at which the consensus phase ends. 0: no such phase. */
    double time_s;      /* Time since the start of the process, in seconds. */
    double age_s;       /* Time since the last job (node_work()) of this peer ended, in seconds. */
    double busy_s;      /* Seconds since the current job of the worker began. 0: no job runs. */
    /* For an HTTP page, in seconds. snapshot_age_s: age of the snapshot that the page shows.
     * uptime_s: time_s plus this age. */
    double snapshot_age_s, uptime_s;
    bool ready;           /* True: /readyz reports the peer as ready. */
    const char *codec;    /* Codec of the peer's deltas. NULL or "": not known. Borrowed. */
    uint64_t checkpoints; /* Number of checkpoints that this process has stored. */
    double checkpoint_s;  /* Time during which checkpoints delayed the training, in seconds. */
    /* Number of checkpoints that have failed since the last one was stored. */
    uint64_t checkpoints_failed;
    /* Number of lines that metrics.jsonl lacks, because they were lost or still wait to be
     * written. */
    uint64_t lines_missing;
    bool model_unstored;      /* True: writing the model failed, so the model is only in memory. */
    bool has_disk_free;       /* True: disk_free_bytes is known. */
    uint64_t disk_free_bytes; /* Free bytes on the file system of --out. */
    uint64_t bytes_copied;    /* Bytes copied between the tensors and memory of libhearsay. */
    /* STATUS message of another peer that the values describe. NULL: they describe this peer.
     * Borrowed. */
    const struct wire_status *status;
};

/* Outputs that show figures. Each output has its own order of figures. */
enum figure_output {
    /* A line of metrics.jsonl. FIGURE_SUMMARY, FIGURE_SIM and FIGURE_STATUS_JSON contain its
     * fields, too. */
    FIGURE_METRICS,
    /* The peer's summary.json. It also contains the fields of FIGURE_METRICS. */
    FIGURE_SUMMARY,
    /* A peer in the result of `hearsay sim`. It also has the fields of FIGURE_METRICS. */
    FIGURE_SIM,
    FIGURE_STATUS_JSON, /* The page /status.json. It also contains the fields of FIGURE_METRICS. */
    /* A peer in the result of `hearsay local`, read from the peer's summary.json. */
    FIGURE_LOCAL,
    FIGURE_STATUS,     /* A member in the output of `hearsay status --json`. */
    FIGURE_PROMETHEUS, /* The page /metrics for Prometheus. */
    FIGURE_PYTHON,     /* Figures of the Python package. */
    FIGURE_OUTPUTS
};

/* How a row stores its value in struct figure_values. */
enum figure_kind {
    /* No value: the writer of the output sets an object, a list, or a text of its own. */
    FIGURE_OTHER,
    FIGURE_U64,
    FIGURE_U32,
    FIGURE_BOOL,
    FIGURE_REAL,  /* A double. If it is not finite, the figure is not known. */
    FIGURE_TEXT,  /* A const char *. NULL or "": the figure is not known. */
    FIGURE_CHARS, /* An array of char. "": the figure is not known. */
    FIGURE_PHASE  /* The phase, named by figure_phase(). */
};

/* Whether a figure can rise and fall (gauge) or only rise (counter), as in Prometheus. */
enum figure_type { FIGURE_GAUGE, FIGURE_COUNTER };

struct figure
{
    const char *name; /* Key in JSON. Also the name in Python if `python` is NULL. */
    const char *unit; /* Unit, such as "bytes/s". NULL: a number without unit, a text or a bool. */
    const char *help; /* Meaning, as one sentence. Also the HELP text in Prometheus. */
    /* Meaning for the reference page, if `help` is too short for it. NULL: the page shows
     * `help`. */
    const char *about;
    enum figure_type type;
    enum figure_kind kind;
    size_t offset; /* Offset of the value in struct figure_values, in bytes. */
    /* Returns whether the value is known for this output. NULL: always. */
    bool (*known)(const struct figure_values *v, enum figure_output output);
    /* Name in Prometheus, without the prefix "hearsay_". NULL: not in Prometheus. */
    const char *metric;
    const char *label;  /* Label in Prometheus, such as direction="sent". NULL: none. */
    const char *python; /* Name in Python. NULL: the same as `name`. */
    /* Place of the figure in each output, from 1. 0: the output does not show it. */
    uint8_t place[FIGURE_OUTPUTS];
};

extern const struct figure figure_all[]; /* All figures. The name of the last element is NULL. */

/* The value of a figure. `is` says which of the fields below contains it. */
struct figure_value
{
    enum { FIGURE_IS_UNKNOWN, FIGURE_IS_WHOLE, FIGURE_IS_REAL, FIGURE_IS_BOOL, FIGURE_IS_TEXT } is;
    uint64_t whole;
    double real;
    bool yes;
    const char *text; /* The text, borrowed from a struct figure_values. */
};

/* Sets *v to the state in which nothing is known: NaN in fields of type double that can rise and
 * fall, 0 in all other numbers, false, and NULL or "" in texts. */
void figure_init(struct figure_values *v);

/* Adds a figure with its name to a STATUS message, if its value is known. Only numbers can be
 * sent. */
void figure_send(struct wire_status *s, const struct figure *f, const struct figure_values *v);
/* Sets the figures of FIGURE_STATUS in a STATUS message, except the codec. */
void figure_to_status(struct wire_status *s, const struct figure_values *v);
/* Fills *v with the content of a peer's STATUS message. All other values are as after
 * figure_init(). *v points into *s, which must outlive it. */
void figure_of_status(struct figure_values *v, const struct wire_status *s);

/* Returns the figure at position `place` of an output; the first position is 1. NULL: the output
 * has no such position. O(rows). */
const struct figure *figure_at(enum figure_output output, uint32_t place);

/* Returns the figure with this name, which must exist. */
const struct figure *figure_named(const char *name);

/* Returns the value of a figure for an output. */
struct figure_value figure_get(const struct figure *f, const struct figure_values *v,
                               enum figure_output output);

/* Returns the value of a figure as a number for Prometheus. A bool is 0 or 1. A text is 1 if it is
 * known, else 0. NaN: the value is no text and is not known. */
double figure_number(const struct figure *f, const struct figure_values *v);

/* Returns the name of a phase: "joining", "training", "consensus", "finishing" or "left". If
 * `holds` is true, the peer waits for a quorum, and the result is "no-quorum" instead of
 * "training". */
const char *figure_phase(enum node_phase phase, bool holds);

#endif
