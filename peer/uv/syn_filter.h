/* peer/uv/syn_filter.h -- lets the kernel drop connections of a flood before they wake up the
 * process.
 *
 * A connection that is accepted and closed at once costs 15 microseconds of CPU time. Thousands of
 * connections per second slow down the training. An address with more than per_s connections per
 * second is therefore filtered: a classic BPF program on the listening socket drops its SYN packets
 * at random, except about pass_per_s per second. The kernel drops them without waking up the
 * process and before the other side has a connection.
 *
 *   connections of a window (window_ms) --> rate of each of the most frequent addresses
 *        rate > per_s                   --> keep a share of pass_per_s / rate of its SYN packets
 *        else                           --> keep all SYN packets
 *
 * While an address is filtered, its rate is estimated as the rate of accepted connections divided
 * by the kept share, so the filter is removed one window after the flood ends. An honest peer at
 * the same address connects if its packet is among the kept ones, or when TCP retries a second
 * later. Other addresses and established connections are not affected.
 *
 * The SYN_FILTER_PLACES most frequent addresses are found by the algorithm of Misra and Gries
 * (1982): every address with more than a ninth of all connections is among them. A flood from
 * thousands of addresses is limited by the other limits of peer/uv/accept.h.
 *
 * All functions are pure except syn_filter_attach(), which does nothing on systems without such
 * filters.
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

/* A counted address: an IPv4 address, or the first 64 bits of an IPv6 address. */
struct syn_filter_entry
{
    bool used, v6, sieved;
    uint32_t prefix[2]; /* Address in host byte order. IPv4 uses prefix[0] only. */
    /* Estimated number of connections in this counting period. A connection of an address without
     * an entry reduces the number by one (algorithm of Misra and Gries). */
    uint32_t n;
    double kept; /* Share of this address's SYN packets that pass the filter, in (0, 1]. */
};

struct syn_filter
{
    struct syn_filter_limits limits;
    struct syn_filter_entry at[SYN_FILTER_PLACES];
    uint64_t since_ms; /* Time at which the current window began, in milliseconds. */
};

/* One BPF instruction, with the layout of struct sock_filter. */
struct syn_filter_code
{
    uint16_t code;
    uint8_t jt, jf;
    uint32_t k;
};

void syn_filter_init(struct syn_filter *s, const struct syn_filter_limits *limits, uint64_t now_ms);
/* Counts a new connection from address `a`. Returns whether the address is being filtered. */
bool syn_filter_knock(struct syn_filter *s, const union uv_address *a);
/* Starts the next counting window if the current window has ended. Returns true if the BPF program
 * has changed and must be attached again. */
bool syn_filter_turn(struct syn_filter *s, uint64_t now_ms);
/* Returns whether any address is filtered. If so, syn_filter_turn() must be called after each
 * window_ms, even if no connection arrives. */
bool syn_filter_is_on(const struct syn_filter *s);
/* Writes the BPF program for the filtered addresses. Returns its number of instructions. 0: no
 * address is filtered, so no program is needed. */
size_t syn_filter_program(const struct syn_filter *s,
                          struct syn_filter_code code[SYN_FILTER_PROGRAM_MAX]);
/* Attaches the BPF program to the listening socket `fd`. If no address is filtered, removes the
 * program from the socket. Returns 0 or a negative errno. */
int syn_filter_attach(const struct syn_filter *s, int fd);

#endif
