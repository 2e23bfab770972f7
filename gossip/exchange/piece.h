/* gossip/exchange/piece.h -- divides a model into pieces, and tests whether pieces that different
 * members have sent are plausible.
 *
 *   x:  [ piece 0 | piece 1 | ... | last, shorter ]     piece_floats() floats each, at most 1 MiB
 *
 * A peer that joins late fetches pieces from several members at once (its *sources*). During
 * training all models differ, so a hash of one source's piece cannot be compared with a hash of
 * another's. The peer compares *sketches* instead: a piece is projected to PIECE_SKETCH floats by
 * random signs and buckets (count sketch: Charikar, Chen, Farach-Colton 2002). |S x - S y|^2
 * estimates |x - y|^2 with a relative error of sqrt(2/64) = 18 % rms. Sketches of equal pieces are
 * equal, so they serve as a hash, too. The joining peer draws the key of the sketches after the
 * pieces have arrived. Therefore no source can choose a false piece that has a plausible sketch.
 *
 * A model z with pieces from several sources is as good as the model of one source. A joining peer
 * needs a model close to the mean of all models, and
 *
 *   |z - mean|^2 = sum over pieces p of |x_source(p) - mean|^2, restricted to p
 *
 * Averaged over all assignments of sources to pieces this is Xi^2, the mean squared distance of one
 * model from the mean.
 *
 * Pieces of a source are compared with the same pieces of another source's model y. Source y
 * confirms them if two conditions hold. (1) Their distance from y is at most PIECE_WAYS times the
 * distance of y from the run's initial model: two honest models are never much farther apart.
 * (2) If there is a third source, they are not *apart* from y (outlier_filter.h), compared with the
 * distance of y from the nearest third source, which shows how far apart the models are now.
 */
#ifndef GOSSIP_EXCHANGE_PIECE_H
#define GOSSIP_EXCHANGE_PIECE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PIECE_FLOATS_MAX = 256 * 1024, /* Largest number of floats of a piece. */
    /* Least number of floats of a piece, unless the model is smaller. A shorter piece would not
     * arrive faster. */
    PIECE_FLOATS_MIN = 16 * 1024,
    /* Number of pieces of a model, unless a piece would then be shorter than PIECE_FLOATS_MIN or
     * longer than PIECE_FLOATS_MAX. */
    PIECE_PARTS = 16,
    PIECE_SKETCH = 64, /* Number of floats of the sketch of one piece. */
    /* Largest number of members from which the pieces of one model are fetched. */
    PIECE_SOURCES = 16,
    /* Largest plausible distance of two models, as a multiple of a model's distance from the
     * initial model. */
    PIECE_WAYS = 4
};

/* Return how a model of n floats is divided. piece_floats(): number of floats of each piece except
 * the last. piece_count(): number of pieces. */
size_t piece_floats(size_t n);
size_t piece_count(size_t n);
/* Returns the index of the first float of piece p, and sets *n_floats to its number of floats. */
size_t piece_at(size_t n, size_t p, size_t *n_floats);

/* Returns the length in bytes of a buffer that can hold either one piece of a model of n floats, or
 * the sketches of all its pieces. */
size_t piece_bytes_max(size_t n);

/* Sketches all pieces of the model x of n floats. Writes piece_count(n) times PIECE_SKETCH floats
 * to `out`, which need not be aligned. */
void piece_sketch(uint64_t key, const float *x, size_t n, uint8_t *out);

/* Facts that the joining peer knows when all pieces have arrived. A *source* is a member that sent
 * pieces. Sketches have n_pieces times PIECE_SKETCH floats, and all use the same key. */
struct piece_view
{
    size_t n_pieces, n_sources;
    const uint8_t *from; /* For each piece, the number of the source that sent it. */
    /* Each array holds the sketches of all pieces of one model. come: the model that consists of
     * the pieces that arrived. initial: the initial model of the run. own[i]: the model of source
     * i. NULL: the source has not sent sketches, or was excluded. */
    const float *come, *initial, *own[PIECE_SOURCES];
};

/* Judgement of the pieces of one source by the other sources. */
enum piece_verdict {
    /* Verdict: at least half of the other sources that sent sketches confirm the judged pieces. */
    PIECE_CONFIRMED,
    PIECE_ALONE, /* Verdict: no source other than the judged source has sent sketches. */
    /* Verdict: only one other source has sent sketches, and it contradicts the judged pieces.
     * Either of the two sources may be wrong. */
    PIECE_DISPUTED,
    /* Verdict: at least two other sources have sent sketches, and most of these sources contradict
     * the judged pieces. */
    PIECE_REFUSED
};

/* Judges all pieces that came from `source` by the sketches of the other sources. */
enum piece_verdict piece_judge(const struct piece_view *v, size_t source);

/* For a source with verdict PIECE_DISPUTED: sets *other to the only other source that has sent
 * sketches, and compares the two. Returns true if the pieces from `source` are at least as far from
 * the initial model as the same pieces of *other. The caller then excludes `source`, because the
 * pieces nearer to the initial model do less harm. */
bool piece_further(const struct piece_view *v, size_t source, size_t *other);

#endif
