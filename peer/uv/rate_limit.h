/* peer/uv/rate_limit.h -- limits the rate of new connections: one token bucket for all, and one
 * per address.
 *
 * A new connection is WELCOME if all addresses together connect less often than calm_per_s per
 * second, or if its own address is within its rate. A WELCOME connection has the whole deadline for
 * its handshake. Any other connection is HASTY: its first message must have arrived already.
 *
 * An address is an IPv4 address or the first 64 bits of an IPv6 address, because one host may own
 * such a prefix. Addresses are kept in a set-associative table. A new address replaces the one
 * that was idle for the longest time, and starts with a full bucket. A flood from thousands of
 * addresses is therefore limited only by the acceptor's other limits. The module is pure: callers
 * pass the time.
 */
#ifndef PEER_UV_RATE_LIMIT_H
#define PEER_UV_RATE_LIMIT_H

#include "peer/uv/resolve.h"

enum { RATE_LIMIT_SETS = 64, RATE_LIMIT_WAYS = 4 };

struct rate_limit_limits
{
    uint32_t calm_per_s,
        /* Rate (per second) and burst of connections from all addresses together. While connections
         * arrive more slowly, no address is limited. */
        calm_burst;
    /* Rate per second and burst of connections from one address. The limit applies while all
     * addresses together exceed calm_per_s. */
    uint32_t per_s, burst;
    /* Rate per second and burst of connections from loopback addresses. These limits are larger
     * than those of other addresses, because many peers may run on this host. */
    uint32_t loopback_per_s, loopback_burst;
    /* Largest number of first handshake messages per second that are decrypted for an address that
     * exceeds its connection rate. */
    uint32_t looks_per_s;
};

struct rate_limit_bucket
{
    double tokens;
    uint64_t at_ms; /* Time at which `tokens` was updated last, in milliseconds. */
};

struct rate_limit_entry
{
    /* Hash of the address family and the prefix of the address. 0: the entry is free. */
    uint64_t key;
    struct rate_limit_bucket knocks, looks;
};

struct rate_limit
{
    struct rate_limit_limits limits;
    /* Random secret in the hash of addresses. Without the secret an attacker cannot choose
     * addresses that fall into the same set of the hash table. */
    uint64_t salt;
    struct rate_limit_bucket all;
    struct rate_limit_entry at[RATE_LIMIT_SETS][RATE_LIMIT_WAYS];
};

enum rate_limit_welcome { RATE_LIMIT_WELCOME, RATE_LIMIT_HASTY };

void rate_limit_init(struct rate_limit *c, const struct rate_limit_limits *limits, uint64_t salt,
                     uint64_t now_ms);
enum rate_limit_welcome rate_limit_knock(struct rate_limit *c, const union uv_address *a,
                                         uint64_t now_ms);
/* Returns whether a first handshake message may be decrypted now (limit looks_per_s). Used for
 * connections from an address that exceeds its rate (RATE_LIMIT_HASTY). */
bool rate_limit_look(struct rate_limit *c, const union uv_address *a, uint64_t now_ms);
/* Returns whether connections arrive faster than calm_per_s. */
bool rate_limit_is_thick(const struct rate_limit *c, uint64_t now_ms);
/* Returns the table key of an address: a hash without the port. */
uint64_t rate_limit_key(const struct rate_limit *c, const union uv_address *a);

#endif
