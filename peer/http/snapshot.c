/* peer/http/snapshot.c -- copies the figures of a snapshot for output at a later time, and names
 * the member states and wait reasons. */
#include "peer/http/snapshot.h"

void snapshot_figures(struct figure_values *v, const struct snapshot *s, int64_t now_us)
{
    *v = s->figures;
    v->codec = s->codec;
    v->busy_s = s->wait.busy_s;
    v->snapshot_age_s = (double)(now_us - s->taken_us) * 1e-6;
    v->age_s += v->snapshot_age_s;
    v->uptime_s = v->time_s + v->snapshot_age_s;
}

const char *snapshot_member_state(enum member_state state)
{
    switch (state) {
    case MEMBER_ALIVE:
        return "alive";
    case MEMBER_SUSPECT:
        return "suspect";
    case MEMBER_DEAD:
        return "dead";
    case MEMBER_LEFT:
        return "left";
    }
    return "unknown";
}

const char *snapshot_wait(enum node_waits_for what)
{
    static const char *const word[NODE_WAITS] = {
        [NODE_WAITS_RUN] = "run",         [NODE_WAITS_RESUME] = "resume",
        [NODE_WAITS_MEMBERS] = "members", [NODE_WAITS_MODEL] = "model",
        [NODE_WAITS_EDGES] = "edges",     [NODE_WAITS_QUORUM] = "quorum",
        [NODE_WAITS_DISK] = "disk",       [NODE_WAITS_NEIGHBOUR] = "neighbour",
        [NODE_WAITS_OTHERS] = "others"};
    return word[what];
}

void snapshot_hex(char *out, const uint8_t *bytes, size_t n)
{
    static const char digit[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        out[2 * i] = digit[bytes[i] >> 4];
        out[2 * i + 1] = digit[bytes[i] & 15];
    }
    out[2 * n] = '\0';
}
