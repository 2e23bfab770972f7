/* peer/run/rows.h -- table rows of the options that several commands and libhearsay share, so that
 * an option has the same meaning everywhere. peer/uv/settings.h explains what the options do. */
#ifndef PEER_RUN_ROWS_H
#define PEER_RUN_ROWS_H

#include "peer/run/options.h"

#define ROWS_LISTEN                                                                                \
    {                                                                                              \
        .name = "listen", .kind = OPTION_TEXT, .arg = "HOST:PORT", .fallback = "0.0.0.0:7100",     \
        .help = "address on which to listen, announced to other peers unless it is 0.0.0.0 or "    \
                "[::]; fd:N takes over a listening socket; without --listen, the next free port "  \
                "if port 7100 is in use on this machine and --bootstrap names it"                  \
    }
#define ROWS_BOOTSTRAP                                                                             \
    {                                                                                              \
        .name = "bootstrap", .kind = OPTION_TEXT, .arg = "HOST:PORT,...",                          \
        .help = "peers to contact first; names are resolved to all their addresses"                \
    }
#define ROWS_KEY                                                                                   \
    {                                                                                              \
        .name = "key", .kind = OPTION_TEXT, .arg = "FILE", .required = true,                       \
        .help = "file of the cluster key (hearsay key new)"                                        \
    }
#define ROWS_NAME                                                                                  \
    {                                                                                              \
        .name = "name", .kind = OPTION_TEXT, .arg = "NAME",                                        \
        .help = "name of this peer, [A-Za-z0-9._-]{1,32}; default: host name and port"             \
    }
#define ROWS_ADVERTISE                                                                             \
    {                                                                                              \
        .name = "advertise", .kind = OPTION_TEXT, .arg = "HOST:PORT,...",                          \
        .help = "addresses at which other peers can call this peer; default: --listen, or the "    \
                "local addresses of this peer's connections"                                       \
    }
#define ROWS_IDENTITY                                                                              \
    {                                                                                              \
        .name = "identity", .kind = OPTION_TEXT, .arg = "FILE",                                    \
        .help =                                                                                    \
            "secret key of this peer; created if it is missing; default: identity.key under --out" \
    }
#define ROWS_MEMBERS                                                                               \
    {                                                                                              \
        .name = "members", .kind = OPTION_TEXT, .arg = "FILE",                                     \
        .help = "admit only the identities in this file, one per line (hearsay key identity); "    \
                "the file is read again when it changes"                                           \
    }
#define ROWS_TOKEN                                                                                 \
    {                                                                                              \
        .name = "token", .kind = OPTION_TEXT, .arg = "TOKEN|@FILE",                                \
        .help = "token from hearsay key invite, which admits this peer although members files do " \
                "not list it"                                                                      \
    }
#define ROWS_CHECKPOINT                                                                            \
    {                                                                                              \
        .name = "checkpoint", .kind = OPTION_TEXT, .arg = "SECONDS|off", .fallback = "30s",        \
        .help = "interval of checkpoints (30s, 2.5, 10m); the same command continues from the "    \
                "last checkpoint"                                                                  \
    }
#define ROWS_FORGET                                                                                \
    {                                                                                              \
        .name = "member-ttl", .former = "forget", .kind = OPTION_TEXT, .arg = "TIME|off",          \
        .fallback = "24h",                                                                         \
        .help = "time after which a member that died or left is removed from the member table "    \
                "(90s, 10m, 24h)"                                                                  \
    }
#define ROWS_EVALUATE_EVERY                                                                        \
    {                                                                                              \
        .name = "evaluate-every", .kind = OPTION_UINT, .arg = "N", .min = 0, .max = 1e9,           \
        .help = "rounds between evaluations during training; 0: only at the end; default: a "      \
                "tenth of the run, less often in very short runs"                                  \
    }
#define ROWS_EVALUATE_SAMPLES                                                                      \
    {                                                                                              \
        .name = "evaluate-samples", .kind = OPTION_UINT, .arg = "N", .min = 1, .max = 1e9,         \
        .help = "samples of an evaluation during training; the last evaluation takes all "         \
                "samples; default: 1000, and without --evaluate-every at most 2 % of the time"     \
    }
#define ROWS_PATIENCE                                                                              \
    {                                                                                              \
        .name = "quorum-timeout", .former = "patience", .kind = OPTION_REAL, .arg = "SECONDS",     \
        .fallback = "600", .min = 0, .max = 1e9,                                                   \
        .help = "how long a peer below --quorum waits before it continues with fewer members, "    \
                "and retries writes to a full disk; a synchronous run uses the largest value of "  \
                "all peers"                                                                        \
    }
#define ROWS_WORKER_LIMIT                                                                          \
    {                                                                                              \
        .name = "straggler-timeout", .former = "worker-limit", .kind = OPTION_REAL,                \
        .arg = "SECONDS", .fallback = "10", .min = 0, .max = 1e9,                                  \
        .help =                                                                                    \
            "stop waiting for a neighbour whose computation takes longer than this; 0: no limit"   \
    }
#define ROWS_METRICS                                                                               \
    {                                                                                              \
        .name = "metrics", .kind = OPTION_TEXT, .arg = "HOST:PORT",                                \
        .help = "serve HTTP at this address: / for browsers, /metrics for Prometheus, "            \
                "/status.json, /healthz, /readyz; a PORT alone means 127.0.0.1"                    \
    }
/* Option --bandwidth of `hearsay peer` and libhearsay. With this option the choice of codec depends
 * on measured times, so a simulation with it would not be reproducible. `hearsay sim` therefore has
 * an option --bandwidth of its own: the bandwidth of the simulated links. */
#define ROWS_UPLINK                                                                                \
    {                                                                                              \
        .name = "bandwidth", .former = "uplink", .kind = OPTION_TEXT, .arg = "auto|RATE|off",      \
        .help = "with --compress auto: use spare bandwidth for denser deltas; auto: measure the "  \
                "link; 100Mbit: rate of the link; off: choose codecs by the consensus distance "   \
                "only; default: auto"                                                              \
    }

#endif
