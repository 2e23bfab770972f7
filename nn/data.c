#include "nn/data.h"

#include "nn/cifar.h"
#include "nn/file.h"
#include "nn/glyphs.h"
#include "nn/idx.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

/* What a kind fixes, and how its two sets come to be. */
struct kind
{
    const char *name;
    const char *expected; /* How to write it. */
    bool on_disk;         /* A directory follows the name. */
    uint32_t channels, height, width, n_classes;
    float mean[DATA_CHANNELS_MAX], std[DATA_CHANNELS_MAX];
    int (*open)(struct data *d, const char *dir, uint64_t seed,
                char error[DATA_ERROR_MAX]);
};

static int open_glyphs(struct data *d, const char *dir, uint64_t seed,
                       char error[DATA_ERROR_MAX])
{
    (void)dir;
    int rc = glyphs_draw(&d->train, GLYPHS_TRAIN, seed, 0);
    if (rc == 0)
        rc = glyphs_draw(&d->test, GLYPHS_TEST, seed, GLYPHS_TRAIN);
    if (rc < 0)
        snprintf(error, DATA_ERROR_MAX, "glyphs: no memory for %d images",
                 GLYPHS_TRAIN + GLYPHS_TEST);
    return rc;
}

static int open_mnist(struct data *d, const char *dir, uint64_t seed,
                      char error[DATA_ERROR_MAX])
{
    (void)seed;
    int rc = idx_read(&d->train, "mnist", dir, "train", error);
    return rc < 0 ? rc : idx_read(&d->test, "mnist", dir, "t10k", error);
}

static int open_cifar(struct data *d, const char *dir, uint64_t seed,
                      char error[DATA_ERROR_MAX])
{
    (void)seed;
    return cifar_read(d, dir, error);
}

static const struct kind kinds[] = {
    {.name = "glyphs", .expected = "glyphs", .channels = 1, .height = 28,
     .width = 28, .n_classes = 10, .mean = {GLYPHS_MEAN}, .std = {GLYPHS_STD},
     .open = open_glyphs},
    {.name = "mnist", .expected = "mnist:DIR", .on_disk = true, .channels = 1,
     .height = 28, .width = 28, .n_classes = 10, .mean = {0.1307f},
     .std = {0.3081f}, .open = open_mnist},
    {.name = "cifar10", .expected = "cifar10:DIR", .on_disk = true,
     .channels = 3, .height = 32, .width = 32, .n_classes = 10,
     .mean = {0.4914f, 0.4822f, 0.4465f}, .std = {0.2470f, 0.2435f, 0.2616f},
     .open = open_cifar},
};

static const struct kind *find_kind(const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strlen(kinds[i].name) == len && memcmp(kinds[i].name, name, len) == 0)
            return &kinds[i];
    return NULL;
}

/* Part a spec at its colon: the kind, and the directory ("" for none). NULL
 * with a sentence where it is no spec. */
static const struct kind *parse(const char *spec, const char **dir,
                                char error[DATA_ERROR_MAX])
{
    size_t len = strcspn(spec, ":");
    const struct kind *k = find_kind(spec, len);
    bool colon = spec[len] == ':';
    *dir = spec + len + (colon ? 1 : 0);
    if (!k)
        snprintf(error, DATA_ERROR_MAX,
                 "found \"%.100s\", expected glyphs, mnist:DIR or cifar10:DIR",
                 spec);
    else if (k->on_disk ? **dir == '\0' : colon)
        snprintf(error, DATA_ERROR_MAX, "found \"%.100s\", expected \"%s\"",
                 spec, k->expected);
    else
        return k;
    return NULL;
}

int data_kind(const char *spec, char kind[DATA_KIND_MAX],
              char error[DATA_ERROR_MAX])
{
    const char *dir;
    const struct kind *k = parse(spec, &dir, error);
    if (!k)
        return -EINVAL;
    snprintf(kind, DATA_KIND_MAX, "%s", k->name);
    return 0;
}

int data_shape(const char *kind, uint32_t *channels, uint32_t *height,
               uint32_t *width, uint32_t *n_classes)
{
    const struct kind *k = find_kind(kind, strlen(kind));
    if (!k)
        return -EINVAL;
    *channels = k->channels;
    *height = k->height;
    *width = k->width;
    *n_classes = k->n_classes;
    return 0;
}

int data_open(struct data *d, const char *spec, uint64_t seed,
              char error[DATA_ERROR_MAX])
{
    memset(d, 0, sizeof *d);
    const char *dir;
    const struct kind *k = parse(spec, &dir, error);
    if (!k)
        return -EINVAL;
    if (k->on_disk && !file_exists(dir)) {
        file_error(error, dir, "found no such directory, expected one with %s data",
                   k->name);
        return -ENOENT;
    }
    if (k->on_disk && !file_is_directory(dir))
        return file_error(error, dir, "found a file, expected a directory with %s data",
                          k->name);
    int rc = k->open(d, dir, seed, error);
    if (rc < 0)
        data_close(d);
    return rc;
}

void data_close(struct data *d)
{
    dataset_close(&d->train);
    dataset_close(&d->test);
}

size_t dataset_dim(const struct dataset *d)
{
    return (size_t)d->channels * d->height * d->width;
}

void dataset_sample(const struct dataset *d, size_t i, float *out)
{
    assert(i < d->n);
    size_t plane = (size_t)d->height * d->width;
    const uint8_t *pixels = d->pixels + i * plane * d->channels;
    for (size_t c = 0; c < d->channels; c++)
        for (size_t j = 0; j < plane; j++)
            *out++ = d->value[c][*pixels++];
}

/* The table of normalised values, each rounded once from double. */
static void fill_values(struct dataset *d)
{
    for (size_t c = 0; c < d->channels; c++)
        for (int p = 0; p < 256; p++)
            d->value[c][p] = (float)((p / 255.0 - (double)d->mean[c]) / (double)d->std[c]);
}

int dataset_init(struct dataset *d, const char *kind, size_t n)
{
    const struct kind *k = find_kind(kind, strlen(kind));
    assert(k && n >= 1);
    memset(d, 0, sizeof *d);
    snprintf(d->kind, sizeof d->kind, "%s", k->name);
    d->channels = k->channels;
    d->height = k->height;
    d->width = k->width;
    d->n_classes = k->n_classes;
    d->n = n;
    memcpy(d->mean, k->mean, sizeof d->mean);
    memcpy(d->std, k->std, sizeof d->std);
    fill_values(d);
    if (n <= SIZE_MAX / dataset_dim(d))
        d->pixels = malloc(n * dataset_dim(d));
    d->labels = malloc(n);
    if (d->pixels && d->labels)
        return 0;
    dataset_close(d);
    return -ENOMEM;
}

void dataset_close(struct dataset *d)
{
    free(d->pixels);
    free(d->labels);
    memset(d, 0, sizeof *d);
}
