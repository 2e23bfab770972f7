/* peer/report/summary.c -- the figures of a summary.json, by a table. */
#include "peer/report/json.h"
#include "peer/report/run.h"

#include <errno.h>
#include <string.h>

static const struct
{
    const char *in, *name; /* `in`: the object that holds it; NULL: the summary itself. */
    enum report_kind kind;
} figures[REPORT_FIGURES] = {
    [REPORT_F_ROUND] = {NULL, "round", REPORT_WHOLE},
    [REPORT_F_ROUNDS] = {NULL, "rounds", REPORT_WHOLE},
    [REPORT_F_SETTLE_ROUNDS] = {NULL, "settle_rounds", REPORT_WHOLE},
    [REPORT_F_LOSS] = {NULL, "loss", REPORT_REAL},
    [REPORT_F_ACCURACY] = {NULL, "accuracy", REPORT_SIZE},
    [REPORT_F_TEST_LOSS] = {NULL, "test_loss", REPORT_REAL},
    [REPORT_F_ACCURACY_MIN] = {NULL, "accuracy_min", REPORT_SIZE},
    [REPORT_F_ACCURACY_MAX] = {NULL, "accuracy_max", REPORT_SIZE},
    [REPORT_F_RELATIVE_DRIFT] = {NULL, "relative_drift", REPORT_SIZE},
    [REPORT_F_DRIFT_ROUND] = {NULL, "drift_round", REPORT_WHOLE},
    [REPORT_F_ESTIMATED] = {NULL, "estimated_relative_drift", REPORT_SIZE},
    [REPORT_F_SECONDS] = {NULL, "seconds", REPORT_SIZE},
    [REPORT_F_SECONDS_IN_ALL] = {NULL, "seconds_in_all", REPORT_SIZE},
    [REPORT_F_SIMULATED_S] = {NULL, "simulated_s", REPORT_SIZE},
    [REPORT_F_STARTS] = {NULL, "starts", REPORT_WHOLE},
    [REPORT_F_BYTES_SENT] = {NULL, "bytes_sent", REPORT_WHOLE},
    [REPORT_F_BYTES_RECEIVED] = {NULL, "bytes_received", REPORT_WHOLE},
    [REPORT_F_SENT_IN_ALL] = {NULL, "bytes_sent_in_all", REPORT_WHOLE},
    [REPORT_F_RECEIVED_IN_ALL] = {NULL, "bytes_received_in_all", REPORT_WHOLE},
    [REPORT_F_ROUNDS_SKIPPED] = {NULL, "rounds_skipped", REPORT_WHOLE},
    [REPORT_F_N_PEERS] = {NULL, "n_peers", REPORT_WHOLE},
    [REPORT_F_EXIT_CODE] = {NULL, "exit_code", REPORT_REAL},
    [REPORT_F_VERDICT_SKIPPED] = {"verdict", "rounds_skipped", REPORT_WHOLE},
    [REPORT_F_MEMBERS] = {"verdict", "n_members", REPORT_WHOLE},
};

static const struct report_summary none = {.there = false};

static int take_object(struct report_summary *s, const json_t *object, char *why)
{
    const json_t *verdict = json_object_get(object, "verdict");
    *s = none;
    for (int i = 0; i < REPORT_FIGURES; i++) {
        const json_t *in = figures[i].in != NULL ? verdict : object;
        int err = report_json_number(in, figures[i].name, figures[i].kind, &s->at[i], why);
        if (err < 0)
            return err;
    }
    /* What `train` calls accuracy is that of the last batches. */
    int err = 0;
    if (json_object_get(object, "test_accuracy") != NULL)
        err = report_json_number(object, "test_accuracy", REPORT_SIZE, &s->at[REPORT_F_ACCURACY],
                                 why);
    if (err == 0)
        err = report_json_text(verdict, "text", s->verdict, sizeof s->verdict, why);
    s->there = err == 0;
    return err;
}

/* Peers without a summary of their own (those of `sim`) have one in their run's. */
static int take_peers(struct report_run *run, const json_t *list, char *why)
{
    char name[REPORT_NAME_MAX];
    const json_t *p;
    size_t i;
    json_array_foreach(list, i, p)
    {
        if (report_json_text(p, "name", name, sizeof name, why) < 0)
            return -1;
        for (size_t k = 0; k < run->n_peers; k++)
            if (!run->peer[k].end.there && strcmp(run->peer[k].name, name) == 0
                && take_object(&run->peer[k].end, p, why) < 0)
                return -1;
    }
    return 0;
}

int report_summary_read(struct report_run *run, struct report_summary *s, const char *bytes,
                        size_t n, char *why)
{
    json_t *object = report_json_object(bytes, n, why);
    int err = object != NULL ? take_object(s, object, why) : -1;
    if (err == 0 && run != NULL)
        err = take_peers(run, json_object_get(object, "peers"), why);
    json_decref(object);
    return err < 0 ? -EINVAL : 0;
}
