/* peer/run/rows.h -- option rows that several commands and libhearsay share, so that an option is
 * the same everywhere. peer/uv/settings.h explains the effects. */
#ifndef PEER_RUN_ROWS_H
#define PEER_RUN_ROWS_H

#include "peer/run/options.h"

#define ROWS_LISTEN                                                                                \
    {                                                                                              \
        .name = "listen", .kind = OPTION_TEXT, .arg = "HOST:PORT", .fallback = "0.0.0.0:7100",     \
        .help = "where to listen; the other peers are told this address, too, unless it is "       \
                "0.0.0.0 or [::] (all addresses); fd:N takes over a listening socket"              \
    }
#define ROWS_BOOTSTRAP                                                                             \
    {                                                                                              \
        .name = "bootstrap", .kind = OPTION_TEXT, .arg = "HOST:PORT,...",                          \
        .help = "peers to ask first; names are resolved to all their addresses"                    \
    }
#define ROWS_KEY                                                                                   \
    {                                                                                              \
        .name = "key", .kind = OPTION_TEXT, .arg = "FILE", .required = true,                       \
        .help = "the cluster key, as hearsay key new writes it"                                    \
    }
#define ROWS_NAME                                                                                  \
    {                                                                                              \
        .name = "name", .kind = OPTION_TEXT, .arg = "NAME",                                        \
        .help = "of this peer, [A-Za-z0-9._-]{1,32}; default: host name and port"                  \
    }
#define ROWS_ADVERTISE                                                                             \
    {                                                                                              \
        .name = "advertise", .kind = OPTION_TEXT, .arg = "HOST:PORT,...",                          \
        .help = "addresses at which others can call this peer; default: that of --listen, or "     \
                "those seen on connections"                                                        \
    }
#define ROWS_IDENTITY                                                                              \
    {                                                                                              \
        .name = "identity", .kind = OPTION_TEXT, .arg = "FILE",                                    \
        .help = "this peer's secret key, made when missing; default: identity.key under --out"     \
    }
#define ROWS_MEMBERS                                                                               \
    {                                                                                              \
        .name = "members", .kind = OPTION_TEXT, .arg = "FILE",                                     \
        .help =                                                                                    \
            "admit these identities only, one a line, as hearsay key identity prints them; read "  \
            "again when it changes"                                                                \
    }
#define ROWS_TOKEN                                                                                 \
    {                                                                                              \
        .name = "token", .kind = OPTION_TEXT, .arg = "TOKEN|@FILE",                                \
        .help = "from hearsay key invite: be admitted though not in the others' members file"      \
    }
#define ROWS_CHECKPOINT                                                                            \
    {                                                                                              \
        .name = "checkpoint", .kind = OPTION_TEXT, .arg = "SECONDS|off", .fallback = "30s",        \
        .help = "write a checkpoint so often (30s, 2.5, 10m); the same command goes on from it"    \
    }
#define ROWS_FORGET                                                                                \
    {                                                                                              \
        .name = "member-ttl", .former = "forget", .kind = OPTION_TEXT, .arg = "TIME|off",          \
        .fallback = "24h",                                                                         \
        .help = "members that are dead or gone for so long (90s, 10m, 24h) leave the table"        \
    }
#define ROWS_EVALUATE_EVERY                                                                        \
    {                                                                                              \
        .name = "evaluate-every", .kind = OPTION_UINT, .arg = "N", .min = 0, .max = 1e9,           \
        .help = "rounds between evaluations while training; 0: at the end only; default: every "   \
                "tenth of the run, more seldom in a very short one"                                \
    }
#define ROWS_EVALUATE_SAMPLES                                                                      \
    {                                                                                              \
        .name = "evaluate-samples", .kind = OPTION_UINT, .arg = "N", .min = 1, .max = 1e9,         \
        .help = "of one evaluation while training; the last takes all; default: 1000, and where "  \
                "--evaluate-every is not given no more than cost 2 % of the time"                  \
    }
#define ROWS_PATIENCE                                                                              \
    {                                                                                              \
        .name = "quorum-timeout", .former = "patience", .kind = OPTION_REAL, .arg = "SECONDS",     \
        .fallback = "600", .min = 0, .max = 1e9,                                                   \
        .help = "below --quorum a peer waits so long for the others, and then goes on without; "   \
                "in lock step the longest of all peers counts"                                     \
    }
#define ROWS_WORKER_LIMIT                                                                          \
    {                                                                                              \
        .name = "straggler-timeout", .former = "worker-limit", .kind = OPTION_REAL,                \
        .arg = "SECONDS", .fallback = "10", .min = 0, .max = 1e9,                                  \
        .help = "a neighbour whose job runs longer than this is no longer waited for; 0: no limit" \
    }
#define ROWS_METRICS                                                                               \
    {                                                                                              \
        .name = "metrics", .kind = OPTION_TEXT, .arg = "HOST:PORT",                                \
        .help = "serve figures over HTTP there: a live page for browsers at /, /metrics for "      \
                "Prometheus, /status.json, /healthz, /readyz; PORT alone is that of 127.0.0.1"     \
    }
/* Only `hearsay peer` has --bandwidth: the codec it chooses depends on timing, so that results would
 * not be reproducible in a simulation. */
#define ROWS_UPLINK                                                                                \
    {                                                                                              \
        .name = "bandwidth", .former = "uplink", .kind = OPTION_TEXT, .arg = "auto|RATE|off",      \
        .help = "with --compress auto: never sparser than what the link takes beside computing, "  \
                "and no denser than the drift is worth the time that takes; "                      \
                "auto measures the link, 100Mbit names its rate, off goes by the drift alone; "    \
                "default: auto"                                                                    \
    }

#endif
