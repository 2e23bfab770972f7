/* tests/examples/least_squares.c -- a program with its own model that takes part in a hearsay run.
 *
 * Each peer has its own rows of a linear model, y = 3 a - 2 b + 0.5 and noise. All peers find the
 * weights together.
 *
 *   cc least_squares.c -lhearsay -lm -o least_squares
 *   hearsay key new cluster.key
 *   seeds=bootstrap=127.0.0.1:7101,127.0.0.1:7102
 *   ./least_squares 1 listen=127.0.0.1:7101 $seeds key=cluster.key &
 *   ./least_squares 2 listen=127.0.0.1:7102 $seeds key=cluster.key
 *
 * The first command needs the package libhearsay-dev. In a checkout that is built, add
 * -I peer/api -L build/release -Wl,-rpath,$PWD/build/release in front of -lhearsay.
 */
#include <hearsay.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void tell(void *self, int level, const char *text)
{
    if (level > 0)
        fprintf(stderr, "%s: %s\n", (const char *)self, text);
}

/* Makes one local step of gradient descent on newly drawn rows. Returns the mean squared error. */
static double step(float w[3], unsigned *seed)
{
    double loss = 0, g[3] = {0};
    for (int i = 0; i < 32; i++) {
        double a = rand_r(seed) / (double)RAND_MAX - 0.5, b = rand_r(seed) / (double)RAND_MAX - 0.5;
        double noise = 0.01 * (rand_r(seed) / (double)RAND_MAX - 0.5);
        double e = w[0] * a + w[1] * b + w[2] - (3 * a - 2 * b + 0.5 + noise);
        g[0] += e * a / 32, g[1] += e * b / 32, g[2] += e / 32;
        loss += e * e / 32;
    }
    for (int k = 0; k < 3; k++)
        w[k] -= (float)(0.5 * g[k]);
    return loss;
}

int main(int argc, char **argv)
{
    float w[3] = {0};
    unsigned seed = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
    struct hearsay *h = hearsay_new();
    hearsay_on_note(h, tell, argv[0]);
    hearsay_options(h, "topology=complete compress=none rounds=200 local-steps=2 min-peers=2");
    for (int i = 2; i < argc; i++)
        if (hearsay_options(h, argv[i]) != HEARSAY_OK)
            return fprintf(stderr, "%s\n", hearsay_error(h)), 2;
    hearsay_tensor(h, "weight", w, HEARSAY_FLOAT32, HEARSAY_TRAINED, 1, (uint64_t[]){2});
    hearsay_tensor(h, "bias", w + 2, HEARSAY_FLOAT32, HEARSAY_TRAINED, 0, NULL);
    int code = hearsay_open(h);
    if (code == HEARSAY_OK)
        code = hearsay_wait(h, -1);
    while (code == HEARSAY_OK) {
        struct hearsay_did did = {.samples = 32};
        for (uint32_t i = 0; i < hearsay_steps(h); i++)
            did.loss = step(w, &seed);
        code = hearsay_round(h, &did, -1);
    }
    if (code != HEARSAY_OVER)
        return fprintf(stderr, "%s\n", hearsay_error(h)), 2;
    printf("%.3f %.3f %.3f: %s\n", w[0], w[1], w[2], hearsay_verdict(h));
    int exit_code = hearsay_exit_code(h);
    hearsay_close(h);
    return exit_code;
}
