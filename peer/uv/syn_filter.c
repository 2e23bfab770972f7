/* peer/uv/syn_filter.c -- finds addresses with too many connections and makes the BPF program
 * that drops most of them. */
#include "peer/uv/syn_filter.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#ifdef __linux__
#include <linux/filter.h>
_Static_assert(sizeof(struct syn_filter_code) == sizeof(struct sock_filter), "one layout");
#endif

void syn_filter_init(struct syn_filter *s, const struct syn_filter_limits *limits, uint64_t now_ms)
{
    *s = (struct syn_filter){.limits = *limits, .since_ms = now_ms};
}

/* ---- Finding the most frequent addresses ---- */

static uint32_t word(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static struct syn_filter_entry key_of(const union uv_address *a)
{
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    struct syn_filter_entry e = {.used = true, .kept = 1};
    const uint8_t *v6 = a->v6.sin6_addr.s6_addr;
    if (a->any.sa_family == AF_INET) {
        e.prefix[0] = ntohl(a->v4.sin_addr.s_addr);
    } else if (memcmp(v6, mapped, sizeof mapped) == 0) {
        /* The address is an IPv4 address in IPv6-mapped form. */
        e.prefix[0] = word(v6 + sizeof mapped);
    } else {
        e.v6 = true;
        e.prefix[0] = word(v6);
        e.prefix[1] = word(v6 + 4);
    }
    return e;
}

static bool same(const struct syn_filter_entry *a, const struct syn_filter_entry *b)
{
    return a->used && b->used && a->v6 == b->v6 && a->prefix[0] == b->prefix[0]
           && a->prefix[1] == b->prefix[1];
}

/* Counts a connection, as in the algorithm of Misra and Gries: if the address has no entry and no
 * entry is free, the counts of all entries are reduced by one. */
bool syn_filter_knock(struct syn_filter *s, const union uv_address *a)
{
    struct syn_filter_entry key = key_of(a), *free = NULL;
    if (s->limits.per_s == 0)
        return false;
    for (int i = 0; i < SYN_FILTER_PLACES; i++) {
        if (same(&s->at[i], &key)) {
            s->at[i].n++;
            return s->at[i].sieved;
        }
        if (!s->at[i].used || (s->at[i].n == 0 && !s->at[i].sieved))
            free = &s->at[i];
    }
    if (free != NULL) {
        *free = key;
        free->n = 1;
        return false;
    }
    for (int i = 0; i < SYN_FILTER_PLACES; i++)
        s->at[i].n -= s->at[i].n > 0;
    return false;
}

/* Ends the counting period of one address and sets the share of its SYN packets to keep. Returns
 * whether the BPF program must change. A small change of the share is ignored, because the
 * estimated rate always varies. */
static bool settle(struct syn_filter_entry *e, const struct syn_filter_limits *l,
                   uint64_t window_ms)
{
    bool was = e->sieved;
    double kept = e->kept, per_s = (double)e->n * 1e3 / (double)window_ms / kept;
    e->n = 0;
    e->sieved = e->used && per_s > l->per_s;
    e->used = e->sieved;
    e->kept = e->sieved ? l->pass_per_s / per_s : 1;
    if (!was || !e->sieved)
        return was != e->sieved;
    if (e->kept < 1.5 * kept && kept < 1.5 * e->kept) {
        e->kept = kept;
        return false;
    }
    return true;
}

bool syn_filter_turn(struct syn_filter *s, uint64_t now_ms)
{
    uint64_t window_ms = now_ms - s->since_ms;
    bool changed = false;
    if (window_ms < s->limits.window_ms)
        return false;
    for (int i = 0; i < SYN_FILTER_PLACES; i++)
        changed |= settle(&s->at[i], &s->limits, window_ms);
    s->since_ms = now_ms;
    return changed;
}

bool syn_filter_is_on(const struct syn_filter *s)
{
    bool on = false;
    for (int i = 0; i < SYN_FILTER_PLACES; i++)
        on |= s->at[i].sieved;
    return on;
}

/* ---- Making the BPF program ---- */

#ifdef __linux__

enum {
    ALL = 0x7fffffff, /* Return value of the BPF program: keep all bytes, so the packet passes. */
    /* Offset of the TCP flags in a packet, in bytes. A filter on a TCP socket gets packets that
     * begin at the TCP header. */
    TCP_FLAGS_AT = 13,
    TCP_SYN = 0x02,
    TCP_SYN_OR_ACK = 0x12
};

struct writer
{
    struct syn_filter_code *code;
    size_t n;
};

static void put(struct writer *w, uint16_t code, uint8_t jt, uint8_t jf, uint32_t k)
{
    assert(w->n < SYN_FILTER_PROGRAM_MAX);
    w->code[w->n++] = (struct syn_filter_code){code, jt, jf, k};
}

static void load(struct writer *w, uint16_t size, uint32_t at)
{
    put(w, BPF_LD | BPF_ABS | size, 0, 0, at);
}

static void give_back(struct writer *w, uint32_t n)
{
    put(w, BPF_RET | BPF_K, 0, 0, n);
}

/* Number of instructions that draw() writes. The instructions keep a random share `kept` of the
 * packets and drop the others. */
enum { LOT = 4 };
static void draw(struct writer *w, double kept)
{
    load(w, BPF_W, (uint32_t)(SKF_AD_OFF + SKF_AD_RANDOM));
    put(w, BPF_JMP | BPF_JGE | BPF_K, 0, 1, (uint32_t)(kept * 0xffffffff));
    give_back(w, 0);
    give_back(w, ALL);
}

static void put_entries(struct writer *w, const struct syn_filter *s, bool v6)
{
    uint32_t source = (uint32_t)(SKF_NET_OFF + (v6 ? 8 : 12));
    for (int i = 0; i < SYN_FILTER_PLACES; i++) {
        const struct syn_filter_entry *e = &s->at[i];
        if (!e->sieved || e->v6 != v6)
            continue;
        load(w, BPF_W, source);
        put(w, BPF_JMP | BPF_JEQ | BPF_K, 0, v6 ? LOT + 2 : LOT, e->prefix[0]);
        if (v6) {
            load(w, BPF_W, source + 4);
            put(w, BPF_JMP | BPF_JEQ | BPF_K, 0, LOT, e->prefix[1]);
        }
        draw(w, e->kept);
    }
    give_back(w, ALL);
}

/* The BPF program drops SYN packets only. Accepted connections inherit the program from the
 * listening socket, and the packets of these connections must pass. */
size_t syn_filter_program(const struct syn_filter *s,
                          struct syn_filter_code code[SYN_FILTER_PROGRAM_MAX])
{
    struct writer w = {code, 0};
    if (!syn_filter_is_on(s))
        return 0;
    load(&w, BPF_B, TCP_FLAGS_AT);
    put(&w, BPF_ALU | BPF_AND | BPF_K, 0, 0, TCP_SYN_OR_ACK);
    put(&w, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, TCP_SYN);
    give_back(&w, ALL);
    load(&w, BPF_B, (uint32_t)SKF_NET_OFF);
    put(&w, BPF_ALU | BPF_RSH | BPF_K, 0, 0, 4);
    size_t fork = w.n;
    /* IPv6 packets jump to the second list of filtered addresses. The target of the jump,
     * code[fork].jt, is set below. */
    put(&w, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 6);
    put_entries(&w, s, false);
    code[fork].jt = (uint8_t)(w.n - fork - 1);
    put_entries(&w, s, true);
    return w.n;
}

int syn_filter_attach(const struct syn_filter *s, int fd)
{
    struct syn_filter_code code[SYN_FILTER_PROGRAM_MAX];
    size_t n = syn_filter_program(s, code);
    struct sock_fprog program = {(unsigned short)n, (struct sock_filter *)code};
    int none = 0;
    int err = n == 0 ? setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof none)
                     : setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
    return err < 0 ? -errno : 0;
}

#else

size_t syn_filter_program(const struct syn_filter *s,
                          struct syn_filter_code code[SYN_FILTER_PROGRAM_MAX])
{
    (void)s, (void)code;
    return 0;
}

int syn_filter_attach(const struct syn_filter *s, int fd)
{
    (void)s, (void)fd;
    return -ENOTSUP;
}

#endif
