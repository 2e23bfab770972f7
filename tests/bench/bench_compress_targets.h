/* tests/bench/bench_compress_targets.h -- codecs to measure and their target speeds, as a share of
 * the speed of axpy in the same run. Targets are the speeds of good loops on one AVX-512 core. Its
 * axpy processed 10.9e9 elements per second in the L2 cache, and 2.04e9 from memory. A speed of
 * TARGET_SLACK times the target is good enough. A target of 0 means no target. */
#ifndef TESTS_BENCH_BENCH_COMPRESS_TARGETS_H
#define TESTS_BENCH_BENCH_COMPRESS_TARGETS_H

#include <stddef.h>

#define TARGET_SLACK 0.8

enum { PLACE_L2, PLACE_MEMORY, PLACES };

struct speed_target
{
    const char *spec; /* Specification of the codec as a user writes it, not in canonical form. */
    double encode[PLACES], apply[PLACES];
};

/* Codecs with speed targets. Codecs without a row are measured with their default parameters and
 * have no target. */
static const struct speed_target speed_targets[] = {
    {"none", {0, 0}, {0.92, 0.93}},
    {"fp16", {0.50, 0.64}, {1.0, 1.2}},
    {"int8", {0.55, 0.74}, {1.0, 1.3}},
    {"sign", {0.50, 0.78}, {1.1, 1.67}},
    {"sign:8192", {0.50, 0.78}, {1.1, 1.67}},
    {"sign:64", {0, 0}, {0, 0}},
    {"qsgd", {0.29, 0.64}, {1.0, 1.37}},
    {"qsgd:4,round=sr", {0.18, 0.64}, {1.0, 1.37}},
    {"qsgd:4:512:l2,round=sr", {0.18, 0.64}, {1.0, 1.37}},
    {"qsgd:2", {0, 0}, {0, 0}},
    {"qsgd:8", {0, 0}, {0, 0}},
    {"qsgd:6:0:l2,round=sr,scale=inv1w,levels=16", {0, 0}, {0, 0}},
    {"tern", {0.21, 0.59}, {0, 0}},
    {"tern,round=sr", {0.21, 0.59}, {0, 0}},
    {"nat", {0.32, 0.72}, {0, 0}},
    {"3lc", {0.165, 0.44}, {0, 0}},
    {"topk:0.001", {0, 0}, {0, 0}},
    {"topk", {0.11, 0.59}, {0, 0}},
    {"topk:0.01+qsgd:4", {0, 0}, {0, 0}},
    {"topk:0.01+sign", {0, 0}, {0, 0}},
    {"topk:0.05+fp16", {0, 0}, {0, 0}},
    {"topk:0.1", {0.07, 0.29}, {0, 0}},
    {"randk", {0, 2.45}, {0, 0}},
    {"randk:0.1", {0, 0.83}, {0, 0}},
    {"randk:0.1+qsgd:4", {0, 0}, {0, 0}},
};

enum { N_TARGETS = sizeof speed_targets / sizeof speed_targets[0] };

/* Target speeds of two kernels. The first one selects exactly the largest 1 % of the elements. It
 * has a target in multiples of the speed of quickselect, one in 10^9 elements per second, and one
 * for histograms as a share of the speed of axpy. The second one is the Rice code, with targets in
 * millions of positions per second. */
#define TARGET_QUICKSELECT 8.0
/* The target is checked only if the speed of axpy reaches 2e9 elements per second. */
#define TARGET_TOPK_GELEM 1.0
static const double target_histogram[PLACES] = {0.117, 0.32};
#define TARGET_RICE_PUT 500.0
#define TARGET_RICE_GET 250.0

#endif
