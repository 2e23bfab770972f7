/* peer/cmd/closing.c -- how a run ended, for programs. */
#include "peer/cmd/closing.h"

#include "peer/uv/metrics.h"

#include <math.h>

json_t *cmd_closing_json(const struct outcome *o, const struct outcome_facts *f)
{
    json_t *dead = json_array();
    for (uint32_t i = 0; i < f->n_dead && i < OUTCOME_DEAD_MAX; i++)
        json_array_append_new(dead, json_string(f->dead[i]));
    return json_pack("{s:s, s:s, s:i, s:I, s:I, s:o, s:o, s:b, s:b, s:I, s:b}", "kind",
                     outcome_word(o->kind), "text", o->text, "exit_code", o->exit_code, "n_among",
                     (json_int_t)f->n_among, "n_members", (json_int_t)f->n_members, "dead", dead,
                     "relative_drift", uv_metrics_figure(f->distance), "exact", f->exact, "at_most",
                     f->at_most && !f->exact, "rounds_skipped", (json_int_t)f->rounds_skipped,
                     "finite", !f->infinite);
}

void cmd_closing_add(struct cmd_closing_estimate *e, double relative, uint64_t round)
{
    if (!isfinite(relative) || (e->n > 0 && round < e->round))
        return;
    if (round > e->round)
        *e = (struct cmd_closing_estimate){.round = round};
    e->sum += relative;
    e->n++;
}

double cmd_closing_mean(const struct cmd_closing_estimate *e)
{
    return e->n > 0 ? e->sum / e->n : (double)NAN;
}

void cmd_closing_put(const struct cmd_closing_estimate *e, json_t *object)
{
    json_object_set_new(object, "estimated_relative_drift", uv_metrics_number(cmd_closing_mean(e)));
    json_object_set_new(object, "estimated_round",
                        e->n > 0 ? uv_metrics_whole(e->round) : json_null());
}
