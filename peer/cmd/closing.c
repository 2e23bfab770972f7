/* peer/cmd/closing.c -- how a run ended, for programs. */
#include "peer/cmd/closing.h"

#include "peer/uv/metrics.h"

json_t *cmd_closing_json(const struct outcome *o, const struct outcome_facts *f)
{
    json_t *dead = json_array();
    for (uint32_t i = 0; i < f->n_dead && i < OUTCOME_DEAD_MAX; i++)
        json_array_append_new(dead, json_string(f->dead[i]));
    return json_pack("{s:s, s:s, s:i, s:I, s:I, s:o, s:o, s:b, s:I, s:b}", "kind",
                     outcome_word(o->kind), "text", o->text, "exit_code", o->exit_code, "n_among",
                     (json_int_t)f->n_among, "n_members", (json_int_t)f->n_members, "dead", dead,
                     "relative_drift", uv_metrics_figure(f->distance), "exact", f->exact,
                     "rounds_skipped", (json_int_t)f->rounds_skipped, "finite", !f->infinite);
}
