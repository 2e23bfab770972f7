/* peer/cmd/status_watch.c -- `hearsay status --watch`: shows the status of the cluster and
 * refreshes it.
 *
 * The command keeps its sessions, dials lost members again, and asks all members for their status
 * every --interval. A terminal shows one page on its alternate screen. Other outputs get one page
 * after the other, without escape sequences. watch_view.h formats the page.
 */
#include "peer/cmd/observe.h"
#include "peer/cmd/status_member.h"
#include "peer/cmd/stop.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <uv.h>

/* Figures from a member's previous answer. Rates are computed from the differences to the next
 * answer. */
struct before
{
    uint64_t status_ns, round, bytes;
    double rounds_s, bytes_s;
};

struct watch
{
    const struct options *o;
    struct cmd_observe w;
    struct watch_member member[WIRE_MEMBERS_MAX];
    /* Figures from each member's previous answer. before[i] belongs to w.member[i]. */
    struct before before[WIRE_MEMBERS_MAX];
    uint32_t order[WIRE_MEMBERS_MAX];
    char run[CMD_STATUS_RUN_MAX];
    bool terminal;
};

/* Returns by how much a counter has increased per second between two answers. Returns NaN if it has
 * decreased, which happens if the peer was restarted. */
static double rate(uint64_t now, uint64_t then, double seconds)
{
    return now >= then && seconds > 0 ? (double)(now - then) / seconds : (double)NAN;
}

static void update_rates(struct before *b, const struct cmd_observed *m)
{
    if (m->status_ns == b->status_ns)
        return;
    double seconds = 1e-9 * (double)(m->status_ns - b->status_ns);
    bool first = b->status_ns == 0;
    b->rounds_s = first ? (double)NAN : rate(m->status.round, b->round, seconds);
    b->bytes_s = first ? (double)NAN : rate(m->status.bytes_sent, b->bytes, seconds);
    b->status_ns = m->status_ns;
    b->round = m->status.round;
    b->bytes = m->status.bytes_sent;
}

static struct watch *sorting;

static int by_name(const void *a, const void *b)
{
    const struct cmd_observed *x = &sorting->w.member[*(const uint32_t *)a];
    const struct cmd_observed *y = &sorting->w.member[*(const uint32_t *)b];
    return record_compare(&x->record, &y->record);
}

/* Collects the figures of all members for the page, sorted by name. The array w.member itself is
 * not sorted, because members are added during the watch, and dials refer to its indices. */
static void collect(struct watch *t, struct watch_facts *f)
{
    uint64_t now = uv_hrtime();
    for (uint32_t i = 0; i < t->w.n; i++) {
        t->order[i] = i;
        update_rates(&t->before[i], &t->w.member[i]);
    }
    sorting = t;
    qsort(t->order, t->w.n, sizeof *t->order, by_name);
    for (uint32_t k = 0; k < t->w.n; k++) {
        uint32_t i = t->order[k];
        cmd_status_member(&t->member[k], &t->w.member[i], now);
        if (t->member[k].answered) {
            t->member[k].rounds_s = t->before[i].rounds_s;
            t->member[k].bytes_s = t->before[i].bytes_s;
        }
    }
    cmd_status_run(t->run, &t->w);
    *f = (struct watch_facts){.member = t->member,
                              .n = t->w.n,
                              .min_peers = t->w.has_run ? t->w.run.min_peers : 0,
                              .run = t->run};
}

/* Draws one page. Asks for the size of the screen each time, because it may have changed. */
static void draw(struct watch *t)
{
    struct watch_facts f;
    struct winsize size = {.ws_row = 0};
    collect(t, &f);
    if (!t->terminal) {
        watch_view(stdout, &f, 0, 0, "\n");
        putchar('\n');
    } else {
        if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
            size = (struct winsize){.ws_row = 0};
        fputs("\033[H", stdout);
        watch_view(stdout, &f, size.ws_col, size.ws_row, "\033[K\r\n");
        fputs("\033[J", stdout);
    }
    fflush(stdout);
}

static bool all_left(const struct watch *t)
{
    for (uint32_t i = 0; i < t->w.n; i++)
        if (t->w.member[i].up || t->w.member[i].record.state != RECORD_LEFT)
            return false;
    return true;
}

static int watch_loop(struct watch *t)
{
    double interval = options_real(t->o, "interval");
    uint64_t n_pages = options_uint(t->o, "count");
    uint32_t patience_ms =
        1000 * interval < CMD_OBSERVE_MS ? (uint32_t)(1000 * interval) : CMD_OBSERVE_MS;
    for (uint64_t k = 1;; k++) {
        draw(t);
        if (ferror(stdout))
            return cmd_finish(t->o);
        if (k == n_pages || all_left(t))
            return CMD_OK;
        if (!cmd_observe_pause(&t->w, interval))
            return CMD_INTERRUPTED;
        cmd_observe_redial(&t->w);
        cmd_observe_refresh(&t->w, patience_ms);
    }
}

int cmd_status_watch(const struct options *o)
{
    struct watch *t = calloc(1, sizeof *t);
    if (t == NULL)
        return cmd_fail(o, CMD_FAILED, "out of memory");
    t->o = o;
    t->terminal = isatty(STDOUT_FILENO) == 1;
    int code = cmd_observe(&t->w, o);
    if (code == CMD_OK) {
        cmd_stop_catch();
        fputs(t->terminal ? "\033[?1049h\033[?25l\033[?7l" : "", stdout);
        code = watch_loop(t);
        fputs(t->terminal ? "\033[?7h\033[?25h\033[?1049l" : "", stdout);
        /* Leaving the alternate screen erases the last page, so print the page again. */
        if (t->terminal) {
            t->terminal = false;
            draw(t);
        }
    }
    cmd_observe_close(&t->w);
    free(t);
    /* Do not call cmd_finish() after CMD_FAILED: if the failure was a write error of stdout, a
     * message has been printed, and cmd_finish() would report the same error again. */
    int flushed = code == CMD_FAILED ? code : cmd_finish(o);
    return code != CMD_OK ? code : flushed;
}
