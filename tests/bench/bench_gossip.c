/* tests/bench/bench_gossip.c -- consensus without training: error against bits, for codecs on a
 * ring of 25.
 *
 *   bench_gossip [ROUNDS]
 *
 * The experiment of Koloskova, Stich and Jaggi 2019 ("Decentralized Stochastic Optimization and
 * Gossip Algorithms with Compressed Communication", section 5.2): 25 peers of a ring average
 * vectors of 2,000 standard normal floats by gossip, with real nodes on the simulated network of
 * the tests. Each row is for one codec and step size. The error is (1/n) sum_i |x_i - mean|^2,
 * divided by its initial value. The row states after how many rounds, and after how many bits sent
 * by a peer, the error was under 1e-2, 1e-6 and 1e-10, and the error at the end. gamma 0 is the
 * automatic step size (gossip/exchange/gamma.h). The other values are from the paper. */
#include "tests/unit/sim_rig.h"

enum { PEERS = 25, DIM = 2000, NEIGHBOURS = 2 };

static const double thresholds[] = {1e-2, 1e-6, 1e-10};
enum { THRESHOLDS = sizeof thresholds / sizeof *thresholds };

static void row(const char *codec, double gamma, uint64_t rounds)
{
    struct rig r;
    struct compress *c;
    double at[THRESHOLDS] = {0}, last = 0;
    rig_init(&r, PEERS, DIM, "ring", codec, gamma);
    r.quiet = true;
    r.config.run.rounds = rounds;
    r.config.run.final_drift = 0;
    rig_recording(&r);
    rig_run(&r, UINT64_MAX);
    if (compress_open(&c, codec, r.segment, 1) != 0)
        exit(1);
    double bits = 8.0 * (double)compress_nominal(c) * NEIGHBOURS;
    compress_close(c);
    double begin = rig_error2(r.c, PEERS, DIM);
    for (uint64_t t = 1; t < r.n_errors; t++) {
        last = r.error2[t];
        for (size_t k = 0; k < THRESHOLDS; k++)
            if (at[k] == 0 && last <= thresholds[k] * begin)
                at[k] = (double)t;
    }
    printf("| `%s` | ", codec);
    if (gamma > 0)
        printf("%g", gamma);
    else
        printf("ours");
    printf(" | %.0f", bits);
    for (size_t k = 0; k < THRESHOLDS; k++)
        if (at[k] > 0)
            printf(" | %.0f, %.3g", at[k], at[k] * bits);
        else
            printf(" | -");
    printf(" | %.1e |\n", last / begin);
    fflush(stdout);
    rig_close(&r);
}

int main(int argc, char **argv)
{
    uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 12000;
    if (argc > 2 || rounds < 2) {
        fprintf(stderr, "usage: bench_gossip [ROUNDS]\n");
        return 2;
    }
    printf("| codec | gamma | bits a round | rounds, bits to 1e-2 | to 1e-6 | to 1e-10 | at the "
           "end |\n"
           "|---|---|---|---|---|---|---|\n");
    row("none", 1, rounds / 10);
    row("none", 0, rounds / 10);
    row("qsgd:8", 1, rounds / 10);
    row("qsgd:8", 0, rounds / 10);
    row("topk:0.01", 0.046, rounds);
    row("topk:0.01", 0, rounds);
    row("randk:0.01", 0.011, rounds);
    row("randk:0.01", 0, rounds);
    return 0;
}
