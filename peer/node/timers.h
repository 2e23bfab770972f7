/* peer/node/timers.h -- the table of all timers of the node.
 *
 * Each fixed delay of the node is one row: name, period in microseconds, and purpose. The table
 * defines the constants that the code uses, and timer_all[]. peer/docs/timers.md and
 * `hearsay status --json` list the same rows. Delays that a user may change are options
 * (peer/run/rows.h, peer/run/core.c), and have no row.
 *
 * Timers run in node time, which stops while the process is paused (env.h). Periods suit a local
 * network.
 */
#ifndef PEER_NODE_TIMERS_H
#define PEER_NODE_TIMERS_H

#include <stdint.h>

/* TIMER(name, period_us, purpose): a timer whose period fits into an int.
 * LONG(name, period_us, purpose): a timer with a longer period.
 * The purpose is one sentence that says what expires and what happens then. A comment with dashes
 * begins a section of peer/docs/timers.md. deploy/man reads this macro. */
/* clang-format off */
#define TIMERS(TIMER, LONG)                                                                        \
    /* ---- Clock ---- */                                                                          \
    TIMER(TICK_US, 100 * 1000,                                                                     \
          "The node checks its timers at this interval.")                                          \
    TIMER(PAUSE_US, 2 * TICK_US,                                                                   \
          "If the process wakes up late by more than this time, it was paused, and its timers "    \
          "ignore the pause.")                                                                     \
    /* ---- Failure detector ---- */                                                               \
    TIMER(HEARTBEAT_US, 500 * 1000,                                                                \
          "The peer sends a PING on each session at this interval.")                               \
    TIMER(ABSENT_US, 900 * 1000,                                                                   \
          "A neighbour that sends nothing for this time is absent (flap damping).")                \
    TIMER(SILENT_US, 3 * 1000 * 1000,                                                              \
          "A session on which nothing arrives for this time is silent: its edge pauses, and its "  \
          "member may be accused.")                                                                \
    TIMER(PROBE_US, 1000 * 1000,                                                                   \
          "A silent member is accused if no other member reports within this time that it has "    \
          "heard the member.")                                                                     \
    TIMER(SUSPECT_US, 7 * 1000 * 1000,                                                             \
          "A member that one member has accused is declared dead after this time, unless it "      \
          "refutes the accusation.")                                                               \
    TIMER(CONFIRMED_US, 2 * 1000 * 1000,                                                           \
          "A member that two members have accused is declared dead after this time, unless it "    \
          "refutes the accusations.")                                                              \
    TIMER(REFUTED_US, 5 * 1000 * 1000,                                                             \
          "A member that has refuted an accusation may be accused again after this time, doubled " \
          "for each earlier refutation.")                                                          \
    TIMER(REFUTED_MAX_US, 60 * 1000 * 1000,                                                        \
          "Upper limit of REFUTED_US, which doubles for each earlier refutation.")                 \
    TIMER(MONITOR_GRACE_US, 3 * 1000 * 1000,                                                       \
          "After the first member has ended its run, the silence of a newly monitored member "     \
          "counts only after this time.")                                                          \
    TIMER(DEAD_LINK_US, 6 * 1000 * 1000,                                                           \
          "A session on which nothing arrives for this time is closed, and the peer is dialled "   \
          "again.")                                                                                \
    TIMER(OBSERVER_SILENT_US, 120 * 1000 * 1000,                                                   \
          "A session with an observer on which nothing arrives for this time is closed.")          \
    TIMER(SURPLUS_LINK_US, 15 * 1000 * 1000,                                                       \
          "A session that this peer dialled and does not need is closed after this time.")         \
    TIMER(ENDED_AFTER_PAUSE_US, 10 * 1000 * 1000,                                                  \
          "If a peer was paused, or all other members have finished, and all dials are refused "   \
          "for this time, the processes of the other members count as ended.")                     \
    TIMER(ENDED_AFTER_CUT_US, 30 * 1000 * 1000,                                                    \
          "If all dials of a peer that a network failure cut off are refused for this time, "      \
          "the processes of the other members count as ended.")                                    \
    TIMER(ANTI_ENTROPY_US, 10 * 1000 * 1000,                                                       \
          "The peer sends its whole member table on one random session at this interval.")         \
    TIMER(NEW_MEMBERS_US, 60 * 1000 * 1000,                                                        \
          "A session may announce at most 1,024 unknown members in each interval of this length.") \
    TIMER(MEMBERSHIP_LOG_US, 60 * 1000 * 1000,                                                     \
          "After four messages about a member, at most one more is printed in each interval of "   \
          "this length.")                                                                          \
    /* ---- Duplicate names and identities ---- */                                                 \
    TIMER(DUPLICATE_NAME_US, 10 * 1000 * 1000,                                                     \
          "If two live members have the same name for this time, the one that started later is "   \
          "refused.")                                                                              \
    TIMER(DUPLICATE_IDENTITY_US, 60 * 1000 * 1000,                                                 \
          "The error about another process with this peer's identity is repeated after this time " \
          "at the earliest.")                                                                      \
    TIMER(DUPLICATE_RECORD_US, 1000 * 1000,                                                        \
          "If a session that reports another process with this peer's identity is lost within "    \
          "this time, the peer prints an error about that process.")                               \
    /* ---- Dialling ---- */                                                                       \
    TIMER(REDIAL_MIN_US, 100 * 1000,                                                               \
          "After a failed dial, a member is dialled again after this time, doubled for each "      \
          "earlier failure.")                                                                      \
    TIMER(REDIAL_MAX_US, 5 * 1000 * 1000,                                                          \
          "Upper limit of the delay between dials, which starts at REDIAL_MIN_US and doubles.")    \
    TIMER(RESTARTING_US, 15 * 1000 * 1000,                                                         \
          "A member whose last message is not older than this time may be restarting, and is "     \
          "dialled more often.")                                                                   \
    TIMER(REDIAL_RECENT_US, 500 * 1000,                                                            \
          "Upper limit of the delay between dials of a member that may be restarting, which "      \
          "starts at REDIAL_MIN_US and doubles.")                                                  \
    TIMER(REDIAL_RESET_US, 1000 * 1000,                                                            \
          "If a session that no edge needs is lost, its member is dialled again at once if the "   \
          "session lasted longer than this time.")                                                 \
    TIMER(DIAL_YIELD_US, 2 * 1000 * 1000,                                                          \
          "The peer with the larger identity waits this time for the other one to dial before it " \
          "dials, too.")                                                                           \
    TIMER(DEAD_REDIAL_US, 30 * 1000 * 1000,                                                        \
          "One dead member is dialled at this interval.")                                          \
    TIMER(DEAD_REDIAL_ALONE_US, 2 * 1000 * 1000,                                                   \
          "A peer that was cut off or paused, or has no session, dials one dead member at this "   \
          "interval.")                                                                             \
    TIMER(DIAL_DROPPED_US, 1000 * 1000,                                                            \
          "In each interval of this length, at most 8 members that this peer has dropped from "    \
          "its table are accused and dialled.")                                                    \
    TIMER(BOOTSTRAP_US, 30 * 1000 * 1000,                                                          \
          "The names of the bootstrap list are resolved and dialled again at this interval.")      \
    TIMER(BOOTSTRAP_ALONE_US, 2 * 1000 * 1000,                                                     \
          "A peer without a session resolves and dials the bootstrap list at this interval.")      \
    TIMER(CALLBACK_US, 1000 * 1000,                                                                \
          "A session that has lasted for this time is not a duplicate, and its member is called "  \
          "at its announced addresses.")                                                           \
    TIMER(CALLBACK_RETRY_US, 1500 * 1000,                                                          \
          "After calls to all addresses of a member have failed, they are repeated once after "    \
          "this time.")                                                                            \
    TIMER(CALLBACK_NO_ADDRESS_US, 10 * 1000 * 1000,                                                \
          "A member whose address is not known is looked up again after this time.")               \
    TIMER(CALLBACK_UNMET_US, 4 * 1000 * 1000,                                                      \
          "If dials to a new member fail for this time, a warning is printed.")                    \
    TIMER(CALLBACK_COLLECT_US, 1000 * 1000,                                                        \
          "Reports that members cannot call this peer are collected for this time and printed as " \
          "one warning.")                                                                          \
    TIMER(CALLBACK_WARNING_US, 10 * 1000 * 1000,                                                   \
          "The warning that no member can call this peer is repeated after this time, doubled "    \
          "for each earlier warning.")                                                             \
    TIMER(CALLBACK_WARNING_MAX_US, 600 * 1000 * 1000,                                              \
          "Upper limit of CALLBACK_WARNING_US, which doubles for each earlier warning.")           \
    TIMER(CONNECTION_US, 3 * 1000 * 1000,                                                          \
          "A peer without a session or a run prints the first warning after this time.")           \
    TIMER(CONNECTION_LOST_US, 30 * 1000 * 1000,                                                    \
          "A peer that has lost all sessions prints a warning after this time.")                   \
    TIMER(CONNECTION_STARTING_US, 10 * 1000 * 1000,                                                \
          "If a peer accepts connections and does not answer for this time, a warning is "         \
          "printed.")                                                                              \
    TIMER(CONNECTION_WARNING_US, 10 * 1000 * 1000,                                                 \
          "A warning about missing sessions or a missing run is repeated after this time, "        \
          "doubled for each earlier warning.")                                                     \
    TIMER(CONNECTION_WARNING_MAX_US, 600 * 1000 * 1000,                                            \
          "Upper limit of CONNECTION_WARNING_US, which doubles for each earlier warning.")         \
    /* ---- Admission and quarantine ---- */                                                       \
    TIMER(REFUSED_END_US, 10 * 1000 * 1000,                                                        \
          "A peer that has been refused for this time, and is admitted by no other peer, exits "   \
          "with an error.")                                                                        \
    TIMER(REFUSAL_VALID_US, 7 * 1000 * 1000,                                                       \
          "A refusal that is older than this time no longer counts.")                              \
    TIMER(REFUSED_REDIAL_US, 500 * 1000,                                                           \
          "A peer that has been refused dials again after this time.")                             \
    TIMER(REFUSER_REDIAL_US, 2 * 1000 * 1000,                                                      \
          "A peer that has refused another peer waits for this time before it may dial that "      \
          "peer.")                                                                                 \
    TIMER(ADMITTED_US, 2 * 1000 * 1000,                                                            \
          "A session that has lasted for this time proves that the other end admits this peer.")   \
    TIMER(ADMIT_WARNING_US, 600 * 1000 * 1000,                                                     \
          "A warning about a refusal may be repeated for the same peer and reason after this "     \
          "time.")                                                                                 \
    TIMER(QUARANTINE_US, 1000 * 1000,                                                              \
          "A peer that violated the protocol may have sessions again after this time, doubled "    \
          "for each earlier violation.")                                                           \
    TIMER(QUARANTINE_MAX_US, 300 * 1000 * 1000,                                                    \
          "Upper limit of QUARANTINE_US, which doubles for each earlier violation.")               \
    TIMER(QUARANTINE_FORGIVEN_US, 600 * 1000 * 1000,                                               \
          "If a peer does not violate the protocol for this time after a quarantine, its next "    \
          "quarantine is as short as the first.")                                                  \
    /* ---- Edges ---- */                                                                          \
    TIMER(EDGE_REFUSED_US, 500 * 1000,                                                             \
          "An edge that was closed because the neighbour sent a model that no correct peer can "   \
          "have opens again after this time, doubled for each earlier closure.")                   \
    TIMER(EDGE_SUSPECT_US, 5 * 1000 * 1000,                                                        \
          "An edge that was closed because the models at its ends stayed unusually far apart "     \
          "opens again after this time, doubled for each earlier closure.")                        \
    LONG(EDGE_CLOSED_MAX_US, 23 * 3600 * (int64_t)1000 * 1000,                                     \
          "Upper limit of EDGE_REFUSED_US and EDGE_SUSPECT_US, which double for each earlier "     \
          "closure.")                                                                              \
    TIMER(BANDWIDTH_US, 1000 * 1000,                                                               \
          "A peer with --bandwidth RATE chooses its codec again at most once in each interval "    \
          "of this length.")                                                                       \
    /* ---- Start and join ---- */                                                                 \
    TIMER(START_ALONE_US, 3 * 1000 * 1000,                                                         \
          "If no peer of the bootstrap list answers for this time, this peer starts without one.") \
    TIMER(PROPOSE_RUN_US, 3 * 1000 * 1000,                                                         \
          "If no other run arrives for this time after a peer has abandoned a run, the peer "      \
          "proposes its own run.")                                                                 \
    TIMER(QUIET_US, 200 * 1000,                                                                    \
          "The first round begins when all edges are open and the last one opened this time ago.") \
    TIMER(SCHEDULE_OPENING_US, 10 * 1000 * 1000,                                                   \
          "After this time, the first round begins although some edges are not open.")             \
    TIMER(STATISTICS_LOG_US, 1000 * 1000,                                                          \
          "A peer that waits for column statistics prints the first message after this time.")     \
    TIMER(STATISTICS_LOG_AGAIN_US, 10 * 1000 * 1000,                                               \
          "The message about missing column statistics is repeated at this interval.")             \
    TIMER(INITIAL_STALL_US, 5 * 1000 * 1000,                                                       \
          "If no piece of the initial model arrives for this time, another member is asked.")      \
    TIMER(INITIAL_WRONG_US, 30 * 1000 * 1000,                                                      \
          "A member that sent an initial model with a wrong hash may be asked again after this "   \
          "time.")                                                                                 \
    TIMER(INITIAL_ABANDON_US, 5 * 1000 * 1000,                                                     \
          "If no member with a session has the initial model for this time, the run is "           \
          "abandoned.")                                                                            \
    TIMER(STATE_TRANSFER_STALL_US, 5 * 1000 * 1000,                                                \
          "If a member sends no part of a requested model for this time, other members are "       \
          "asked.")                                                                                \
    TIMER(STATE_TRANSFER_RETRY_US, 20 * 1000 * 1000,                                               \
          "If all members that send a model are silent, one of them is asked again after this "    \
          "time.")                                                                                 \
    TIMER(STATE_TRANSFER_PIECE_US, 2 * 1000 * 1000,                                                \
          "A piece of a model that does not arrive for this time is requested from another "       \
          "member, too.")                                                                          \
    TIMER(STATE_TRANSFER_SOURCES_US, 3 * 1000 * 1000,                                              \
          "If fewer than two members have sent sketches of a fetched model, this peer looks "      \
          "for more such members during this time.")                                               \
    TIMER(STATE_TRANSFER_SKETCHES_US, STATE_TRANSFER_STALL_US,                                     \
          "If two members have sent sketches of a fetched model, the wait for the sketches of "    \
          "other members ends after this time.")                                                   \
    TIMER(STATE_TRANSFER_SKETCHES_MAX_US, STATE_TRANSFER_RETRY_US,                                 \
          "If fewer than two members have sent sketches of a fetched model, the wait for "         \
          "sketches ends after this time.")                                                        \
    TIMER(MODEL_SERVER_COPY_US, 10 * 1000 * 1000,                                                  \
          "The copy of the model that is sent to other members is dropped after this time.")       \
    TIMER(RESUME_US, 30 * 1000 * 1000,                                                             \
          "If a quorum is back, a resuming peer stops waiting for the absent members after this "  \
          "time.")                                                                                 \
    TIMER(RESUME_LOG_US, 5 * 1000 * 1000,                                                          \
          "A resuming peer that waits for absent members prints the first message after this "     \
          "time.")                                                                                 \
    TIMER(RESUME_LOG_AGAIN_US, 30 * 1000 * 1000,                                                   \
          "The message about absent members is repeated at this interval.")                        \
    /* ---- Rounds ---- */                                                                         \
    TIMER(STEP_ANNOUNCE_US, 500 * 1000,                                                            \
          "A waiting peer announces its step counter at this interval.")                           \
    TIMER(SKIP_WARNING_US, 10 * 1000 * 1000,                                                       \
          "The warning about skipped rounds may be repeated after this time.")                     \
    TIMER(QUORUM_STABLE_US, 30 * 1000 * 1000,                                                      \
          "If the quorum is lost after it has lasted for this time, --quorum-timeout starts from " \
          "0 again.")                                                                              \
    TIMER(SCHEDULE_HOLD_US, 500 * 1000,                                                            \
          "A peer below the quorum starts its next job, which only mixes, after this time.")       \
    TIMER(JOB_PROGRESS_US, 1000 * 1000,                                                            \
          "A worker in its first job or in an evaluation reports progress at this interval.")      \
    TIMER(USUAL_WAIT_US, 1000,                                                                     \
          "In the average wait of a peer in lock step, each wait counts with at most four "        \
          "times the average plus this time.")                                                     \
    TIMER(WAIT_LOG_US, 5 * 1000 * 1000,                                                            \
          "A peer that has waited for this time prints the reason of the wait.")                   \
    TIMER(WAIT_LOG_MEMBERS_US, 1000 * 1000,                                                        \
          "A peer that has waited for missing members for this time prints how many members "      \
          "are present.")                                                                          \
    TIMER(WAIT_LOG_AGAIN_US, 30 * 1000 * 1000,                                                     \
          "The message about a wait is repeated at this interval.")                                \
    TIMER(WAIT_LOG_ANSWER_US, 2 * 1000 * 1000,                                                     \
          "A neighbour that sends nothing for this time is reported as not answering.")            \
    TIMER(ROUND_PROTOCOL_STALL_US, 1000 * 1000,                                                    \
          "If a round of a mixer without edges makes no progress for this time, all members are "  \
          "asked again.")                                                                          \
    TIMER(ROUND_PROTOCOL_REQUEST_US, 1000 * 1000,                                                  \
          "In a mixer without edges, a report or a request for a model may be repeated after "     \
          "this time, which doubles with each further request, up to 32 times this time.")         \
    TIMER(ROUND_PROTOCOL_REPORTS_US, 250 * 1000,                                                   \
          "In a mixer with a server, a new server waits for reports of the members for this "      \
          "time, and then asks the members that have not reported.")                               \
    /* ---- Consensus phase and end of the run ---- */                                             \
    TIMER(SCHEDULE_STALL_US, 30 * 1000 * 1000,                                                     \
          "The consensus phase of a peer with quorum ends after this time without progress, and "  \
          "the finishing phase ends this time after the last job, unless the peer waits for a "    \
          "certificate.")                                                                          \
    TIMER(SCHEDULE_LOST_US, 15 * 1000 * 1000,                                                      \
          "If a neighbour has no session for this time, this peer stops waiting for it, even "     \
          "if other members report that the neighbour is alive.")                                  \
    TIMER(SCHEDULE_BRIEF_US, 1000 * 1000,                                                          \
          "An edge that is lost for at most this time still counts as open in the consensus "      \
          "phase.")                                                                                \
    TIMER(SCHEDULE_SLOW_US, 250 * 1000,                                                            \
          "A peer in the consensus phase that waits for slow trainers or a lost edge starts its "  \
          "next job after this time.")                                                             \
    TIMER(QUIET_END_US, 2 * 1000 * 1000,                                                           \
          "If no exchange takes place for this time, this peer accepts a record that says that a " \
          "neighbour has finished.")                                                               \
    TIMER(FINISH_RETRY_US, 300 * 1000,                                                             \
          "The coordinator of the finish protocol begins its next ballot after this time, "        \
          "doubled for each earlier ballot, three times at most.")                                 \
    TIMER(FINISH_WAVE_US, 2 * 1000 * 1000,                                                         \
          "The coordinator gives up a wave (a question to all members) without all answers after " \
          "this time, doubled for each ballot, four times at most.")                               \
    TIMER(FINISH_TAKEOVER_US, 3 * 1000 * 1000,                                                     \
          "If the finish protocol has no certificate after this time, the member with the next "   \
          "rank coordinates, too.")                                                                \
    TIMER(FINISH_MIXING_US, 5 * 1000 * 1000,                                                       \
          "If members still mix models, the coordinator begins its first ballot after this time, " \
          "except in the last attempt, and aborts the attempt if all these members are overdue.")  \
    TIMER(FINISH_ANSWERS_US, 15 * 1000 * 1000,                                                     \
          "If members that have ended their run do not answer, the coordinator ends the run "      \
          "without them after this time.")                                                         \
    TIMER(FINISH_LONELY_US, 1000 * 1000,                                                           \
          "If a peer with a final model receives no question of the finish protocol for this "     \
          "time, it dials the coordinator.")                                                       \
    TIMER(GRACEFUL_STOP_US, 2500 * 1000,                                                           \
          "A peer that was asked to stop leaves after this time, even without a last checkpoint.") \
    TIMER(FINAL_MODEL_RETRY_US, 1000 * 1000,                                                       \
          "If a final model could not be written, the peer tries again after this time, doubled "  \
          "for each failed write.")                                                                \
    TIMER(FINAL_MODEL_RETRY_MAX_US, 10 * 1000 * 1000,                                              \
          "Upper limit of FINAL_MODEL_RETRY_US, which doubles for each failed write.")
/* clang-format on */

#define TIMER_ENUMERATOR(name, period_us, purpose) name = (period_us),
#define TIMER_CONSTANT(name, period_us, purpose)   static const int64_t name = (period_us);
#define TIMER_NOTHING(name, period_us, purpose)

enum timer_us { TIMERS(TIMER_ENUMERATOR, TIMER_NOTHING) };
TIMERS(TIMER_NOTHING, TIMER_CONSTANT)

struct timer
{
    const char *name;    /* Name of the constant, such as "HEARTBEAT_US". */
    int64_t period_us;   /* Period in microseconds. Greater than 0. */
    const char *purpose; /* Sentence that says what expires and what happens then. */
};

/* All timers in the order of the table. The name of the last element is NULL. */
extern const struct timer timer_all[];

#endif
