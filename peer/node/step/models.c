/* peer/node/step/models.c -- routes MODEL_REQ and MODEL messages to the modules that handle
 * them. */
#include "peer/node/step/models.h"

#include "peer/node/step/phases_state.h"

bool models_mix(const struct node *n)
{
    return n->phases->phase == NODE_TRAINING && !quorum_is_held(n->quorum);
}

/* Answers a model request. Between jobs the model is copied at once: in lock step the next job may
 * wait for the peer that asks. During a job the worker owns the model, so the job makes the copy.
 * Before training no copy is made, because another run may still replace this peer's run. */
void models_serve(struct node *n, const struct link *l)
{
    if (job_is_running(n->job) || !join_has_model(n->join) || n->phases->phase < NODE_TRAINING)
        model_server_serve_pieces(n->orders);
    else
        model_server_serve_now(n->orders, l, n->phases->round, !models_mix(n),
                               n->phases->phase > NODE_TRAINING);
}

void models_asked(struct node *n, const struct link *l, const struct wire_message *m)
{
    const struct wire_model_req *q = &m->model_req;
    bool whole = q->piece == WIRE_PIECE_WHOLE && q->key == 0;
    bool layers = q->piece == WIRE_PIECE_LAYERS;
    bool initial = q->round == WIRE_ROUND_INITIAL && !whole && !layers;
    if (initial) {
        if (!model_server_send_initial(n->orders, l, q))
            sessions_violation(n->sessions, l, "MODEL_REQ for a piece that does not exist");
        return;
    }
    if (whole || (layers && l->role == LINK_OBSERVER))
        model_server_take(n->orders, l, q);
    else if (layers || !model_server_take_piece(n->orders, l, q, n->phases->round))
        sessions_violation(n->sessions, l, "MODEL_REQ for a piece that does not exist");
    models_serve(n, l);
}

void models_came(struct node *n, const struct link *l, const struct wire_message *m)
{
    if (join_model(n->join, l, &m->model))
        phases_join(n->phases);
}
