/* nn/train/momentum_kind.h -- one kind of momentum (--momentum-kind).
 *
 * `local` momentum sums the gradients of a peer's own steps. If peers have different data, it
 * points in another direction than the common progress of all peers. `qg` and `decentlam` compute
 * the momentum from the change of the model over a whole round, including the exchange, and send no
 * additional message. `averaged` and `tracking` exchange and mix more vectors in the same way as
 * the model.
 *
 *   round t     x(t)  --H local steps-->  y(t)  --exchange-->  W y(t)
 *
 *   kind        learns from    local steps             described in
 *   local       gradients      update the momentum     optimiser.h
 *   qg          x(t) - W y(t)  use constant momentum   quasi_global.h
 *   decentlam   x(t) - W y(t)  have no momentum        decentlam.h
 *   averaged    gradients      update the momentum     averaged_momentum.h
 *   tracking    gradients      update the momentum     tracking_momentum.h
 *
 * Here x(t) is the model before the local steps of round t, and W the mixing matrix of the
 * exchange. A kind with learn() learns when the next round begins, because only then is the model
 * after the exchange known. It uses the learning rate and the number of local steps of the finished
 * round. A peer that skipped a round or has just joined lacks x(t) or W y(t): the momentum then
 * does not change.
 *
 * To add a kind, define a const struct momentum_kind, add it to momentum_kind_all[]
 * (round_momentum.c) and, before auto, to the choices of the run key `momentum-kind`
 * (peer/sgd/sgd_keys.c).
 */
#ifndef NN_TRAIN_MOMENTUM_KIND_H
#define NN_TRAIN_MOMENTUM_KIND_H

#include "nn/train/optimiser.h"

/* Input and output of learn(): vectors of n trained parameters. */
struct round_change
{
    const float *begin; /* Model x(t) before the local steps of round t. */
    /* Before learn(): model after the exchange of round t. After learn(): model at the start of the
     * next local steps. */
    float *x;
    float *m; /* Momentum vector. Adam: first moment. */
    float *v; /* Adam: second moment. SGD: NULL. */
    size_t n;
    double way; /* Learning rate of round t times the number of local steps of round t. Above 0. */
    const struct optimiser *optimiser;
};

/* One kind of momentum. All kinds are constant structs. */
struct momentum_kind
{
    const char *name; /* Value of --momentum-kind. */
    enum momentum_use use;
    /* Largest momentum factor that this kind accepts. Up to this factor training is stable, even if
     * sessions between peers are lost. */
    double most;
    /* True: the kind also works with Adam and AdamW. False: with SGD only. */
    bool adam;
    /* True: models diverge unless each round mixes with nearly the same matrix W. The topology, the
     * edges that commit and the delay of an exchange must then not change from round to round, and
     * the codec must leave out little. */
    bool needs_constant_mixing;
    /* True: the kind uses companion vectors of the trainer (trainer.h), which peers exchange and
     * mix in addition to the model. */
    bool exchanged;
    /* True: the companion vector (which peers mix in addition to the model) is the vector v of
     * Momentum Tracking. False: the companion vectors are the moments of the optimiser. */
    bool tracked;
    /* Updates momentum and model from the change of the model over a round. NULL: the local steps
     * update the momentum. */
    void (*learn)(const struct round_change *c);
};

#endif
