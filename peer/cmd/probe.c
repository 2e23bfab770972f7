/* peer/cmd/probe.c -- `hearsay probe HOST:PORT`: tests step by step whether one peer can be
 * reached.
 *
 *   name      looks up the addresses of HOST
 *   tcp       connects to each address
 *   key       does the handshake, which proves that both ends have the cluster key
 *   version   finds the highest version of the protocol that both ends support
 *   run       asks for the peer's run and its progress
 *   members   counts the members that the peer reports as alive
 *   clock     compares the peer's wall clock with ours
 *   announce  tests whether this machine can call the peer at the addresses that the peer announces
 *
 * The steps after tcp need --key. The addresses are tried one after the other. The steps after key
 * run once, at the first address where they are possible. A peer with an allow-list answers only to
 * an identity (--identity) in the list.
 *
 *   --json: {"address", "ok", "failed": the first step that works at no address, or null,
 *     "steps": [{"step", "address" (null for the step `name`), "ok", "seconds", "text"}],
 *     "name", "id", "version", "run_id", "run": the run description, "round", "rounds", "alive",
 *     "members", "clock_s", "clock_error_s", "addresses": announced addresses,
 *     "callable": whether an announced address works}; a value that is not known is null.
 */
#include "gossip/wire/wire.h"
#include "nn/math/number.h"
#include "peer/cmd/cmd.h"
#include "peer/cmd/files.h"
#include "peer/cmd/run_parse.h"
#include "peer/node/session/sessions.h"
#include "peer/secure/hash.h"
#include "peer/secure/keyfile.h"
#include "peer/uv/client.h"
#include "peer/uv/identity.h"
#include "peer/uv/metrics.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
const struct option_row cmd_probe_rows[] = {
    {.name = "peer", .kind = OPTION_OPERAND, .arg = "HOST:PORT", .required = true,
     .help = "address of the peer, as in --bootstrap"},
    {.name = "key", .kind = OPTION_TEXT, .arg = "FILE",
     .help = "file of the cluster key; without it only name resolution and TCP are tested"},
    CMD_ROW_OBSERVER,
    {.name = "timeout", .kind = OPTION_REAL, .arg = "SECONDS", .fallback = "5", .min = 0.1, .max = 3600,
     .help = "time to wait for each step"},
    CMD_ROW_JSON,
    {.name = NULL},
};
/* clang-format on */

enum step {
    STEP_NAME,
    STEP_TCP,
    STEP_KEY,
    STEP_VERSION,
    STEP_RUN,
    STEP_MEMBERS,
    STEP_CLOCK,
    STEP_ANNOUNCE,
    STEPS
};
enum { TEXT_MAX = 512, RUN_ID_BYTES = 8, TAG_ANNOUNCED = 1 };

static const char *const step_word[STEPS] = {"name", "tcp",     "key",   "version",
                                             "run",  "members", "clock", "announce"};

struct probe
{
    const struct options *o;
    struct uv_client *client;
    const char *peer;
    uint8_t psk[CHANNEL_KEY];
    /* Key pair from the file of --identity. Valid if has_identity. */
    struct channel_identity identity;
    bool has_key, has_identity, json;
    uint32_t timeout_ms;
    /* For each step: whether it worked at one address at least, and whether it was tried at all. */
    bool worked[STEPS], tried[STEPS];
    json_t *steps;

    union uv_address at[UV_RESOLVE_MAX];
    uint32_t n;
    bool resolved;

    /* State of the connection that is being tested. `now`: index in at[] of the address of this
     * connection. */
    uint32_t now;
    uint64_t begun_ns;
    bool up, ended;
    uint32_t session;

    /* Contents of the peer's messages, and the times of our status request (asked_*) and of its
     * answer (answered_ns). */
    bool greeted, answered, refused;
    char name[WIRE_NAME_MAX + 1], run[WIRE_RUN_MAX + 1], run_id[2 * RUN_ID_BYTES + 1];
    uint8_t id[WIRE_ID_BYTES];
    uint32_t version;
    uint64_t asked_ns, asked_ms, answered_ns;
    struct wire_status status;
    struct record record;
    /* Addresses that the lookup of an announced address has found. */
    union uv_address announced[UV_RESOLVE_MAX];
    uint32_t n_announced;
    /* looked_up: the lookup of an announced address has ended. called: the call to this address has
     * ended. */
    bool looked_up, called;
    /* Reason why the call to an announced address failed. NODE_WHY_UNKNOWN: the same peer
     * answered. */
    enum node_why call;
    uint32_t n_members; /* Number of members in the peer's list, without members that have left. */
};

/* ---- Printing the result of one step ---- */

static double since(uint64_t begin_ns)
{
    return (double)(uv_hrtime() - begin_ns) * 1e-9;
}

/* Reports the result of one step, as a line of text or as an entry of the JSON array "steps".
 * `seconds`: time that the step took. */
__attribute__((format(printf, 5, 6))) static void say(struct probe *p, enum step step, bool ok,
                                                      double seconds, const char *format, ...)
{
    char text[TEXT_MAX], address[UV_RESOLVE_TEXT] = "";
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (step != STEP_NAME)
        uv_resolve_text(&p->at[p->now].any, address);
    p->tried[step] = true;
    p->worked[step] |= ok;
    if (p->json)
        json_array_append_new(
            p->steps, json_pack("{s:s, s:o, s:b, s:o, s:s}", "step", step_word[step], "address",
                                step != STEP_NAME ? json_string(address) : json_null(), "ok", ok,
                                "seconds", uv_metrics_number(seconds), "text", text));
    else
        printf("%-8s %-7s %-22s %8.1f ms  %s\n", step_word[step], ok ? "ok" : "FAILED", address,
               seconds * 1e3, text);
    /* The user must see the result of this step now: the next step may take several seconds. */
    fflush(stdout);
}

/* ---- Callbacks of the client ---- */

static void on_resolved(void *self, uint32_t tag, const union uv_address *a, uint32_t n)
{
    struct probe *p = self;
    if (tag == TAG_ANNOUNCED) {
        p->looked_up = true;
        p->n_announced = n;
        memcpy(p->announced, a, n * sizeof *a);
        return;
    }
    p->resolved = true;
    p->n = n;
    memcpy(p->at, a, n * sizeof *a);
}

/* Returns the step of the probe that has failed, if the connection failed for the reason `why`. */
static enum step step_of(enum node_why why)
{
    switch (why) {
    case NODE_WHY_UNKNOWN:
    case NODE_WHY_UNRESOLVED:
    case NODE_WHY_REFUSED:
    case NODE_WHY_UNREACHABLE:
    case NODE_WHY_TIMEOUT:
        return STEP_TCP;
    case NODE_WHY_CLOSED:
    case NODE_WHY_MUTE:
    case NODE_WHY_SLOW:
    case NODE_WHY_BROKEN:
    case NODE_WHY_JUNK:
        return STEP_KEY;
    case NODE_WHY_VERSION:
        return STEP_VERSION;
    case NODE_WHY_UNWELCOME:
    case NODE_WHY_OTHER:
    case NODE_WHYS:
        break;
    }
    return STEP_RUN;
}

static void say_tcp(struct probe *p, const struct uv_link *l)
{
    say(p, STEP_TCP, true, (double)(l->reached_ns - p->begun_ns) * 1e-9, "connected");
}

static void on_failed(void *self, uint32_t tag, const struct uv_link *l)
{
    struct probe *p = self;
    if (tag == TAG_ANNOUNCED) {
        p->call = l->why != NODE_WHY_UNKNOWN ? l->why : NODE_WHY_BROKEN;
        return;
    }
    enum step failed = step_of(l->why);
    uint64_t begin_ns = l->reached_ns != 0 ? l->reached_ns : p->begun_ns;
    if (l->reached_ns != 0)
        say_tcp(p, l);
    /* Without --key, the command tests only the TCP connection, so the test of this address ends
     * here. */
    if (!p->has_key && l->reached_ns != 0)
        return;
    if (failed == STEP_VERSION) {
        say(p, STEP_KEY, true, since(begin_ns), "both ends hold the cluster key");
        say(p, STEP_VERSION, false, since(begin_ns),
            "the peer supports protocol versions %u to %u, this program %u to %u",
            (unsigned)l->theirs.least, (unsigned)l->theirs.most, (unsigned)WIRE_VERSION_LEAST,
            (unsigned)WIRE_VERSION);
    } else {
        say(p, failed, false, since(begin_ns), "%s", connection_diagnostics_why(l->why));
    }
}

static void on_ended(void *self, uint32_t tag, uint32_t session)
{
    struct probe *p = self;
    (void)session;
    if (tag == TAG_ANNOUNCED)
        p->called = true;
    else
        p->ended = true;
}

static void ask(struct probe *p)
{
    uint8_t out[16];
    uv_timeval64_t now;
    if (uv_gettimeofday(&now) == 0)
        p->asked_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_usec / 1000;
    p->asked_ns = uv_hrtime();
    uv_client_send(p->client, p->session, out, wire_put_status_req(out, sizeof out));
}

static void on_up(void *self, uint32_t tag, uint32_t session, const uint8_t id[WIRE_ID_BYTES])
{
    struct probe *p = self;
    const struct uv_link *l = uv_client_link(p->client, session);
    if (tag == TAG_ANNOUNCED) {
        p->called = true;
        p->call = memcmp(id, p->id, sizeof p->id) == 0 ? NODE_WHY_UNKNOWN : NODE_WHY_OTHER;
        uv_client_hangup(p->client, session);
        return;
    }
    p->up = true;
    p->session = session;
    memcpy(p->id, id, sizeof p->id);
    p->version = l->channel.version;
    say_tcp(p, l);
    say(p, STEP_KEY, true, since(l->reached_ns),
        "both ends hold the cluster key; the peer's identity begins with %02x%02x%02x%02x", id[0],
        id[1], id[2], id[3]);
    say(p, STEP_VERSION, true, 0, "%u (the peer supports %u to %u, this program %u to %u)",
        (unsigned)p->version, (unsigned)l->channel.theirs.least, (unsigned)l->channel.theirs.most,
        (unsigned)WIRE_VERSION_LEAST, (unsigned)WIRE_VERSION);
    p->begun_ns = uv_hrtime();
    ask(p);
}

static void take_hello(struct probe *p, const struct wire_hello *h)
{
    uint8_t hash[HASH_BYTES];
    p->greeted = true;
    p->record = h->record;
    memcpy(p->name, h->record.name, sizeof p->name);
    memcpy(p->run, h->run.p, h->run.n);
    p->run[h->run.n] = '\0';
    hash_128(h->run.p, h->run.n, hash);
    for (int i = 0; i < RUN_ID_BYTES; i++)
        snprintf(p->run_id + 2 * i, 3, "%02x", hash[i]);
}

static void on_message(void *self, uint32_t session, const struct wire_message *m)
{
    struct probe *p = self;
    (void)session;
    if (m->type == WIRE_HELLO && m->hello.role == WIRE_PEER) {
        take_hello(p, &m->hello);
    } else if (m->type == WIRE_MEMBERS && !p->answered) {
        for (uint32_t i = 0; i < m->members.n_records; i++)
            p->n_members += m->members.records[i].state != RECORD_LEFT;
    } else if (m->type == WIRE_STATUS && !p->answered) {
        p->answered = true;
        p->answered_ns = uv_hrtime();
        p->status = m->status;
    } else if (m->type == WIRE_REFUSED) {
        p->refused = true;
        memcpy(p->name, m->refused.name, sizeof p->name);
    }
}

/* ---- Contents of the peer's messages ---- */

/* Writes the most important keys of the run description, such as "model=lenet5 data=mnist ...". */
static void main_keys(const struct probe *p, char *out, size_t cap)
{
    static const char *const key[] = {"model", "data", "compress", "topology", "policy"};
    struct run r;
    char error[RUN_ERROR_MAX];
    out[0] = '\0';
    if (cmd_run_parse(&r, p->run, strlen(p->run), error) < 0) {
        snprintf(out, cap, "with keys unknown to this program: %.200s", error);
        return;
    }
    for (size_t i = 0; i < sizeof key / sizeof *key; i++) {
        char find[32];
        size_t n = strlen(out);
        snprintf(find, sizeof find, "%s=", key[i]);
        const char *at = p->run;
        while (at != NULL && strncmp(at, find, strlen(find)) != 0) {
            at = strchr(at, '\n');
            at = at != NULL ? at + 1 : NULL;
        }
        if (at != NULL)
            snprintf(out + n, cap - n, " %.*s", (int)strcspn(at, "\n"), at);
    }
}

static void say_run(struct probe *p)
{
    char keys[TEXT_MAX / 2];
    double took = since(p->begun_ns);
    if (p->refused) {
        say(p, STEP_RUN, false, took, "%s admits only identities on its allow-list: %s", p->name,
            p->has_identity ? "the identity of --identity is not listed"
                            : "give the secret key of a listed identity with --identity FILE");
    } else if (!p->greeted && p->ended) {
        say(p, STEP_RUN, false, took, "%s", connection_diagnostics_why(NODE_WHY_UNWELCOME));
    } else if (!p->greeted || !p->answered) {
        say(p, STEP_RUN, false, took,
            "no answer to the status request: the peer may still be reading its data, or hangs");
    } else if (p->run[0] == '\0') {
        say(p, STEP_RUN, true, took, "%s has no run yet, and waits for one", p->name);
    } else {
        main_keys(p, keys, sizeof keys);
        say(p, STEP_RUN, true, took, "%s trains run %s:%s; round %llu of %llu", p->name, p->run_id,
            keys, (unsigned long long)p->status.round, (unsigned long long)p->status.n_rounds);
    }
}

/* Returns the peer's clock minus this machine's clock, in seconds. The peer read its clock at an
 * unknown time between request and answer. The result assumes the middle of this interval, and
 * `*error_s` is half of its length. */
static double clock_s(const struct probe *p, double *error_s)
{
    *error_s = (double)(p->answered_ns - p->asked_ns) * 1e-9 / 2;
    return ((double)p->status.clock_ms - (double)p->asked_ms) * 1e-3 - *error_s;
}

static void say_rest(struct probe *p)
{
    double error_s, off_s = clock_s(p, &error_s);
    say(p, STEP_MEMBERS, true, 0, "%u alive of the %u member%s that the peer knows",
        (unsigned)p->status.n_live, (unsigned)p->n_members, number_plural(p->n_members));
    if (p->status.clock_ms != 0)
        say(p, STEP_CLOCK, true, 0, "%+.3f s relative to this machine, +- %.3f s", off_s,
            error_s + 0.001);
}

/* ---- Calling the addresses that a peer announces ---- */

static bool is_looked_up(void *self)
{
    return ((struct probe *)self)->looked_up;
}

static bool is_called(void *self)
{
    return ((struct probe *)self)->called;
}

/* Calls the peer at an announced address. Returns NODE_WHY_UNKNOWN if the same peer answers there,
 * else the reason of the failure. */
static enum node_why call(struct probe *p, const char *address)
{
    char at[UV_RESOLVE_TEXT];
    uv_resolve_text(&p->at[p->now].any, at);
    if (strcmp(at, address) == 0)
        return NODE_WHY_UNKNOWN;
    p->looked_up = p->called = false;
    p->n_announced = 0;
    if (uv_client_resolve(p->client, TAG_ANNOUNCED, address) < 0
        || !uv_client_wait(p->client, p->timeout_ms, is_looked_up) || p->n_announced == 0)
        return NODE_WHY_UNRESOLVED;
    p->call = NODE_WHY_TIMEOUT;
    if (uv_client_dial(p->client, TAG_ANNOUNCED, p->announced, p->n_announced) == 0)
        (void)uv_client_wait(p->client, 3 * p->timeout_ms, is_called);
    return p->call;
}

static void say_announced(struct probe *p)
{
    for (uint32_t i = 0; i < p->record.n_addresses; i++) {
        uint64_t begin_ns = uv_hrtime();
        enum node_why why = call(p, p->record.address[i]);
        bool works = why == NODE_WHY_UNKNOWN;
        say(p, STEP_ANNOUNCE, works, since(begin_ns), "announced to other peers: %s (%s)",
            p->record.address[i], works ? "it answers there" : connection_diagnostics_why(why));
    }
    if (p->record.n_addresses > 0 && !p->worked[STEP_ANNOUNCE])
        say(p, STEP_ANNOUNCE, false, 0,
            "other peers can call this peer only if one of these addresses works from their "
            "machines; start it with --advertise HOST:PORT to announce another address");
}

/* ---- Order of the steps ---- */

static bool is_resolved(void *self)
{
    return ((struct probe *)self)->resolved;
}

static bool is_up_or_over(void *self)
{
    const struct probe *p = self;
    return p->up || p->ended;
}

static bool is_over(void *self)
{
    const struct probe *p = self;
    return p->ended || p->refused || (p->greeted && p->answered);
}

static int resolve(struct probe *p)
{
    uint64_t begin_ns = uv_hrtime();
    char text[TEXT_MAX] = "", one[UV_RESOLVE_TEXT];
    int err = uv_client_resolve(p->client, 0, p->peer);
    if (err == -EINVAL)
        return cmd_fail(p->o, CMD_USAGE, "found '%.80s', expected %s", p->peer,
                        uv_resolve_expected(p->peer));
    if (err < 0)
        return cmd_fail(p->o, CMD_FAILED, "cannot look up %.80s: %s", p->peer, uv_strerror(err));
    bool answered = uv_client_wait(p->client, p->timeout_ms, is_resolved);
    for (uint32_t i = 0; i < p->n; i++) {
        size_t n = strlen(text);
        uv_resolve_text(&p->at[i].any, one);
        snprintf(text + n, sizeof text - n, "%s%s", i > 0 ? ", " : "", one);
    }
    say(p, STEP_NAME, p->n > 0, since(begin_ns), "%s",
        p->n > 0   ? text
        : answered ? connection_diagnostics_why(NODE_WHY_UNRESOLVED)
                   : "no answer to the lookup in time");
    return CMD_OK;
}

/* Performs the steps of the probe at one address, until a step fails. Returns CMD_OK, or an exit
 * code after a message on stderr. */
static int visit(struct probe *p)
{
    p->up = p->ended = p->greeted = p->answered = p->refused = false;
    p->n_members = 0;
    p->begun_ns = uv_hrtime();
    uv_client_deadline(p->client, p->timeout_ms);
    int err = uv_client_dial(p->client, 0, &p->at[p->now], 1);
    if (err < 0)
        return cmd_fail(p->o, CMD_FAILED, "cannot dial: %s", uv_strerror(err));
    (void)uv_client_wait(p->client, 3 * p->timeout_ms, is_up_or_over);
    if (p->up)
        (void)uv_client_wait(p->client, p->timeout_ms, is_over);
    if (p->up && !p->worked[STEP_RUN]) {
        say_run(p);
        if (p->worked[STEP_RUN])
            say_rest(p);
    }
    if (p->worked[STEP_RUN] && !p->tried[STEP_ANNOUNCE])
        say_announced(p);
    if (p->up && !p->ended)
        uv_client_hangup(p->client, p->session);
    return CMD_OK;
}

/* ---- Printing the result, and the command ---- */

/* Returns the name of the first step of the probe that worked at no address, or NULL if there is
 * none. Considers only the steps up to `run`, or without --key the steps up to `tcp`. */
static const char *first_failure(const struct probe *p)
{
    enum step last = p->has_key ? STEP_RUN : STEP_TCP;
    for (int i = 0; i <= (int)last; i++)
        if (!p->worked[i])
            return step_word[i];
    return NULL;
}

static json_t *whole(bool known, uint64_t value)
{
    return known ? uv_metrics_whole(value) : json_null();
}

static json_t *text_or_null(bool known, const char *text)
{
    return known ? json_string(text) : json_null();
}

static void print_json(struct probe *p, const char *failed)
{
    char id[2 * WIRE_ID_BYTES + 1] = "";
    bool ran = p->worked[STEP_RUN], key = p->worked[STEP_VERSION], clock = p->worked[STEP_CLOCK];
    bool has_run = ran && p->run[0] != '\0';
    double error_s = 0, off_s = clock ? clock_s(p, &error_s) : 0;
    for (int i = 0; i < WIRE_ID_BYTES; i++)
        snprintf(id + 2 * i, 3, "%02x", p->id[i]);
    json_t *j = json_pack("{s:s, s:b, s:o, s:O}", "address", p->peer, "ok", failed == NULL,
                          "failed", text_or_null(failed != NULL, failed), "steps", p->steps);
    json_object_set_new(j, "name", text_or_null(ran, p->name));
    json_object_set_new(j, "id", text_or_null(key, id));
    json_object_set_new(j, "version", whole(key, p->version));
    json_object_set_new(j, "run_id", text_or_null(has_run, p->run_id));
    json_object_set_new(j, "run", text_or_null(has_run, p->run));
    json_object_set_new(j, "round", whole(has_run, p->status.round));
    json_object_set_new(j, "rounds", whole(has_run, p->status.n_rounds));
    json_object_set_new(j, "alive", whole(ran, p->status.n_live));
    json_object_set_new(j, "members", whole(ran, p->n_members));
    json_object_set_new(j, "clock_s", clock ? uv_metrics_number(off_s) : json_null());
    json_object_set_new(j, "clock_error_s", clock ? uv_metrics_number(error_s) : json_null());
    json_t *addresses = json_array();
    for (uint32_t i = 0; ran && i < p->record.n_addresses; i++)
        json_array_append_new(addresses, json_string(p->record.address[i]));
    json_object_set_new(j, "addresses", addresses);
    json_object_set_new(j, "callable",
                        p->tried[STEP_ANNOUNCE] ? json_boolean(p->worked[STEP_ANNOUNCE])
                                                : json_null());
    json_dumpf(j, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
    putchar('\n');
    json_decref(j);
}

static int take_key(struct probe *p)
{
    char error[KEYFILE_ERROR_MAX];
    const char *file = options_text(p->o, "key"), *own = options_text(p->o, "identity");
    p->has_key = file != NULL;
    p->has_identity = own != NULL;
    if (own != NULL && file == NULL)
        return cmd_fail(p->o, CMD_USAGE, "--identity needs --key");
    if (own != NULL && uv_identity_read(own, &p->identity, NULL, error) < 0)
        return cmd_fail(p->o, CMD_USAGE, "--identity: %s", error);
    if (!p->has_key || keyfile_read(file, p->psk, error) == 0)
        return CMD_OK;
    return cmd_fail(p->o, CMD_USAGE, "--key: %s", error);
}

static int probe_all(struct probe *p)
{
    int code = resolve(p);
    for (p->now = 0; code == CMD_OK && p->now < p->n; p->now++)
        code = visit(p);
    if (code != CMD_OK)
        return code;
    const char *failed = first_failure(p);
    if (p->json)
        print_json(p, failed);
    else if (failed == NULL && !p->has_key)
        printf("%s accepts TCP connections; give --key to test the session\n", p->peer);
    return failed != NULL ? CMD_FAILED : CMD_OK;
}

int cmd_probe(const struct options *o)
{
    /* `p` is static, because struct probe is too large for the stack. */
    static struct probe p;
    p.o = o;
    p.peer = options_text(o, "peer");
    p.json = options_flag(o, "json");
    p.timeout_ms = (uint32_t)(options_real(o, "timeout") * 1000);
    p.steps = json_array();
    struct uv_client_calls calls = {.self = &p,
                                    .up = on_up,
                                    .message = on_message,
                                    .ended = on_ended,
                                    .failed = on_failed,
                                    .resolved = on_resolved};
    signal(SIGPIPE, SIG_IGN);
    int code = take_key(&p);
    if (code == CMD_OK
        && uv_client_open(&p.client, p.has_key ? p.psk : NULL, p.has_identity ? &p.identity : NULL,
                          &calls)
               < 0)
        code = cmd_fail(o, CMD_FAILED, "out of memory");
    else if (code == CMD_OK)
        code = probe_all(&p);
    if (p.client)
        uv_client_close(p.client);
    json_decref(p.steps);
    explicit_bzero(p.psk, sizeof p.psk);
    channel_identity_close(&p.identity);
    int flushed = cmd_finish(o);
    return code != CMD_OK ? code : flushed;
}
