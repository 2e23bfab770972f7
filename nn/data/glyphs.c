/* nn/data/glyphs.c -- draws the built-in images: strokes, their distortion, and the pen. */
#include "nn/data/glyphs.h"

#include "nn/math/rng.h"
#include "nn/math/vec.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

enum {
    SIDE = GLYPHS_SIDE,
    STROKES_MAX = 3,
    CONTROLS_MAX = 12, /* Largest number of points of a stroke in the table below. */
    SMOOTHING = 4,     /* Number of short segments between two points of a stroke. */
    POINTS_MAX = CONTROLS_MAX * SMOOTHING + 1,
    DISTRACTORS_MAX = 3
};

/* segment_draw() draws a multiple of BLOCK pixels of each row, so that the compiled loop needs vector
 * instructions only. Builds with sanitizers do not use vector instructions here. */
#ifdef HEARSAY_SANITIZED
enum { BLOCK = 1 };
#else
enum { BLOCK = 8 };
#endif
/* Floats of a row in memory. The last block may end outside the image. */
enum { STRIDE = SIDE + BLOCK };

struct point
{
    float x, y;
};

/* How the points of a stroke are joined: by straight lines, an open curve (CURVE) or a closed one
 * (LOOP). END marks the end of a glyph's strokes. */
enum join { END, LINES, CURVE, LOOP };

struct stroke
{
    enum join join;
    int n;
    struct point p[CONTROLS_MAX];
};

/* Strokes of each glyph, in a box of [-1, 1] x [-1, 1]. The y axis points down. */
static const struct stroke glyphs[GLYPHS_CLASSES][STROKES_MAX] = {
    /* The letter O. */
    {{LOOP,
      8,
      {{0, -1},
       {.5f, -.75f},
       {.7f, 0},
       {.5f, .75f},
       {0, 1},
       {-.5f, .75f},
       {-.7f, 0},
       {-.5f, -.75f}}}},
    /* The letter Q: an O with a tail. */
    {{LOOP,
      8,
      {{0, -1},
       {.5f, -.75f},
       {.7f, 0},
       {.5f, .75f},
       {0, 1},
       {-.5f, .75f},
       {-.7f, 0},
       {-.5f, -.75f}}},
     {LINES, 2, {{.1f, .35f}, {.75f, 1.1f}}}},
    /* The letter C. */
    {{CURVE,
      7,
      {{.6f, -.65f}, {.2f, -1}, {-.4f, -.8f}, {-.7f, 0}, {-.4f, .8f}, {.2f, 1}, {.6f, .65f}}}},
    /* The letter G: a C with a bar. */
    {{CURVE,
      7,
      {{.6f, -.65f}, {.2f, -1}, {-.4f, -.8f}, {-.7f, 0}, {-.4f, .8f}, {.2f, 1}, {.6f, .65f}}},
     {LINES, 3, {{.6f, .65f}, {.62f, .1f}, {.05f, .1f}}}},
    /* The digit 4. */
    {{LINES, 3, {{.15f, -1}, {-.7f, .35f}, {.75f, .35f}}}, {LINES, 2, {{.35f, -.35f}, {.3f, 1}}}},
    /* The digit 9. */
    {{LOOP,
      7,
      {{.1f, -1},
       {.5f, -.8f},
       {.6f, -.35f},
       {.2f, 0},
       {-.35f, -.05f},
       {-.6f, -.45f},
       {-.35f, -.9f}}},
     {CURVE, 3, {{.6f, -.4f}, {.55f, .3f}, {.25f, 1}}}},
    /* The letter S. */
    {{CURVE,
      9,
      {{.6f, -.75f},
       {.1f, -1},
       {-.45f, -.8f},
       {-.5f, -.4f},
       {0, -.05f},
       {.5f, .35f},
       {.5f, .8f},
       {0, 1},
       {-.6f, .75f}}}},
    /* The digit 8, drawn as an S whose open sides are closed. */
    {{LOOP,
      12,
      {{0, -1},
       {-.5f, -.75f},
       {-.4f, -.3f},
       {0, -.02f},
       {.5f, .4f},
       {.5f, .8f},
       {0, 1},
       {-.5f, .8f},
       {-.5f, .4f},
       {0, -.02f},
       {.4f, -.3f},
       {.5f, -.75f}}}},
    /* The letter Z. */
    {{LINES, 4, {{-.6f, -.9f}, {.6f, -.9f}, {-.55f, .9f}, {.65f, .9f}}}},
    /* The digit 7, drawn as a Z without the line at its base. */
    {{LINES, 3, {{-.6f, -.9f}, {.6f, -.9f}, {-.2f, 1}}}},
};

/* Range of a random property, uniform between `low` and `high`. The ranges below determine how hard
 * the glyphs are to classify. The accuracies in glyphs.h were measured with these ranges. */
struct range
{
    float low, high;
};
static const struct range rotation = {-.4f, .4f}; /* Rotation of the glyph, in radians. */
/* Width of the glyph, in pixels per unit of the box [-1, 1]. */
static const struct range size_x = {6.f, 10.f};
static const struct range aspect = {.85f, 1.2f}; /* Ratio of the glyph's height to its width. */
static const struct range shear = {-.3f, .3f};
static const struct range shift = {-2.5f, 2.5f}; /* Shift of the glyph, in pixels. */
/* Random shift of each point of a stroke. The strokes lie in the box [-1, 1] x [-1, 1]. */
static const struct range tremor = {-.09f, .09f};
/* Coefficients of the polynomial that bends the glyph. */
static const struct range bend = {-.15f, .15f};
/* Amplitude of the sine waves that bend the glyph. */
static const struct range wave = {.02f, .11f};
static const struct range pen = {.7f, 1.6f};    /* Half the width of the lines, in pixels. */
static const struct range ink = {.45f, 1.f};    /* Grey of the glyph, 0 to 1. */
static const struct range paper = {0.f, .15f};  /* Grey of the background, 0 to 1. */
static const struct range grain = {.03f, .13f}; /* Standard deviation of the noise. */
/* Grey of a distractor (a short line that is no part of the glyph), as a fraction of the glyph's
 * grey. */
static const struct range faint = {.2f, .65f};
/* Length of a distractor (a short line that is no part of the glyph), in pixels. */
static const struct range length = {3.f, 8.f};

static float draw(struct rng *r, struct range range)
{
    float u = (float)(rng_u64(r) >> 40) * 0x1p-24f;
    return range.low + u * (range.high - range.low);
}

/* Returns sin(2 pi turns). sin() of libm is not used, because its last bit differs between
 * machines. The Taylor polynomial over a quarter turn has an error of at most 4e-6, which is
 * accurate enough. */
static float sine(float turns)
{
    int32_t whole = (int32_t)turns;
    float t = turns - (float)whole; /* Fraction of a full turn, in (-1, 1). */
    t = t > .5f ? t - 1.f : t < -.5f ? t + 1.f : t;
    t = t > .25f ? .5f - t : t < -.25f ? -.5f - t : t;
    float a = t * 6.28318531f;
    float a2 = a * a;
    float sum = 1.f / 362880;
    sum = sum * a2 - 1.f / 5040;
    sum = sum * a2 + 1.f / 120;
    sum = sum * a2 - 1.f / 6;
    return a * (sum * a2 + 1.f);
}

static float cosine(float turns)
{
    return sine(turns + .25f);
}

/* Maps a point of the glyph's box to the image: first a polynomial and waves bend it, then an
 * affine map places it. */
struct warp
{
    /* Factors of u^2, u v, v^2, u^2 v and u v^2 in the polynomial that bends the glyph. */
    float bend_x[5], bend_y[5];
    /* Sine waves that bend the glyph: [0] in the x direction, [1] in the y direction. */
    float amplitude[2], phase[2];
    struct point direction[2];    /* Unit vector along which the wave proceeds. */
    float xx, xy, yx, yy, dx, dy; /* Affine map from the box [-1, 1] x [-1, 1] to the image. */
};

static void warp_draw(struct warp *w, struct rng *r)
{
    for (int i = 0; i < 5; i++) {
        w->bend_x[i] = draw(r, bend);
        w->bend_y[i] = draw(r, bend);
    }
    for (int i = 0; i < 2; i++) {
        w->amplitude[i] = draw(r, wave);
        float turns = draw(r, (struct range){0, 1});
        w->direction[i] = (struct point){cosine(turns), sine(turns)};
        w->phase[i] = draw(r, (struct range){0, 1});
    }
    float turns = draw(r, rotation) * .159154943f;
    float c = cosine(turns), s = sine(turns);
    float sx = draw(r, size_x), sy = sx * draw(r, aspect), k = draw(r, shear);
    if (sy > 10.5f)
        /* The height is limited, because a higher glyph would not fit into the image. */
        sy = 10.5f;
    w->xx = c * sx;
    w->xy = (c * k - s) * sy;
    w->yx = s * sx;
    w->yy = (s * k + c) * sy;
    w->dx = (float)(SIDE - 1) / 2 + draw(r, shift);
    w->dy = (float)(SIDE - 1) / 2 + draw(r, shift);
}

static float polynomial(const float k[5], float u, float v)
{
    return k[0] * u * u + k[1] * u * v + k[2] * v * v + k[3] * u * u * v + k[4] * u * v * v;
}

static struct point warp_apply(const struct warp *w, struct point p)
{
    float push[2];
    for (int i = 0; i < 2; i++) {
        float along = w->direction[i].x * p.x + w->direction[i].y * p.y;
        push[i] = w->amplitude[i] * sine(.7f * along + w->phase[i]);
    }
    float u = p.x + polynomial(w->bend_x, p.x, p.y) + push[0];
    float v = p.y + polynomial(w->bend_y, p.x, p.y) + push[1];
    return (struct point){w->xx * u + w->xy * v + w->dx, w->yx * u + w->yy * v + w->dy};
}

/* Returns the point at t, in [0, 1), on the section from b to c of a Catmull-Rom spline through a,
 * b, c, d. */
static struct point spline(struct point a, struct point b, struct point c, struct point d, float t)
{
    float t2 = t * t, t3 = t2 * t;
    float ka = -t3 + 2 * t2 - t, kb = 3 * t3 - 5 * t2 + 2;
    float kc = -3 * t3 + 4 * t2 + t, kd = t3 - t2;
    return (struct point){.5f * (ka * a.x + kb * b.x + kc * c.x + kd * d.x),
                          .5f * (ka * a.y + kb * b.y + kc * c.y + kd * d.y)};
}

/* Writes a stroke as a chain of points with random tremor. Returns the number of points. */
static int chain(const struct stroke *s, struct rng *r, struct point out[POINTS_MAX])
{
    struct point p[CONTROLS_MAX];
    for (int i = 0; i < s->n; i++) {
        p[i].x = s->p[i].x + draw(r, tremor);
        p[i].y = s->p[i].y + draw(r, tremor);
    }
    /* Straight lines are divided into segments, too, so that the distortion can bend them. */
    bool loop = s->join == LOOP;
    int spans = loop ? s->n : s->n - 1, n = 0;
    for (int i = 0; i < spans; i++) {
        struct point b = p[i], c = p[(i + 1) % s->n];
        struct point a = i > 0 ? p[i - 1] : loop ? p[s->n - 1] : b;
        struct point d = i + 2 < s->n ? p[i + 2] : loop ? p[(i + 2) % s->n] : c;
        for (int j = 0; j < SMOOTHING; j++) {
            float t = (float)j / SMOOTHING;
            out[n++] = s->join == LINES
                           ? (struct point){b.x + t * (c.x - b.x), b.y + t * (c.y - b.y)}
                           : spline(a, b, c, d, t);
        }
    }
    out[n++] = loop ? out[0] : p[s->n - 1];
    return n;
}

/* first_pixel() and end_pixel() return the range of pixels that a segment from low to high can
 * touch, if the pen covers r pixels to each side. */
static int first_pixel(float low, float r)
{
    float v = low - r;
    return v <= 0 ? 0 : v >= SIDE ? SIDE : (int)v;
}

static int end_pixel(float high, float r)
{
    float v = high + r + 1;
    return v <= 0 ? 0 : v >= SIDE ? SIDE : (int)v + (v > (float)(int)v);
}

/* Draws one segment. The coverage of a pixel falls from 1 to 0 over one pixel at the pen's edge. If
 * several segments cover a pixel, the darkest one counts. The coverage of the pixels from x1 to
 * x0 + n is 0, so they do not change. */
VEC_CLONES static void segment_draw(float *image, struct point a, struct point b, float half,
                                    float grey)
{
    float reach = half + .5f;
    float dx = b.x - a.x, dy = b.y - a.y;
    float inverse = 1.f / (dx * dx + dy * dy + 1e-6f);
    int x0 = first_pixel(fminf(a.x, b.x), reach), x1 = end_pixel(fmaxf(a.x, b.x), reach);
    int y0 = first_pixel(fminf(a.y, b.y), reach), y1 = end_pixel(fmaxf(a.y, b.y), reach);
    int n = (x1 - x0 + BLOCK - 1) / BLOCK * BLOCK;
    for (int y = y0; y < y1; y++) {
        float *row = image + y * STRIDE + x0;
        float py = (float)y - a.y;
        for (int i = 0; i < n; i++) {
            float px = (float)(x0 + i) - a.x;
            float t = (px * dx + py * dy) * inverse;
            t = t < 0.f ? 0.f : t > 1.f ? 1.f : t;
            float ex = px - t * dx, ey = py - t * dy;
            float cover = reach - sqrtf(ex * ex + ey * ey);
            cover = cover < 0.f ? 0.f : cover > 1.f ? 1.f : cover;
            float v = cover * grey;
            row[i] = row[i] > v ? row[i] : v;
        }
    }
}

static void strokes_draw(float *image, const struct stroke *s, struct rng *r, float grey)
{
    struct warp w;
    warp_draw(&w, r);
    float half = draw(r, pen);
    for (int i = 0; i < STROKES_MAX && s[i].join != END; i++) {
        struct point p[POINTS_MAX];
        int n = chain(&s[i], r, p);
        for (int j = 0; j < n; j++)
            p[j] = warp_apply(&w, p[j]);
        for (int j = 0; j + 1 < n; j++)
            segment_draw(image, p[j], p[j + 1], half, grey);
    }
}

/* Draws up to DISTRACTORS_MAX faint short lines at random places, which are no part of the
 * glyph. */
static void distractors_draw(float *image, struct rng *r, float grey)
{
    uint64_t n = rng_below(r, DISTRACTORS_MAX + 1);
    for (uint64_t i = 0; i < n; i++) {
        /* Each statement draws one random number only, because C does not define the order of two
         * draws within a statement. */
        struct point a, b;
        a.x = draw(r, (struct range){0, SIDE});
        a.y = draw(r, (struct range){0, SIDE});
        float turns = draw(r, (struct range){0, 1});
        float l = draw(r, length);
        float half = .5f * draw(r, pen);
        float dim = grey * draw(r, faint);
        b.x = a.x + l * cosine(turns);
        b.y = a.y + l * sine(turns);
        segment_draw(image, a, b, half, dim);
    }
}

/* Adds background and noise, and rounds to bytes. The sum of four uniform 16-bit numbers is close
 * enough to a normal distribution. Its variance is 4/12 of the squared range of one of the four
 * numbers. */
VEC_CLONES static void develop(const float *image, uint64_t key, float back, float sigma,
                               uint8_t *pixels)
{
    float scale = sigma * 1.7320508f / 65536.f;
    float compact[SIDE * SIDE]; /* The image without the space between its rows. */
    for (int y = 0; y < SIDE; y++)
        memcpy(compact + y * SIDE, image + y * STRIDE, SIDE * sizeof *compact);
    for (uint64_t i = 0; i < SIDE * SIDE; i++) {
        uint64_t bits = rng_at(key, i);
        int32_t sum = (int32_t)(bits & 0xffff) + (int32_t)(bits >> 16 & 0xffff)
                      + (int32_t)(bits >> 32 & 0xffff) + (int32_t)(bits >> 48);
        float v = back + compact[i] * (1.f - back) + (float)(sum - 131070) * scale;
        v = v < 0.f ? 0.f : v > 1.f ? 1.f : v;
        pixels[i] = (uint8_t)(int32_t)(v * 255.f + .5f);
    }
}

uint8_t glyphs_image(uint64_t seed, uint64_t i, uint8_t pixels[SIDE * SIDE])
{
    struct rng r = rng_stream(rng_key(seed, RNG_GLYPHS, i, 0));
    float image[SIDE * STRIDE] = {0};
    uint8_t class = (uint8_t)rng_below(&r, GLYPHS_CLASSES);
    float grey = draw(&r, ink), back = draw(&r, paper), sigma = draw(&r, grain);
    distractors_draw(image, &r, grey);
    strokes_draw(image, glyphs[class], &r, grey);
    develop(image, rng_key(seed, RNG_GLYPHS, i, 1), back, sigma, pixels);
    return class;
}

int glyphs_draw(struct dataset *d, size_t n, uint64_t seed, uint64_t first)
{
    int err = dataset_init(d, "glyphs", n, 0);
    if (err < 0)
        return err;
    assert(dataset_dim(d) == SIDE * SIDE);
    for (size_t i = 0; i < n; i++)
        d->labels[i] = glyphs_image(seed, first + i, d->pixels + i * SIDE * SIDE);
    return 0;
}
