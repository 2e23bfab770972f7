/* peer/cmd/status_member.c -- converts what an observer knows of a member, and of the run, to the
 * form that `status` displays. */
#include "peer/cmd/status_member.h"

#include "nn/data/kind.h"
#include "nn/train/round_momentum.h"
#include "peer/cmd/run_parse.h"
#include "peer/run/layout_keys.h"
#include "peer/sgd/sgd_keys.h"

#include <math.h>
#include <stdio.h>

void cmd_status_member(struct watch_member *out, const struct cmd_observed *m, uint64_t now_ns)
{
    *out = (struct watch_member){.name = m->known ? m->record.name : "?",
                                 .id = m->record.id,
                                 .left = m->known && m->record.state == RECORD_LEFT,
                                 .reached = m->up,
                                 .answered = m->up && m->answered,
                                 .ever = m->status_ns > 0,
                                 .status = m->status,
                                 .status_age_s = 1e-9 * (double)(now_ns - m->status_ns),
                                 .rounds_s = (double)NAN,
                                 .bytes_s = (double)NAN};
}

void cmd_status_run(char out[CMD_STATUS_RUN_MAX], const struct cmd_observe *w)
{
    out[0] = '\0';
    if (!w->has_run)
        return;
    const struct run *r = &w->run;
    const struct momentum_kind *kind = &momentum_local;
    char what[96], momentum[32] = "";
    if (!cmd_run_is_layout(r))
        kind = momentum_kind_all[sgd_values(r)->momentum_kind];
    if (kind != &momentum_local)
        snprintf(momentum, sizeof momentum, ", %s momentum", kind->name);
    if (cmd_run_is_layout(r))
        snprintf(what, sizeof what, "a program's own model of %llu parameters",
                 (unsigned long long)layout_values(r)->trained);
    else
        snprintf(what, sizeof what, "%.60s on %.20s", sgd_values(r)->model,
                 kind_brief(sgd_values(r)->data).text);
    snprintf(out, CMD_STATUS_RUN_MAX, "run: %s, %.40s, %.60s%s, %s, seed %llu", what, r->topology,
             r->compress, momentum, r->policy == RUN_SYNC ? "sync" : "not in lock step",
             (unsigned long long)r->seed);
}
