/* tests/model/finish.pml -- the decision at the end of a run (peer/node/finish): one certificate per run.
 *
 * VOTERS peers make one or two attempts. Each attempt decides a proposal by single-decree Paxos: COMMIT, with the models
 * within, or ABORT. After a decided ABORT the peers unfreeze, mix on, and freeze other models in the second attempt.
 * The second attempt never aborts. Two peers coordinate: the ballots 1, 2, 3, ... belong to the peers FIRST, SECOND,
 * FIRST, ..., which is the order of (attempt, number, identity). A coordinator may begin a ballot at any time, also
 * while the other one is alive.
 *
 * One process takes every possible step in every order, within these limits:
 *   BALLOTS    ballots
 *   SPLIT      ballots of the first attempt; the other ballots belong to the second one. BALLOTS: one attempt
 *   RESTARTS   processes that end and start again without a memory of promises
 *   RESUMES    processes that end and start again with the promise of the earlier process
 *   LEAVES     voters that leave cleanly
 *   ENDS       1: DECIDED arrives; 0: it never does
 * There are no channels. A message is a fact that each peer may act on, at any later time or never, so messages may
 * be lost, late, repeated and out of order. A peer that takes no further step has crashed. Each peer may freeze at any
 * time, but only its messages show that it is frozen. The model therefore freezes a peer in the step in which the peer
 * sends a message. An ASK is not answered after the coordinator has proposed, because such an answer only forbids
 * later steps.
 *
 * A process without a memory of the promises of its earlier process does not vote, does not coordinate, does not
 * leave the voters, and reports no model. Any other process reports its model only in ballots above the promise of
 * its earlier process. It reports success with its own model only if the decided proposal was made in such a ballot.
 *
 * Checked:
 *   agreement  proposals of one attempt that a quorum has accepted in one ballot are the same proposal. Two new
 *              proposals of different ballots are different, even if they have the same members within.
 *   own        the decided proposal of an attempt was new in this attempt
 *   S1         each member within, of the decided COMMIT, is frozen, and its model is the one that it reported,
 *              unless its process has restarted since
 *   S2         the second attempt begins after a decided ABORT of the first one, so at most one COMMIT is decided
 *   S3         a certificate has the acceptances of at least half of the voters
 *   within     each member within, of the decided proposal, has reported that it is within
 *   covers     a peer that reports success with its own model has a model of the decided proposal
 * Each mutation MUT_* breaks one rule and must violate one of them (tests/model/run).
 */
#ifndef VOTERS
#define VOTERS 3
#endif
#ifndef BALLOTS
#define BALLOTS 3
#endif
#ifndef SPLIT
#define SPLIT BALLOTS
#endif
#ifndef RESTARTS
#define RESTARTS 1
#endif
#ifndef RESUMES
#define RESUMES 0
#endif
#ifndef LEAVES
#define LEAVES 1
#endif
#ifndef ENDS
#define ENDS 1
#endif
#ifndef FIRST
#define FIRST 0
#endif
#ifndef SECOND
#define SECOND 1
#endif

/* Sets of peers. A set of models has bit i for the model of the first process of peer i, and bit VOTERS + i for a
 * later model. */
#define ALL ((1 << VOTERS) - 1)
#define has(set, i) (((set) >> (i)) & 1)
#define add(set, i) set = (set) | (1 << (i))
#define drop(set, i) set = (set) & ~(1 << (i))
#define size(set) (has(set, 0) + has(set, 1) + has(set, 2) + has(set, 3))
#define members_of(models) (((models) | ((models) >> VOTERS)) & ALL)

/* The peers. All are sets, except the arrays and counts. */
byte frozen;                             /* The model is final. */
byte within;                             /* Frozen, and within the target. */
byte restarted;                          /* The process is not the first one of its peer. */
byte mute;                               /* The process must not vote, because an earlier one may have promised. */
byte later;                              /* In the second attempt: knows that the first one was aborted. */
byte gone;                               /* Left the voters. */
byte ended;                              /* Has the certificate, and takes no further step. */
byte promised[VOTERS];                   /* Rank of the highest ballot that the peer has promised; 0: none. */
byte earlier[VOTERS];                    /* Rank of the promise that the process has from its earlier process. */
byte taken[VOTERS];                      /* Ballot of the proposal that the peer has accepted last; 0: none. */
byte restarts, resumes, leaves;

/* The ballots: 1..BALLOTS. */
#define NONE 0
#define ASKING 1
#define PROPOSED 2
#define ORPHAN 3                         /* Proposed. The coordinator's process has ended. */
#define DEAD 4                           /* Not proposed. The coordinator's process has ended. */
byte stage[BALLOTS + 1];
byte promises[BALLOTS + 1];              /* Set of the voters that have promised, by the reports. */
byte models[BALLOTS + 1];                /* Set of the models within, by the reports. */
byte best[BALLOTS + 1];                  /* Highest ballot of an accepted proposal in the reports; 0: none. */
byte source[BALLOTS + 1];                /* Ballot in which this ballot's proposal was new; 0: no proposal yet. */
byte proposal[BALLOTS + 1];              /* Set of the models within, of a new proposal. Empty: ABORT. */
byte accepted[BALLOTS + 1];              /* Set of the voters that have accepted. */

/* For the properties only. */
byte decided[2];                         /* By attempt: source of the proposal that a quorum has accepted; 0: none. */
byte said;                               /* Set of the models that their peers have reported as within. */
hidden byte agreement, own, s1, s2, s3, is_within, covers;

#define owner(b) ((b) % 2 == 1 -> FIRST : SECOND)
#define second(b) ((b) > SPLIT)          /* Whether the ballot belongs to the second attempt. */
#define is_abort(b) (proposal[source[b]] == 0)
#define version(i) (VOTERS * has(restarted, i))
#ifdef MUT_REUSE_BALLOT
#define rank(b) ((b) == 3 -> 1 : (b))    /* Ballot 3 is ballot 1 again, by a new process of FIRST. */
#define coordinates(b) (has(restarted, owner(b)) == ((b) == 3))
#else
#define rank(b) (b)
#define coordinates(b) (!has(mute, owner(b)))
#endif

/* Whether the set has a quorum of the voters of a list. */
#if defined MUT_SMALL_QUORUM
#define quorum_of(set, list) (2 * size((set) & (list)) + 1 >= size(list) && ((set) & (list)))
#elif defined MUT_EVEN_HALF
#define quorum_of(set, list) (2 * size((set) & (list)) >= size(list))
#else
#define quorum_of(set, list) (2 * size((set) & (list)) > size(list) || \
                              (2 * size((set) & (list)) == size(list) && ((set) & (list) & -(list))))
#endif
/* A coordinator's list of voters may still have the members that have left. With LEAVES over 1, a quorum by a list
 * that has some of them is also a quorum by the list that has none. */
#define quorum(set) (quorum_of(set, ALL) || quorum_of(set, ALL & ~gone))

#ifdef MUT_VOTE_AFTER_LEAVE
#define is_here(i) (!has(ended, i))
#else
#define is_here(i) (!has(ended | gone, i))
#endif
#ifdef MUT_NO_PROMISE
#define may_promise(i, b) true
#else
#define may_promise(i, b) (rank(b) >= promised[i])
#endif
#define may_report_model(i, b) (has(within, i) && !has(mute, i) && rank(b) > earlier[i])
#ifdef MUT_COVER_EARLIER
#define is_covered(a, i) (has(within, i) && has(members_of(proposal[decided[a]]), i))
#else
#define is_covered(a, i) (has(within, i) && has(members_of(proposal[decided[a]]), i) && !has(mute, i) && \
                          rank(decided[a]) > earlier[i])
#endif
#ifdef MUT_OLD_ATTEMPT
#define in_attempt(i, b) (has(later, i) || !second(b))
#else
#define in_attempt(i, b) (has(later, i) == second(b))
#endif
#define has_answered(i, b) has(promises[b] | members_of(models[b]), i)
#define may_begin(b) (stage[b] == NONE && is_here(owner(b)) && in_attempt(owner(b), b) && !has(gone, owner(b)) && coordinates(b) && \
                      rank(b) > promised[owner(b)])
#define may_answer(i, b) (stage[b] == ASKING && is_here(i) && in_attempt(i, b) && !has_answered(i, b) && may_promise(i, b))
#define may_accept(i, b) ((stage[b] == PROPOSED || stage[b] == ORPHAN) && is_here(i) && in_attempt(i, b) && !has(mute, i) && \
                          !has(accepted[b], i) && may_promise(i, b))
#ifdef MUT_HASTY_ADOPT
#define may_adopt(b) (best[b] != 0)
#else
#define may_adopt(b) (best[b] != 0 && quorum(promises[b]))
#endif
#ifdef MUT_NO_ADOPT
#define may_invent(b) quorum(promises[b])
#else
#define may_invent(b) (best[b] == 0 && quorum(promises[b]))
#endif
#define may_commit(b) (may_invent(b) && quorum(members_of(models[b])))
#ifdef MUT_HASTY_ABORT
#define may_abort(b) (best[b] == 0)
#else
#define may_abort(b) may_invent(b)
#endif
#if defined MUT_LEAVE_PROMISED
#define may_leave(i) (!has(mute, i))
#elif defined MUT_LEAVE_RESTARTED
#define may_leave(i) (promised[i] == 0)
#else
#define may_leave(i) (promised[i] == 0 && !has(mute, i))
#endif

/* The properties S1, S2, within and covers of the decided proposals. here: the peers in the attempt. */
#define first_models(a) (proposal[decided[a]] & ALL)
#define later_models(a) (proposal[decided[a]] >> VOTERS)
#define covers_own(a, i) (!is_covered(a, i) || has(proposal[decided[a]], i + version(i)))
#if VOTERS == 3
#define EACH_IS_COVERED(a) (covers_own(a, 0) && covers_own(a, 1) && covers_own(a, 2))
#else
#define EACH_IS_COVERED(a) (covers_own(a, 0) && covers_own(a, 1) && covers_own(a, 2) && covers_own(a, 3))
#endif
inline check_attempt(a, here) {
  if :: decided[a] != 0 ->
       s1 = (!(first_models(a) & ~(restarted | (frozen & here))) && !(later_models(a) & ~(frozen & restarted & here)));
       assert(s1);
       is_within = !(proposal[decided[a]] & ~said); assert(is_within);
       covers = EACH_IS_COVERED(a); assert(covers)
     :: else
  fi
}
inline check() {
  check_attempt(0, ~later);
  check_attempt(1, later);
  s2 = (later == 0 || (decided[0] != 0 && proposal[decided[0]] == 0)); assert(s2)
}

/* A proposal is decided when the acceptances of one ballot are a quorum by any list of voters. */
inline decide(b) {
  if :: accepted[b] != 0 && quorum(accepted[b]) ->
       agreement = (decided[second(b)] == 0 || decided[second(b)] == source[b]); assert(agreement);
       own = (second(source[b]) == second(b)); assert(own);
       decided[second(b)] = source[b]
     :: else
  fi
}

/* A proposal that was accepted in the first attempt is not reported in the second one. */
#ifdef MUT_KEEP_ACCEPTED
#define may_report(i, b) (taken[i] != 0)
#else
#define may_report(i, b) (taken[i] != 0 && second(taken[i]) == second(b))
#endif

/* REPORT: what a peer adds to the answers of a ballot. */
inline report(i, b) {
  if :: !has(mute, i) ->
       add(promises[b], i);
       if :: rank(b) > promised[i] -> promised[i] = rank(b) :: else fi;
       if :: may_report(i, b) && (best[b] == 0 || rank(taken[i]) > rank(best[b])) -> best[b] = taken[i] :: else fi
     :: else
  fi;
#ifdef MUT_COUNT_FROZEN
  if :: has(frozen, i) -> add(models[b], i + version(i)) :: else fi;
  if :: has(within, i) -> add(said, i + version(i)) :: else fi
#else
  if :: may_report_model(i, b) -> add(models[b], i + version(i)); add(said, i + version(i)) :: else fi
#endif
}

inline begin(b) { stage[b] = ASKING; report(owner(b), b) }

inline accept(i, b) {
  add(accepted[b], i);
  taken[i] = b;
  if :: rank(b) > promised[i] -> promised[i] = rank(b) :: else fi;
  decide(b);
  check()
}

/* After the proposal or the end of a coordinator its reports have no further use. */
inline forget_reports(b) { promises[b] = 0; models[b] = 0; best[b] = 0 }

/* The coordinator's process ends, or enters the second attempt. */
inline abandon(i, b) {
  if :: owner(b) == i && stage[b] == ASKING -> stage[b] = DEAD; forget_reports(b)
     :: owner(b) == i && stage[b] == PROPOSED -> stage[b] = ORPHAN
     :: else
  fi
}

#if VOTERS == 3
#define EACH_PEER(STEP) STEP(0) STEP(1) STEP(2)
#define EACH_PEER_OF(STEP, b) STEP(0, b) STEP(1, b) STEP(2, b)
#else
#define EACH_PEER(STEP) STEP(0) STEP(1) STEP(2) STEP(3)
#define EACH_PEER_OF(STEP, b) STEP(0, b) STEP(1, b) STEP(2, b) STEP(3, b)
#endif
#if BALLOTS == 2
#define EACH_BALLOT(STEP) STEP(1) STEP(2)
#define EACH_ANSWER(STEP) EACH_PEER_OF(STEP, 1) EACH_PEER_OF(STEP, 2)
#define ABANDON(i) abandon(i, 1); abandon(i, 2)
#define DECIDE decide(1); decide(2)
#elif BALLOTS == 3
#define EACH_BALLOT(STEP) STEP(1) STEP(2) STEP(3)
#define EACH_ANSWER(STEP) EACH_PEER_OF(STEP, 1) EACH_PEER_OF(STEP, 2) EACH_PEER_OF(STEP, 3)
#define ABANDON(i) abandon(i, 1); abandon(i, 2); abandon(i, 3)
#define DECIDE decide(1); decide(2); decide(3)
#else
#define EACH_BALLOT(STEP) STEP(1) STEP(2) STEP(3) STEP(4)
#define EACH_ANSWER(STEP) EACH_PEER_OF(STEP, 1) EACH_PEER_OF(STEP, 2) EACH_PEER_OF(STEP, 3) EACH_PEER_OF(STEP, 4)
#define ABANDON(i) abandon(i, 1); abandon(i, 2); abandon(i, 3); abandon(i, 4)
#define DECIDE decide(1); decide(2); decide(3); decide(4)
#endif

/* A peer freezes, and takes a step that shows that it is frozen. */
#define FREEZE_WITHIN(i, condition, step) \
  :: d_step { condition && !has(frozen, i) -> add(frozen, i); add(within, i); step }
#define FREEZE_OUTSIDE(i, condition, step) \
  :: d_step { condition && !has(frozen, i) -> add(frozen, i); step }

/* A frozen peer begins a ballot, and answers its own ASK. */
#define BEGIN(b) \
  :: d_step { may_begin(b) && has(frozen, owner(b)) -> begin(b) } \
  FREEZE_WITHIN(owner(b), may_begin(b), begin(b)) \
  FREEZE_OUTSIDE(owner(b), may_begin(b), begin(b))

/* ASK arrives, and the REPORT returns. A frozen peer that is not within answers as a mixing peer does. */
#define ANSWER(i, b) \
  :: d_step { may_answer(i, b) -> report(i, b) } \
  FREEZE_WITHIN(i, may_answer(i, b), report(i, b))

/* PROPOSE: the coordinator adopts the highest accepted proposal, or makes a new one: COMMIT, or ABORT if the models
 * are too far apart, or if peers are overdue. The model knows neither. ABORT needs no quorum within. */
#define PROPOSE(b) \
  :: d_step { stage[b] == ASKING && is_here(owner(b)) && may_adopt(b) -> \
       stage[b] = PROPOSED; source[b] = source[best[b]]; forget_reports(b) } \
  :: d_step { stage[b] == ASKING && is_here(owner(b)) && may_commit(b) -> \
       stage[b] = PROPOSED; source[b] = b; proposal[b] = models[b]; forget_reports(b) } \
  :: d_step { SPLIT < BALLOTS && !second(b) && stage[b] == ASKING && is_here(owner(b)) && may_abort(b) -> \
       stage[b] = PROPOSED; source[b] = b; forget_reports(b) }

/* PROPOSE arrives, and ACCEPTED returns. */
#define ACCEPT(i, b) :: d_step { may_accept(i, b) -> accept(i, b) }

/* A peer enters the second attempt: its model is not frozen any more, and its ballots of the first attempt end. */
inline enter(i) { add(later, i); drop(frozen, i); drop(within, i); ABANDON(i); check() }

/* The coordinator has counted a quorum: it makes the certificate, or enters the second attempt. */
#define COUNT(b) \
  :: d_step { stage[b] == PROPOSED && is_here(owner(b)) && quorum(accepted[b]) -> \
       agreement = (source[b] == decided[second(b)]); assert(agreement); \
       s3 = (2 * size(accepted[b] & ALL & ~gone) >= size(ALL & ~gone)); assert(s3); \
       if :: is_abort(b) -> enter(owner(b)) :: else -> add(ended, owner(b)) fi }

/* DECIDED arrives. The peer takes no further step, as if it had crashed, so ENDS=0 finds the same violations. */
#define END(i) :: d_step { ended != 0 && is_here(i) -> add(ended, i) }

/* DECIDED with ABORT arrives, or any message of the second attempt. */
#ifdef MUT_UNFREEZE
#define may_enter(i) (taken[i] != 0 && !second(taken[i]) && is_abort(taken[i]))
#else
#define may_enter(i) (later != 0)
#endif
#define ENTER(i) :: d_step { may_enter(i) && is_here(i) && !has(later, i) -> enter(i) }

/* The process of a peer ends, and a new one starts. The new process is in the attempt of its promise. */
#define may_restart(i) (!has(gone, i) && !has(restarted, i))
inline restart(i) {
  add(restarted, i); drop(frozen, i); drop(within, i); drop(ended, i); ABANDON(i);
  if :: !second(promised[i]) -> drop(later, i) :: else fi;
  check()
}
/* The promise and the accepted proposal are lost. */
#ifdef MUT_AMNESIA
#define FORGET(i) :: d_step { restarts < RESTARTS && may_restart(i) -> restarts++; promised[i] = 0; taken[i] = 0; restart(i) }
#else
#define FORGET(i) \
  :: d_step { restarts < RESTARTS && may_restart(i) -> \
       restarts++; promised[i] = 0; taken[i] = 0; add(mute, i); restart(i) }
#endif
/* The promise and the accepted proposal are read from disk. */
#define RESUME(i) :: d_step { resumes < RESUMES && may_restart(i) -> resumes++; earlier[i] = promised[i]; restart(i) }

/* A voter leaves by its own announcement. A shorter list of voters may turn earlier acceptances into a quorum. */
#define LEAVE(i) \
  :: d_step { leaves < LEAVES && is_here(i) && !has(gone, i) && may_leave(i) -> \
       leaves++; add(gone, i); ABANDON(i); DECIDE; check() }

init {
end:
  do
  EACH_BALLOT(BEGIN)
  EACH_ANSWER(ANSWER)
  EACH_BALLOT(PROPOSE)
  EACH_ANSWER(ACCEPT)
  EACH_BALLOT(COUNT)
#if ENDS
  EACH_PEER(END)
#endif
  EACH_PEER(FORGET)
  EACH_PEER(RESUME)
  EACH_PEER(LEAVE)
#if SPLIT < BALLOTS
  EACH_PEER(ENTER)
#endif
  od
}
