#include "peer/uv/metrics.h"

#include <errno.h>
#include <math.h>

const char *uv_metrics_phase(enum node_phase phase)
{
    switch (phase) {
    case NODE_GATHERING:
        return "gathering";
    case NODE_TRAINING:
        return "training";
    case NODE_SETTLING:
        return "settling";
    case NODE_SERVING:
        return "serving";
    case NODE_LEFT:
        return "left";
    }
    return "unknown"; /* A number from a peer may be none of ours. */
}

json_t *uv_metrics_number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *whole(uint64_t n)
{
    return json_integer((json_int_t)n);
}

json_t *uv_metrics_object(const struct node_progress *p, double time_s)
{
    return json_pack(
        "{s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s?, s:o, s:o, s:o, s:o, "
        "s:o, s:o, s:o, s:o,"
        " s:o, s:o}",
        "round", whole(p->round), "rounds", whole(p->n_rounds), "phase", uv_metrics_phase(p->phase),
        "time_s", uv_metrics_number(time_s), "loss", uv_metrics_number(p->loss), "accuracy",
        uv_metrics_number(p->evaluated ? p->accuracy : NAN), "drift", uv_metrics_number(p->drift),
        "relative_drift", uv_metrics_number(p->relative_drift), "drift_round",
        isfinite(p->drift) ? whole(p->drift_round) : json_null(), "own_distance",
        uv_metrics_number(p->own_distance), "statistics_disagreement",
        uv_metrics_number(p->statistics_apart), "gamma", uv_metrics_number(p->gamma), "rung",
        p->rung, "drift_excess", uv_metrics_number(p->excess), "drift_target",
        uv_metrics_number(p->drift_target), "bytes_sent", whole(p->bytes_sent), "bytes_received",
        whole(p->bytes_received), "compute_s", uv_metrics_number(p->compute_s), "wait_s",
        uv_metrics_number(p->wait_s), "mix_s", uv_metrics_number(p->mix_s), "live",
        whole(p->n_live), "edges", whole(p->n_edges), "settle_rounds", whole(p->settle_rounds));
}

int uv_metrics_open(struct uv_metrics *m, const char *path, FILE *copy)
{
    *m = (struct uv_metrics){.copy = copy, .file = fopen(path, "w")};
    return m->file ? 0 : -errno;
}

/* One line in one write, so that a reader never sees half of it for long. */
static int put(FILE *file, const char *text)
{
    if (fprintf(file, "%s\n", text) < 0 || fflush(file) != 0)
        return errno ? -errno : -EIO;
    return 0;
}

int uv_metrics_write(struct uv_metrics *m, const struct node_progress *p, double time_s)
{
    json_t *object = uv_metrics_object(p, time_s);
    char *text = object ? json_dumps(object, JSON_REAL_PRECISION(9)) : NULL;
    int err = text ? 0 : -ENOMEM;
    if (text) {
        err = put(m->file, text);
        if (m->copy) {
            int other = put(m->copy, text);
            err = err < 0 ? err : other;
        }
    }
    free(text);
    json_decref(object);
    if (err == 0 || m->failed)
        return 0;
    m->failed = true;
    return err;
}

void uv_metrics_close(struct uv_metrics *m)
{
    if (m->file)
        fclose(m->file);
    m->file = NULL;
}
