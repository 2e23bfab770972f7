/* peer/uv/syn_filter.h -- lets the kernel drop connections of a flood before they wake up the process.
 *
 * A connection that is accepted only to be closed costs 15 microseconds of CPU; thousands per second
 * slow down the training. An address with more than per_s connections per second is therefore
 * filtered: a classic BPF program on the listening socket drops its SYN packets at random, except about
 * pass_per_s per second. The kernel drops them without waking up the process and before the other side
 * has a connection.
 *
 *   knocks of a window (window_ms)  --> rate of each address that may have most of them
 *        rate > per_s               --> kept is pass_per_s / rate of its SYNs
 *        else                       --> all, as before
 *
 * While an address is filtered, its rate is estimated as the rate of accepted connections divided by
 * the kept share, so that the filter is removed one window after the flood. An honest peer at the same
 * address connects by chance, or when TCP retries a second later. Other addresses and established
 * connections are not affected. The SYN_FILTER_PLACES most frequent addresses are found by the
 * algorithm of Misra and Gries (1982): every address with more than a ninth of all connections is among
 * them. A flood from thousands of addresses is limited by the acceptor's other limits.
 *
 * All functions are pure except syn_filter_attach(), which does nothing on systems without such filters.
 */
#ifndef PEER_UV_SYN_FILTER_H
#define PEER_UV_SYN_FILTER_H

#include "peer/uv/resolve.h"

enum { SYN_FILTER_PLACES = 8, SYN_FILTER_PROGRAM_MAX = 16 + 8 * SYN_FILTER_PLACES };

struct syn_filter_limits
{
    /* Limits per address, in connections per second. per_s = 0: the filter is off. */
    uint32_t per_s, pass_per_s;
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
/* Returns whether an address is filtered. If so, syn_filter_turn() must be called in each
 * window, also without connections. */
bool syn_filter_is_on(const struct syn_filter *s);
/* The program for the present addresses; the number of its instructions, 0: none is needed. */
size_t syn_filter_program(const struct syn_filter *s,
                          struct syn_filter_code code[SYN_FILTER_PROGRAM_MAX]);
/* Put it on a listening socket, or take it off. 0 or a negative errno. */
int syn_filter_attach(const struct syn_filter *s, int fd);

#endif
