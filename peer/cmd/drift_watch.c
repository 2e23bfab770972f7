/* peer/cmd/drift_watch.c -- `hearsay drift --watch`: compares the models again and again, and
 * prints one line for each comparison, until the run ends or the user presses Ctrl-C.
 *
 *   request status --> compare sketches or models of one round --> print a line --> pause
 *          ^                                                                         |
 *          '--------------------------- redial lost peers <--------------------------'
 *
 * When the command ends, for whatever reason, it prints the last figure again on stderr. The run
 * has ended if every member has left. A member has left if its membership record says so, if it
 * sent a CLOSE message, or if its last status reported a final model. If no peer could be reached
 * for GONE_LOOKS comparisons, and the run is not known to have ended, the command fails.
 */
#include "peer/cmd/drift.h"
#include "peer/cmd/progress.h"
#include "peer/cmd/stop.h"
#include "peer/node/node.h"

#include <math.h>
#include <stdio.h>
#include <uv.h>

enum { GONE_LOOKS = 5, GONE_S = 1 };

/* Figures of the last comparison of models that gave a consensus distance. */
struct last
{
    bool any, exact;
    uint64_t round;
    double xi, relative;
};

static bool any_session_up(const struct cmd_observe *w)
{
    for (uint32_t i = 0; i < w->n; i++)
        if (w->member[i].up)
            return true;
    return false;
}

/* Returns true if no member has a session, and each member has left: its record says so, it has
 * closed its session, or its last status reported a final model. */
static bool run_has_ended(const struct cmd_observe *w)
{
    for (uint32_t i = 0; i < w->n; i++) {
        const struct cmd_observed *m = &w->member[i];
        bool final = m->status_ns > 0 && m->status.phase >= NODE_FINISHING;
        bool left = m->record.state == RECORD_LEFT || final || m->closed;
        if (m->up || !left)
            return false;
    }
    return true;
}

/* Makes one comparison. If it gives a consensus distance, stores the result in `last`. Returns an
 * exit code. */
static int look(struct drift *d, struct last *last)
{
    uint32_t ms = (uint32_t)options_uint(d->o, "timeout") * 1000;
    bool exact = options_flag(d->o, "exact"), layers = options_flag(d->o, "layers");
    int code = exact ? drift_models(d) : drift_compare_sketches(d, ms);
    if (code == CMD_OK && exact)
        code = drift_compare_models(d, layers);
    if (code != CMD_OK || d->look.n == 0)
        return code;
    const struct layers_figure *f = drift_comparison_total(&d->look);
    if (!isnan(f->xi))
        *last = (struct last){true, exact, d->look.round, f->xi, f->relative};
    return CMD_OK;
}

static void say(const struct drift *d, double time_s)
{
    if (options_flag(d->o, "json"))
        drift_print_json(d, time_s);
    else
        drift_print_line(d, time_s, options_flag(d->o, "layers"));
    fflush(stdout);
}

/* Prints on stderr why the command ends (`how`), and the last consensus distance. Returns
 * `code`. */
static int end(const struct last *last, const char *how, int code)
{
    char a[CMD_PROGRESS_TEXT], b[CMD_PROGRESS_TEXT];
    if (last->any)
        fprintf(
            stderr, "hearsay drift: %s; the last figure: round %llu, drift %s, relative %s (%s)\n",
            how, (unsigned long long)last->round, cmd_progress_drift(a, "%.4e", last->xi),
            cmd_progress_drift(b, "%.4e", last->relative), last->exact ? "exact" : "by sketches");
    else
        fprintf(stderr, "hearsay drift: %s; no estimate was received\n", how);
    return code;
}

int drift_watch(struct drift *d)
{
    double interval = options_real(d->o, "interval");
    uint64_t n_looks = options_uint(d->o, "count"), begun = uv_hrtime();
    struct last last = {.any = false};
    uint32_t n_gone = 0;
    d->watching = true;
    cmd_stop_catch();
    for (uint64_t k = 1;; k++) {
        bool up = any_session_up(&d->w);
        n_gone = up ? 0 : n_gone + 1;
        /* `n_gone` is the number of comparisons in a row for which no peer had a session. If it is
         * 2 or more, each lost peer has been dialled again at least once, so the run may count as
         * ended. */
        if (n_gone > 1 && run_has_ended(&d->w))
            return end(&last, "the run is over", CMD_OK);
        if (n_gone == GONE_LOOKS)
            return end(&last, "lost the connection to all peers", CMD_FAILED);
        int code = up ? look(d, &last) : CMD_OK;
        if (code != CMD_OK)
            return code;
        if (cmd_stop_asked())
            return end(&last, "stopped", CMD_INTERRUPTED);
        if (up) {
            drift_average(d);
            say(d, 1e-9 * (double)(uv_hrtime() - begun));
        }
        if (ferror(stdout))
            return cmd_finish(d->o);
        if (k == n_looks)
            return CMD_OK;
        if (!cmd_observe_pause(&d->w, up || interval < GONE_S ? interval : GONE_S))
            return end(&last, "stopped", CMD_INTERRUPTED);
        cmd_observe_redial(&d->w);
        cmd_observe_refresh(&d->w, CMD_OBSERVE_MS);
    }
}
