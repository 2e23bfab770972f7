/* peer/node/final_model.c -- reports the end of a run after the final model is stored or lost. */
#include "peer/node/final_model.h"

#include "peer/node/certificate.h"

/* Reports this peer's end to the other members. The report must wait until the model is stored or
 * lost, because a peer without a stored model has failed. Whether stored or not, this peer's
 * exchanges are complete at this time. */
static void say_kept(struct node *n, bool stored)
{
    n->kept = true;
    n->unkept = !stored;
    if (!stored)
        env_note(&n->env, NOTE_WARNING,
                 "this peer's model could not be written: it reports to the other peers that it "
                 "has failed");
    /* After a second rollback the model is an old one, so the peer has failed. */
    bool finished = stored && n->job.rollback.n <= 1;
    members_set_state(n->env.members, finished ? RECORD_FINISHED : RECORD_FAILED);
    sessions_say_finished_all(&n->sessions);
    if (finished)
        certificate_freeze(n);
}

void final_model_kept(struct node *n, bool stored)
{
    if (n->phases.phase != NODE_FINISHING || n->job.working || n->kept || n->offers)
        return;
    if (stored) {
        say_kept(n, true);
        return;
    }
    n->offers = true;
    model_handoff_begin(&n->hand);
}

void final_model_update(struct node *n)
{
    if (!n->offers || model_handoff_update(&n->hand))
        return;
    n->offers = false;
    say_kept(n, false);
}

void final_model_hand(struct node *n, const struct link *l, const struct wire_message *m)
{
    bool ending = n->phases.phase == NODE_CONSENSUS || n->phases.phase == NODE_FINISHING;
    model_handoff_said(&n->hand, l, &m->hand, ending && !n->unkept && !n->offers, n->phases.round);
}

bool node_handed(const struct node *n, struct node_handed *h)
{
    const struct model_handoff *own = &n->hand;
    if (own->taken == NULL)
        return false;
    *h = (struct node_handed){own->taken, own->giver[own->giving_place].name, own->taken_round};
    return true;
}

const char *node_handed_to(const struct node *n)
{
    return n->hand.with[0] != '\0' ? n->hand.with : NULL;
}
