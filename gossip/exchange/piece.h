/* gossip/exchange/piece.h -- a model in pieces, and which of those who sent some can be right.
 *
 *   x:  [ piece 0 | piece 1 | ... | last, shorter ]     piece_floats() each, 1 MiB at most
 *
 * Who comes late fetches pieces from several peers at once. While a run trains no two of
 * them have the same model, so that no hash of one's piece is that of another's. What is
 * compared is a *sketch*: a piece projected to PIECE_SKETCH floats by random signs and buckets
 * (count sketch: Charikar, Chen, Farach-Colton 2002), |S x - S y|^2 being |x - y|^2 within
 * sqrt(2/64) = 18 % rms. For equal pieces that is a hash's test, for others their distance. The
 * key is drawn by who asks, once the pieces have come: nobody can have made one to fit.
 *
 * A model whose pieces are of several peers is as good a beginning as any one's. What a newcomer
 * needs is to be near the mean, and
 *
 *   |z - mean|^2 = sum over pieces of |x_source(p) - mean|^2 on p
 *
 * which is, averaged over who sends what, Xi^2: the squared distance of any one of them.
 *
 * Two models of one run are never much farther apart than they have come from the run's initial
 * one; a third tells how far apart those of now are. The limits are those of trust.h.
 */
#ifndef GOSSIP_EXCHANGE_PIECE_H
#define GOSSIP_EXCHANGE_PIECE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PIECE_FLOATS_MAX = 256 * 1024,
    PIECE_FLOATS_MIN = 16 * 1024, /* A shorter one takes no less time. */
    PIECE_PARTS = 16,             /* A model of middling size is cut into so many. */
    PIECE_SKETCH = 64,
    PIECE_SOURCES = 16, /* Peers that one model comes from, at most. */
    PIECE_WAYS = 4      /* Two models are so many times their way from x0 apart, at most. */
};

/* How a model of n floats is cut: so many in each piece but the last, into so many pieces. */
size_t piece_floats(size_t n);
size_t piece_count(size_t n);
/* The p-th one's first float, and how many it has. */
size_t piece_at(size_t n, size_t p, size_t *n_floats);

/* Bytes that hold any piece of a model of n floats, and the sketches of all. */
size_t piece_bytes_max(size_t n);

/* Sketch all pieces of x: piece_count(n) times PIECE_SKETCH floats, at any address. */
void piece_sketch(uint64_t key, const float *x, size_t n, uint8_t *out);

/* What is known when all pieces have come. */
struct piece_view
{
    size_t n_pieces, n_sources;
    const uint8_t *from; /* The source of each piece. */
    /* By the same key the sketches of the pieces as they came, of the initial model, and of the
     * sources' own models: NULL where a source has not answered, or does not count any more. */
    const float *come, *initial, *own[PIECE_SOURCES];
};

enum piece_verdict {
    PIECE_CONFIRMED, /* At least half of the others that answered agree. */
    PIECE_ALONE,     /* No other has answered. */
    PIECE_DISPUTED,  /* One has, and does not agree: it may be either. */
    PIECE_REFUSED    /* Most of several do not agree. */
};

/* What the others say of all pieces that came from this source. */
enum piece_verdict piece_judge(const struct piece_view *v, size_t source);

/* A source is disputed: is what it sent further from the initial model than that of the
 * one other that has answered, whose number goes to *other? */
bool piece_further(const struct piece_view *v, size_t source, size_t *other);

#endif
