/* peer/cmd/drift.h -- what the files of `hearsay drift` share.
 *
 *   drift.c         the command: what is asked of whom, what is an error
 *   drift_models.c  --exact: models of one round, and the peers' estimates of the same moment
 *   drift_look.c    a look: sketches of one round, or models, compared part by part
 *   drift_files.c   model files in place of peers
 *   drift_watch.c   --watch: look after look
 *   drift_print.c   all that goes to stdout
 */
#ifndef PEER_CMD_DRIFT_H
#define PEER_CMD_DRIFT_H

#include "gossip/exchange/layers.h"
#include "peer/cmd/observe.h"
#include "peer/node/consensus.h"

enum { DRIFT_WHY_MAX = 160 };

/* Models of one moment, or sketches of them, compared. Zeros before the first one. */
struct drift_look
{
    bool exact;      /* They are whole models, */
    bool files;      /* in files. */
    size_t n;        /* So many; 0: nothing was compared, and why[] has a sentence. */
    size_t n_silent; /* Peers that there is a session with but no answer of. */
    uint64_t round;  /* All are of this one; */
    uint64_t first;  /* without lock step, of one moment: from this one on. */
    bool last_phase; /* Not all trained: that round may be several moments. */
    char why[DRIFT_WHY_MAX];
    const char *name[WIRE_MEMBERS_MAX]; /* Whose they are. Borrowed. */
    struct layers_part *part;           /* n_parts, owned. */
    size_t n_parts;
    struct layers_figure *figure; /* n_parts + 1, owned; the last one is of all. */
};

struct drift
{
    const struct options *o;
    struct cmd_observe w;
    bool watching;
    double xi, relative; /* These are means of the peers' estimates. */
    uint32_t n_estimates;
    uint64_t estimated_round; /* They are all of this round. */
    struct consensus exact;   /* With n == 0 nothing was compared, */
    bool apart;               /* as the models were not of one round. */
    uint64_t round_min, round_max;
    const struct cmd_observed *with[WIRE_MEMBERS_MAX]; /* They sent the models that are compared. */
    struct drift_look look;
};

/* ---- drift_models.c ---- */

/* Have the peers send their models, of one round if that can be, and measure them. An exit
 * code; models of several rounds are none that is not CMD_OK (`apart`). */
int drift_models(struct drift *d);
/* The same, and the estimates of the same moment. Where a window was over too soon to
 * be seen, another one is tried. */
int drift_models_and_estimates(struct drift *d);
/* The means: with models at hand only of estimates of their very state, else of those of the
 * newest round alone, as figures of different rounds have no mean. */
void drift_average(struct drift *d);
/* No member that answers will do another round of training. */
bool drift_at_rest(const struct drift *d);
/* The largest round that a member has told. */
uint64_t drift_newest_round(const struct drift *d);

/* ---- drift_look.c ---- */

/* Sketches of one round, of all who answer within `ms`. An exit code; where nothing could be
 * compared, look.n is 0 and look.why says why. */
int drift_look_at_sketches(struct drift *d, uint32_t ms);
/* The models that drift_models() has got; by tensor with `layers`. An exit code. */
int drift_look_at_models(struct drift *d, bool layers);
/* n whole models of these segments: by tensor, or (!layers) all together. 0 or -ENOMEM. */
int drift_look_measure(struct drift_look *l, const struct segment *s, size_t n_segments,
                       const float *const *x, size_t n, bool layers);
const struct layers_figure *drift_look_all(const struct drift_look *l);
void drift_look_close(struct drift_look *l);

/* ---- drift_files.c ---- */

int drift_files(const struct options *o);

/* ---- drift_watch.c ---- */

int drift_watch(struct drift *d);

/* ---- drift_print.c ---- */

void drift_print_text(const struct drift *d);
/* `time_s`: since the watch began; NaN: there is none. */
void drift_print_json(const struct drift *d, double time_s);
/* A look of --watch: a line, and with `layers` one for each of them. */
void drift_print_line(const struct drift *d, double time_s, bool layers);
/* The same of files. */
void drift_print_look(const struct drift_look *l, const struct consensus *c, bool layers);
void drift_print_look_json(const struct drift_look *l, const struct consensus *c, bool layers);

#endif
