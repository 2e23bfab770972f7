/* peer/cmd/topology.c -- `hearsay topology SPEC`: computes and prints the properties of a graph. */
#include "topology/topology.h"

#include "gossip/exchange/codec_levels.h"
#include "gossip/mixers/mixing.h"
#include "nn/math/number.h"
#include "peer/cmd/cmd.h"
#include "peer/cmd/peers.h"
#include "peer/cmd/training.h"
#include "peer/sgd/sgd_keys.h"
#include "topology/round_schedule.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PEERS_DEFAULT = 8, PEERS_MAX = 100000 };

/* clang-format off */
const struct option_row cmd_topology_rows[] = {
    {.name = "spec", .kind = OPTION_OPERAND, .arg = "SPEC", .required = true,
     .help = "ring, path, star, tree:K, trees, grid, grid:RxC, torus, torus:RxC, hypercube, exponential, bipartite, bipartite:A,B, complete, regular:K, er:P, small-world:K,P, base:K, one-peer-exponential, rotation:R, matching:K, edges:FILE or edges:0-1,1-2"},
    {.name = "peers", .kind = OPTION_UINT, .arg = "N", .min = 1, .max = PEERS_MAX,
     .help = "number of peers (default: the number that the spec implies, else 8)"},
    {.name = "seed", .kind = OPTION_UINT, .arg = "N", .fallback = "1",
     .help = "seed of random graphs"},
    {.name = "model", .kind = OPTION_TEXT, .arg = "SPEC",
     .help = "also print the bytes of a round for this model"},
    {.name = "data", .kind = OPTION_TEXT, .arg = "SPEC",
     .help = "data set that determines the shapes of the model"},
    {.name = "compress", .kind = OPTION_TEXT, .arg = "SPEC",
     .help = "compressor for the bytes of a round"},
    {.name = "dot", .kind = OPTION_FLAG, .help = "print the graph in the format of graphviz"},
    CMD_ROW_JSON,
    {.name = NULL},
};
/* clang-format on */

/* The command prints the number of rounds in which the consensus distance shrinks by this
 * factor. */
static const double target = 1e3;

/* Size of the deltas that peers send with one codec. */
struct message
{
    const char *spec;
    /* Length of a delta in bytes, including running statistics if the model has any. */
    uint64_t bytes;
    /* Bytes of the running statistics in a delta. 0: the model has no such statistics. */
    uint64_t statistics;
    /* One in `every` deltas includes the running statistics. In the other deltas one byte takes
     * their place. */
    uint64_t every;
};

/* Properties of a topology that changes from round to round (topology/round_schedule.h). The peers
 * repeat one sequence of rounds, which is called a pass. */
struct pass
{
    /* Number of rounds of a pass (the repeated sequence). 0: the topology does not change, and the
     * other fields are unused. */
    uint32_t n_rounds;
    uint32_t turn_max; /* Largest number of neighbours that any peer has in one round. */
    /* Number of exchanges in one pass over the sequence of rounds. exchanges: of all peers
     * together. exchanges_of: of the peer with the most exchanges. */
    uint32_t exchanges, exchanges_of;
    /* True if all peers hold the exact mean after one pass over the sequence of rounds, without
     * compression. */
    bool exact;
    /* Share of the consensus distance that remains after one pass over the sequence of rounds, in
     * the worst case. */
    double share;
};

/* All figures that `hearsay topology` computes. */
struct figures
{
    char spec[TOPOLOGY_SPEC_MAX];
    uint32_t n, degree_min, degree_max, diameter;
    uint64_t n_edges;
    double degree_mean;
    struct pass pass;
    struct spectrum spectrum;
    double gamma; /* Consensus step size with the fastest convergence, without compression. */
    /* Rounds until the consensus distance has shrunk by the factor `target`, at consensus step size
     * 1 and at `gamma`. */
    double rounds, gamma_rounds;
    /* Momentum with the fastest convergence at consensus step size 1, and the number of rounds that
     * it needs to shrink the consensus distance by the factor `target`. */
    double momentum, momentum_rounds;
    struct run run; /* Run for which the sizes of deltas are computed. Valid if n_messages > 0. */
    size_t n_params;
    /* Number of entries of message[], the sizes of deltas. 0: the user did not ask for sizes. 1:
     * the size for one codec. CODEC_LEVELS_RUNGS: one size for each codec level from which
     * --compress auto chooses. */
    uint32_t n_messages;
    struct message message[CODEC_LEVELS_RUNGS];
};

/* Returns the number of rounds in which the consensus distance shrinks by the factor `target`, if
 * each round multiplies the distance by 1 - `gap`. `gap`: spectral gap of the graph. */
static double rounds_to_target(double gap)
{
    if (!(gap < 1.0))
        return 1.0;
    return ceil(log(target) / -log1p(-gap) - 1e-9);
}

/* Returns the largest number of neighbours that any vertex has in one round. `degree`: scratch
 * memory of r->n entries. */
static uint32_t max_round_degree(const struct round_schedule *r, uint32_t *degree)
{
    uint32_t most = 0;
    for (uint32_t k = 0; k < r->n_rounds; k++) {
        memset(degree, 0, r->n * sizeof *degree);
        for (size_t i = r->first[k]; i < r->first[k + 1]; i++) {
            uint32_t a = ++degree[r->edge[i].a], b = ++degree[r->edge[i].b];
            most = a > most ? a : most;
            most = b > most ? b : most;
        }
    }
    return most;
}

/* Computes the properties of one pass over the repeated sequence of rounds, and stores them in
 * f->pass. Returns 0 or a negative errno. */
static int describe_pass(struct figures *f, uint64_t seed)
{
    struct round_schedule r;
    int err = round_schedule_build(&r, f->spec, f->n, seed);
    if (err != 0)
        return err;
    uint32_t *ends = calloc(2 * (size_t)f->n, sizeof *ends);
    err = ends != NULL ? 0 : -ENOMEM;
    for (size_t i = 0; err == 0 && i < r.first[r.n_rounds]; i++) {
        ends[r.edge[i].a]++;
        ends[r.edge[i].b]++;
    }
    for (uint32_t v = 0; err == 0 && v < f->n; v++)
        f->pass.exchanges_of = ends[v] > f->pass.exchanges_of ? ends[v] : f->pass.exchanges_of;
    if (err == 0) {
        f->pass.n_rounds = r.n_rounds;
        f->pass.exact = r.exact;
        f->pass.exchanges = (uint32_t)r.first[r.n_rounds];
        f->pass.turn_max = max_round_degree(&r, ends + f->n);
        err = round_schedule_share(&r, &f->pass.share);
    }
    free(ends);
    round_schedule_close(&r);
    return err;
}

static int describe(struct figures *f, const struct graph *g)
{
    f->n = g->n;
    f->n_edges = g->first[g->n] / 2;
    f->degree_min = UINT32_MAX;
    for (uint32_t v = 0; v < g->n; v++) {
        uint32_t d = graph_degree(g, v);
        f->degree_min = d < f->degree_min ? d : f->degree_min;
        f->degree_max = d > f->degree_max ? d : f->degree_max;
    }
    f->degree_mean = 2.0 * (double)f->n_edges / g->n;
    f->diameter = graph_diameter(g);
    /* If the topology changes from round to round, no spectrum is computed: the spectrum of all
     * edges together would not describe the mixing. */
    if (f->pass.n_rounds > 0)
        return 0;
    int err = graph_spectrum(g, &f->spectrum);
    if (err != 0)
        return err;
    /* A round of mixing computes x += gamma (W - I) x. For each eigenvalue lambda of the mixing
     * matrix W, this operation has the eigenvalue 1 - gamma (1 - lambda). The eigenvalue of the
     * mean model is 1 and does not matter. The best gamma makes the largest and the smallest of the
     * other eigenvalues equally far from 0. */
    double l2 = f->spectrum.lambda_2, ln = f->spectrum.lambda_n;
    f->gamma = 2.0 / (2.0 - l2 - ln);
    f->rounds = g->n > 1 ? rounds_to_target(f->spectrum.gap) : 0.0;
    f->gamma_rounds = g->n > 1 ? rounds_to_target(f->gamma * (1.0 - l2)) : 0.0;
    /* With momentum m, each deviation from the mean shrinks by the factor sqrt(m) per round. */
    f->momentum = spectrum_momentum(&f->spectrum);
    f->momentum_rounds = g->n > 1 ? rounds_to_target(1.0 - sqrt(f->momentum)) : 0.0;
    return 0;
}

/* Builds a run from the options that determine the size of a delta. All other run keys have their
 * defaults. Returns CMD_OK, or CMD_USAGE with a message in `error`. */
static int read_run(const struct options *o, struct run *run, char error[RUN_ERROR_MAX])
{
    static const char *const names[] = {"model", "data", "compress"};
    struct run_flags flags = {.trainer = &sgd_keys};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (options_given(o, names[i])
            && run_flags_set(&flags, names[i], options_text(o, names[i]), error))
            return CMD_USAGE;
    /* Set the run's topology only if it changes from round to round: the default codec is different
     * for such a topology. A fixed topology may be too large for a run description. */
    if (round_schedule_of(options_text(o, "spec")) && !options_given(o, "compress")
        && run_flags_set(&flags, "topology", options_text(o, "spec"), error))
        return CMD_USAGE;
    return run_from_flags(run, &flags, error) ? CMD_USAGE : CMD_OK;
}

/* Computes the size of a delta as gossip/mixers/mixing.h encodes it: the codec compresses trained
 * parameters, and running statistics are sent uncompressed. Returns 0 or a negative errno. */
static int size_message(struct message *of, const struct model *m)
{
    struct compress *c;
    struct statistics s;
    size_t n_trained = 0;
    while (n_trained < m->n_segments && m->segments[n_trained].trained)
        n_trained++;
    int err = compress_open(&c, of->spec, m->segments, n_trained);
    if (err != 0)
        return err;
    size_t message = compress_nominal(c);
    compress_close(c);
    err = statistics_init(&s, m->segments, m->n_segments);
    if (err != 0)
        return err;
    of->statistics = statistics_bound(&s);
    of->every = mixing_every(of->statistics, message);
    of->bytes = message + of->statistics;
    statistics_close(&s);
    return 0;
}

/* Returns the mean length of a delta in bytes. Only some deltas include running statistics. */
static double mean_bytes(const struct message *of)
{
    double message = (double)of->bytes, statistics = (double)of->statistics;
    if (of->statistics == 0)
        return message;
    return message - (statistics - 1) * (1 - 1 / (double)of->every);
}

/* Returns the length of a delta without running statistics, in bytes. One byte of it says that the
 * statistics are missing. */
static uint64_t without_statistics(const struct message *of)
{
    return of->statistics > 0 ? of->bytes - of->statistics + 1 : of->bytes;
}

/* Computes the size of the deltas of the run's codec. With --compress auto, computes it for each
 * codec level. Returns CMD_OK, or an exit code with a message in `error`. */
static int measure_messages(struct figures *f, char error[RUN_ERROR_MAX])
{
    struct model model;
    bool by_drift = strcmp(f->run.compress, RUN_AUTO) == 0;
    if (cmd_training_model(&model, &f->run, error))
        return CMD_USAGE;
    if (!by_drift && cmd_training_rules(&model, "compress", f->run.compress, error)) {
        model_close(&model);
        return CMD_USAGE;
    }
    f->n_params = model.n_params;
    int err = 0;
    for (uint32_t i = 0; err == 0 && i < (by_drift ? CODEC_LEVELS_RUNGS : 1); i++) {
        struct message *of = &f->message[f->n_messages++];
        of->spec = by_drift ? codec_levels_spec[i] : f->run.compress;
        err = size_message(of, &model);
        if (err != 0)
            snprintf(error, RUN_ERROR_MAX, "--compress: %s: %.200s", strerror(-err), of->spec);
    }
    model_close(&model);
    return err != 0 ? CMD_FAILED : CMD_OK;
}

/* Returns the number of deltas that all peers together send in one round, two per edge. If the
 * topology changes from round to round, returns the average over one pass, which is the sequence of
 * rounds that the peers repeat. */
static double deltas_per_round(const struct figures *f)
{
    bool changes = f->pass.n_rounds > 0;
    return changes ? 2.0 * f->pass.exchanges / f->pass.n_rounds : 2.0 * (double)f->n_edges;
}

static double bytes_per_peer(const struct figures *f, const struct message *of)
{
    return mean_bytes(of) * deltas_per_round(f) / f->n;
}

static double bytes_of_all_peers(const struct figures *f, const struct message *of)
{
    return mean_bytes(of) * deltas_per_round(f);
}

/* Returns the memory of the replicas at the peer with the most neighbours, in bytes. A peer stores
 * one replica of each neighbour's model, and one replica of its own model. If the topology changes
 * from round to round, the neighbours receive different deltas, so the peer stores one own replica
 * for each neighbour. */
static double replica_bytes(const struct figures *f)
{
    double others = f->degree_max, own = f->pass.n_rounds > 0 ? others : 1;
    return (others + own) * sizeof(float) * (double)f->n_params;
}

static void print_message(const struct figures *f, const struct message *of)
{
    printf("message       %" PRIu64 " bytes%s: %s, %s, %zu parameters\n", of->bytes,
           of->statistics > 0 ? " at most" : "", of->spec, sgd_values(&f->run)->model, f->n_params);
    if (of->statistics > 0 && of->every == 1)
        printf("statistics    %" PRIu64 " bytes in every message\n", of->statistics);
    else if (of->statistics > 0)
        printf("statistics    %" PRIu64 " bytes, only in one of %" PRIu64
               " messages; the other messages have %" PRIu64 " bytes, the mean is %.0f bytes\n",
               of->statistics, of->every, without_statistics(of), mean_bytes(of));
    printf("bytes sent    %.0f a round by a peer on average, %.0f a round by all peers\n",
           bytes_per_peer(f, of), bytes_of_all_peers(f, of));
}

/* Prints the size of a delta for each codec level from which --compress auto may choose. */
static void print_codec_levels(const struct figures *f)
{
    printf("message       codec chosen by the drift (auto): %s, %zu parameters\n",
           sgd_values(&f->run)->model, f->n_params);
    for (uint32_t i = 0; i < f->n_messages; i++) {
        const struct message *of = &f->message[i];
        bool always = of->every == 1; /* True if every delta includes running statistics. */
        printf("  %-18s %9" PRIu64 " bytes", of->spec, always ? of->bytes : without_statistics(of));
        if (of->statistics > 0 && always)
            printf(" with running statistics");
        else if (of->statistics > 0)
            printf(", %" PRIu64 " with running statistics (one in %" PRIu64 " messages)", of->bytes,
                   of->every);
        printf(", %.0f bytes sent a round by a peer on average\n", bytes_per_peer(f, of));
    }
}

static void print_spectrum(const struct figures *f)
{
    printf("lambda_2      %.9f\n", f->spectrum.lambda_2);
    printf("lambda_n      %.9f\n", f->spectrum.lambda_n);
    printf("spectral gap  %.6g\n", f->spectrum.gap);
    printf("best gamma    %.4f (without compression)\n", f->gamma);
    printf("rounds        %.0f until 1/%.0f of the consensus distance remains, %.0f with the best "
           "gamma (without compression)\n",
           f->rounds, target, f->gamma_rounds);
    printf("momentum      %.4f in the consensus phase, which then takes about %.0f rounds\n",
           f->momentum, f->momentum_rounds);
}

/* Returns the spectral gap per round that corresponds to one pass (the sequence of rounds that the
 * peers repeat). A fixed graph with this gap reduces the consensus distance in p->n_rounds rounds
 * as much as one pass does. */
static double pass_gap(const struct pass *p)
{
    return p->exact ? 1.0 : 1.0 - pow(p->share, 1.0 / p->n_rounds);
}

/* Returns the number of rounds until the consensus distance has shrunk by the factor `target`,
 * rounded up to whole passes over the repeated sequence of rounds. */
static double pass_rounds_to_target(const struct pass *p)
{
    return p->exact ? p->n_rounds : p->n_rounds * rounds_to_target(1.0 - p->share);
}

/* Prints the figures of one pass over the repeated sequence of rounds. The number of exchanges may
 * differ from peer to peer, because in some rounds a peer may have no partner. */
static void print_pass(const struct figures *f)
{
    const struct pass *p = &f->pass;
    if (p->exact)
        printf("rounds        %" PRIu32 " per averaging pass, after which all peers have the "
               "mean (without compression)\n",
               p->n_rounds);
    else
        printf("rounds        %" PRIu32
               " per averaging pass, which leaves at most %.4f of the consensus distance; %.0f "
               "until 1/%.0f of it remains (without compression)\n"
               "spectral gap  %.6g a round\n",
               p->n_rounds, p->share, pass_rounds_to_target(p), target, pass_gap(p));
    printf("neighbours    %" PRIu32 " per peer and round at most, mean %.2f\n", p->turn_max,
           deltas_per_round(f) / f->n);
    printf("exchanges     %" PRIu32 " per peer and averaging pass at most, mean %.2f\n",
           p->exchanges_of, deltas_per_round(f) * p->n_rounds / f->n);
}

static void print_text(const struct figures *f)
{
    printf("topology      %s, %" PRIu32 " peer%s\n", f->spec, f->n, number_plural(f->n));
    printf("edges         %" PRIu64 "\n", f->n_edges);
    const char *what = f->pass.n_rounds > 0 ? "partners" : "degree";
    if (f->degree_min == f->degree_max)
        printf("%-13s %" PRIu32 "\n", what, f->degree_min);
    else
        printf("%-13s %" PRIu32 " to %" PRIu32 ", mean %.2f\n", what, f->degree_min, f->degree_max,
               f->degree_mean);
    printf("diameter      %" PRIu32 "\n", f->diameter);
    if (f->pass.n_rounds > 0)
        print_pass(f);
    else
        print_spectrum(f);
    if (f->n_messages == 1)
        print_message(f, &f->message[0]);
    else if (f->n_messages > 1)
        print_codec_levels(f);
    if (f->n_messages > 0)
        printf("replicas      %.0f bytes of memory, for the peer with the most %s\n",
               replica_bytes(f), f->pass.n_rounds > 0 ? "partners" : "neighbours");
}

static json_t *message_json(const struct figures *f, const struct message *of)
{
    return json_pack("{s:s, s:I, s:I, s:I, s:f, s:f}", "compress", of->spec, "message_bytes",
                     (json_int_t)of->bytes, "statistics_bytes", (json_int_t)of->statistics,
                     "statistics_every", (json_int_t)of->every, "bytes_sent_a_round_by_a_peer",
                     bytes_per_peer(f, of), "bytes_sent_a_round", bytes_of_all_peers(f, of));
}

/* Adds the sizes of the deltas to the JSON object. With --compress auto they are a list "rungs"
 * with one entry for each codec level. */
static int add_messages(json_t *j, const struct figures *f)
{
    json_t *rungs = NULL, *more = NULL;
    if (json_object_set_new(j, "model", json_string(sgd_values(&f->run)->model))
        || json_object_set_new(j, "replica_bytes", json_integer((json_int_t)replica_bytes(f)))
        || json_object_set_new(j, "n_params", json_integer((json_int_t)f->n_params)))
        return -1;
    if (f->n_messages == 1) {
        more = message_json(f, &f->message[0]);
        int err = more != NULL ? json_object_update(j, more) : -1;
        json_decref(more);
        return err;
    }
    rungs = json_array();
    for (uint32_t i = 0; i < f->n_messages; i++)
        if (json_array_append_new(rungs, message_json(f, &f->message[i]))) {
            json_decref(rungs);
            return -1;
        }
    return json_object_set_new(j, "compress", json_string(RUN_AUTO))
                   || json_object_set_new(j, "rungs", rungs)
               ? -1
               : 0;
}

static json_t *spectrum_json(const struct figures *f)
{
    return json_pack("{s:f, s:f, s:f, s:f, s:I, s:I, s:f, s:I}", "lambda_2", f->spectrum.lambda_2,
                     "lambda_n", f->spectrum.lambda_n, "spectral_gap", f->spectrum.gap,
                     "best_gamma", f->gamma, "rounds_to_1e-3", (json_int_t)f->rounds,
                     "rounds_to_1e-3_best_gamma", (json_int_t)f->gamma_rounds, "momentum",
                     f->momentum, "rounds_to_1e-3_momentum", (json_int_t)f->momentum_rounds);
}

static json_t *pass_json(const struct figures *f)
{
    const struct pass *p = &f->pass;
    return json_pack("{s:b, s:f, s:f, s:I, s:I, s:I, s:f, s:I, s:f}", "pass_is_exact", p->exact,
                     "pass_leaves", p->share, "spectral_gap", pass_gap(p), "rounds_to_1e-3",
                     (json_int_t)pass_rounds_to_target(p), "pass_rounds", (json_int_t)p->n_rounds,
                     "round_neighbours_max", (json_int_t)p->turn_max, "round_neighbours_mean",
                     deltas_per_round(f) / f->n, "pass_exchanges_max", (json_int_t)p->exchanges_of,
                     "pass_exchanges_mean", deltas_per_round(f) * p->n_rounds / f->n);
}

static int print_json(const struct figures *f)
{
    json_t *more = f->pass.n_rounds > 0 ? pass_json(f) : spectrum_json(f);
    json_t *j = json_pack("{s:s, s:I, s:I, s:I, s:f, s:I, s:I}", "topology", f->spec, "peers",
                          (json_int_t)f->n, "edges", (json_int_t)f->n_edges, "degree_min",
                          (json_int_t)f->degree_min, "degree_mean", f->degree_mean, "degree_max",
                          (json_int_t)f->degree_max, "diameter", (json_int_t)f->diameter);
    if (j != NULL && (more == NULL || json_object_update(j, more) != 0)) {
        json_decref(j);
        j = NULL;
    }
    json_decref(more);
    int err = j != NULL ? 0 : -1;
    if (err == 0 && f->n_messages > 0)
        err = add_messages(j, f);
    if (err == 0)
        err = json_dumpf(j, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
    json_decref(j);
    putchar('\n');
    return err;
}

static void print_dot(const struct graph *g)
{
    puts("graph hearsay {");
    for (uint32_t v = 0; v < g->n; v++) {
        printf("  %" PRIu32 ";\n", v);
        for (uint32_t i = g->first[v]; i < g->first[v + 1]; i++)
            if (v < g->neighbour[i])
                printf("  %" PRIu32 " -- %" PRIu32 ";\n", v, g->neighbour[i]);
    }
    puts("}");
}

/* Computes the figures of the graph and prints them. Returns the exit code. */
static int report(const struct options *o, struct figures *f, const struct graph *g)
{
    char error[RUN_ERROR_MAX];
    if (options_flag(o, "dot")) {
        print_dot(g);
        return cmd_finish(o);
    }
    if (options_given(o, "model") || options_given(o, "compress")) {
        int code = read_run(o, &f->run, error);
        if (!code)
            code = measure_messages(f, error);
        if (code)
            return cmd_fail(o, code, "%s", error);
    }
    f->n = g->n;
    if (describe_pass(f, options_uint(o, "seed")) || describe(f, g))
        return cmd_fail(o, CMD_FAILED, "out of memory");
    if (!options_flag(o, "json"))
        print_text(f);
    else if (print_json(f))
        return cmd_fail(o, CMD_FAILED, "cannot write JSON");
    return cmd_finish(o);
}

/* Writes the topology spec in canonical form to `spec`. For "edges:FILE", reads the edges from the
 * file. Returns CMD_OK, or CMD_USAGE after a message on stderr. */
static int read_spec(const struct options *o, char spec[TOPOLOGY_SPEC_MAX])
{
    char expanded[RUN_VALUE_MAX], error[OPTIONS_ERROR_MAX], why[TOPOLOGY_ERROR_MAX];
    const char *text = options_text(o, "spec");
    int replaced = cmd_expand("topology", text, expanded, error);
    if (replaced < 0)
        return cmd_fail(o, CMD_USAGE, "%s", error);
    if (topology_canonical(replaced > 0 ? expanded : text, spec, why))
        return cmd_fail(o, CMD_USAGE, "%s", why);
    return CMD_OK;
}

int cmd_topology(const struct options *o)
{
    static struct figures f;
    if (options_flag(o, "dot") && options_flag(o, "json"))
        return cmd_fail(o, CMD_USAGE, "--dot and --json contradict each other");
    if (read_spec(o, f.spec))
        return CMD_USAGE;
    uint32_t made_for = topology_peers(f.spec);
    uint32_t n = (uint32_t)options_uint(o, "peers");
    if (n == 0)
        n = made_for ? made_for : PEERS_DEFAULT;
    if (n > PEERS_MAX)
        return cmd_fail(o, CMD_USAGE, "%.100s is for %" PRIu32 " peers, expected at most %d",
                        f.spec, n, PEERS_MAX);
    if (made_for && made_for != n)
        fprintf(stderr,
                "hearsay topology: %.100s is for %" PRIu32 " peers; with %" PRIu32
                " peers, the graph is adapted\n",
                f.spec, made_for, n);
    struct graph g;
    int err = graph_build(&g, f.spec, n, options_uint(o, "seed"));
    if (err != 0)
        return cmd_fail(o, err == -EINVAL ? CMD_USAGE : CMD_FAILED, "%s for %" PRIu32 " peers: %s",
                        f.spec, n, err == -EINVAL ? "too many edges" : strerror(-err));
    cmd_peers_report_added_edges(o, f.spec, &g);
    int code = report(o, &f, &g);
    graph_close(&g);
    return code;
}
