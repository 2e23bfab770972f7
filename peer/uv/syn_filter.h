/* peer/uv/syn_filter.h -- connections that the kernel is asked to drop, so that a flood wakes nobody.
 *
 * A connection that is accepted only to be closed costs 15 microseconds of this process; at
 * thousands a second a trainer beside it feels that. So an address from which more than per_s come
 * is sieved: a classic BPF program on the listening socket drops its SYNs by lot, all but about
 * pass_per_s. The kernel does that without us, and before the other side has a socket.
 *
 *   knocks of a window (window_ms)  --> rate of each address that may have most of them
 *        rate > per_s               --> kept is pass_per_s / rate of its SYNs
 *        else                       --> all, as before
 *
 * While an address is sieved, its rate is what comes, over what is kept; so the sieve is lifted one
 * window after the flood. Whoever is honest at that very address gets through by the lot, or when TCP
 * asks again a second later; all others notice nothing, and nor does a connection that stands. Which
 * addresses come most often is known for SYN_FILTER_PLACES of them, by the counting of Misra and Gries
 * (1982): whoever makes more than a ninth of all is among them. A flood from thousands of addresses is
 * left to the acceptor's other limits.
 *
 * Pure but for syn_filter_attach(), which does nothing where the system has no such filters.
 */
#ifndef PEER_UV_SYN_FILTER_H
#define PEER_UV_SYN_FILTER_H

#include "peer/uv/resolve.h"

enum { SYN_FILTER_PLACES = 8, SYN_FILTER_PROGRAM_MAX = 16 + 8 * SYN_FILTER_PLACES };

struct syn_filter_limits
{
    uint32_t per_s, pass_per_s; /* These are of one address; per_s = 0 sieves nobody. */
    uint32_t window_ms;
};

/* An IPv4 address, or the first 64 bits of an IPv6 address. */
struct syn_filter_entry
{
    bool used, v6, sieved;
    uint32_t prefix[2]; /* In the host's byte order; of IPv4 the first only. */
    uint32_t n;         /* Knocks of this window that no other address has offset. */
    double kept;        /* This share of its SYNs comes through. */
};

struct syn_filter
{
    struct syn_filter_limits limits;
    struct syn_filter_entry at[SYN_FILTER_PLACES];
    uint64_t since_ms; /* When the present window began. */
};

/* One instruction, laid out as struct sock_filter. */
struct syn_filter_code
{
    uint16_t code;
    uint8_t jt, jf;
    uint32_t k;
};

void syn_filter_init(struct syn_filter *s, const struct syn_filter_limits *limits, uint64_t now_ms);
/* True: the address is sieved, and this is one of those that came through. */
bool syn_filter_knock(struct syn_filter *s, const union uv_address *a);
/* Has the window ended? Then the next one begins. True: the program has changed. */
bool syn_filter_turn(struct syn_filter *s, uint64_t now_ms);
/* Is any address sieved? Then syn_filter_turn() must be called each window, whoever knocks. */
bool syn_filter_is_on(const struct syn_filter *s);
/* The program for the present addresses; the number of its instructions, 0: none is needed. */
size_t syn_filter_program(const struct syn_filter *s,
                          struct syn_filter_code code[SYN_FILTER_PROGRAM_MAX]);
/* Put it on a listening socket, or take it off. 0 or a negative errno. */
int syn_filter_attach(const struct syn_filter *s, int fd);

#endif
