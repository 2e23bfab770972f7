/* tests/model/edge.pml -- the edge transaction (gossip/exchange/edge.c) between two ends.
 *
 * Both ends commit the same sequence of exchanges, although sessions end with messages in flight, an end
 * restarts from a checkpoint, and an end may ask for a new epoch. The model has the fields and the rules
 * of struct edge; peer/node/edge/edges.c and gossip/mixers/plan.c contribute ask, resend and the job.
 *
 * One process takes every possible step in every order, within these limits:
 *   ROUNDS   exchanges in one epoch          CUTS      lost sessions, with all messages in flight
 *   STOPS    restarts in all                 BOOTS     restarts of each end
 *   PAUSES   pauses for silence on a session that is up
 *   RESETS   requests for a new epoch        (a checkpoint may be written between any two jobs)
 *   REASKS   requests that the ends send again, although an answer may not have arrived yet
 *   TURNS    defined: as in a graph that changes by round, a job may commit without making the next delta
 *
 * Content of a delta: 1 + number of restarts of its maker, because a restarted end trains and encodes
 * again. The replicas are represented by the contents that were applied, as digits to base 4.
 *
 * Checked:
 *   equal      two open ends of one epoch whose rounds are equal have applied the same contents in both
 *              directions; if one is one round ahead, the same contents up to that round
 *   violation  no end receives a delta that edge_check() would call a violation
 *   answers    the number of EDGE messages is bounded (MAX_NONCE)
 *   progress   a state without a next step has both ends at ROUNDS exchanges of one epoch
 * Each mutation MUT_* breaks one rule. README.md lists the mutations that violate no property, and those that need larger
 * limits. Each other mutation must violate one of the properties (tests/model/run).
 */
#ifndef ROUNDS
#define ROUNDS 2
#endif
#ifndef CUTS
#define CUTS 1
#endif
#ifndef STOPS
#define STOPS 1
#endif
#ifndef BOOTS
#define BOOTS 1
#endif
#ifndef PAUSES
#define PAUSES 0
#endif
#ifndef RESETS
#define RESETS 0
#endif
#ifndef REASKS
#define REASKS 0
#endif
#define MAX_NONCE 15
#if REASKS > 0
#define QUEUE 12
#else
#define QUEUE 6
#endif

mtype = { CLOSED, ASKING, OPEN, PAUSED };
mtype = { EDGE, DELTA };

typedef end_state {
  mtype state;
  byte epoch;                            /* 16 * nonce of end 0 + nonce of end 1; 0: none. */
  byte round;
  bit reset, opened, restored;
  byte met;                              /* 1 + boot of the process met in this epoch; 0: none. */
  byte nonce;                            /* Of the EDGE sent last. */
  bit said, asked, heard;
  bit has_heard;                         /* An EDGE has arrived on this session. */
  bit said_first;                        /* No EDGE had arrived on this session when this end sent its last one. */
  byte t_epoch, t_round, t_nonce, t_boot; bit t_restored;   /* Their EDGE. */
  byte cur, prev;                        /* Contents of our deltas; 0: none. */
  byte got[2];                           /* Their deltas by round % 2; 0: none. */
  bit resend_prev, resend_cur;
  byte a, b;                             /* Contents applied: ours, theirs. */
  /* The node around the edge. */
  bit must_ask;
  byte boot;                             /* Number of restarts of this end. */
  bit job, job_commit, job_encode; byte job_epoch, job_ours, job_theirs
};

typedef disk {                           /* A checkpoint. */
  bit written, reset, opened;
  byte epoch, round, cur, prev, a, b
};

end_state x[2];
disk d[2];
bit up;
byte nonces = 1, cuts, stops, pauses, resets, reasks;
chan q[2] = [QUEUE] of { mtype, byte, byte, byte, byte, bit, byte, bit };   /* q[i]: to end i. */
/* type, epoch, round, nonce, nonce of the answered EDGE (0: none), restored, content (DELTA) or boot (EDGE), first */
hidden byte i, o, e, r, n, c, s, f, ahead, know;

inline clear() { i = 0; o = 0; e = 0; r = 0; n = 0; c = 0; s = 0; f = 0; ahead = 0; know = 0 }
/* edge_ready(), and what a job can do at end k. */
#define is_ready(k) (x[k].epoch != 0 && x[k].cur != 0 && x[k].got[x[k].round % 2] != 0 && !x[k].reset)
#define has_work(k) (!x[k].job && (is_ready(k) || x[k].reset || (x[k].state == OPEN && x[k].cur == 0 && x[k].round < ROUNDS)))
#define can_save(k) (!x[k].job && !x[k].boot && stops < STOPS && !(d[k].written && d[k].epoch == x[k].epoch && d[k].round == x[k].round))
#define is_silent(k) (up && x[k].state == PAUSED && !x[k].must_ask && !x[k].asked)

/* ---- gossip/exchange/edge.c ---- */

/* edge_ask(), and the message. */
inline ask() {
  x[i].must_ask = 0;
  x[i].state = ASKING;
  assert(nonces < MAX_NONCE);                                                        /* answers */
  x[i].nonce = nonces; nonces++;
  x[i].asked = 1;
  x[i].said = x[i].restored;
  x[i].said_first = !x[i].has_heard;
  q[o]!EDGE(x[i].epoch, x[i].round, x[i].nonce, (x[i].heard -> x[i].t_nonce : 0), x[i].said, x[i].boot, x[i].said_first)
}

inline forget_deltas() { x[i].cur = 0; x[i].prev = 0; x[i].got[0] = 0; x[i].got[1] = 0 }

/* edge_agree(): rule 3. */
inline agree() {
  if :: x[i].asked && x[i].heard ->
#ifdef MUT_TRUST_CHECKPOINT
       know = 1;
#else
#ifdef MUT_RESTORED_OF_NOW
       know = (x[i].restored == x[i].t_restored || (x[i].met != 0 && x[i].met == 1 + x[i].t_boot));
#else
       know = (x[i].said == x[i].t_restored || (x[i].met != 0 && x[i].met == 1 + x[i].t_boot));
#endif
#endif
       s = (x[i].epoch != 0 && x[i].epoch == x[i].t_epoch && know);
       ahead = (s && x[i].t_round + 1 == x[i].round);
       x[i].asked = 0; x[i].heard = 0; x[i].state = OPEN;
#ifdef MUT_TWO_AHEAD
       if :: (s && (x[i].t_round <= x[i].round + 2 && x[i].round <= x[i].t_round + 2)) ->
#else
#ifdef MUT_REMAKE_DELTA
       if :: (s && (x[i].t_round == x[i].round || x[i].t_round == x[i].round + 1 || ahead)) ->
#else
       if :: (s && (x[i].t_round == x[i].round || (x[i].t_round == x[i].round + 1 && x[i].cur != 0) || ahead)) ->
#endif
#endif
            x[i].resend_cur = (x[i].cur != 0);
#ifdef MUT_NO_PREV
            x[i].resend_prev = 0;
#else
            x[i].resend_prev = (ahead && x[i].prev != 0);
#endif
#ifdef MUT_NO_PREV
            s = 1
#else
            s = (!ahead || x[i].resend_prev)
#endif
          :: else -> s = 0
       fi;
       if :: s -> x[i].met = 1 + x[i].t_boot
          :: else ->
#ifndef MUT_KEEP_MET
            x[i].met = 0;
#endif
            forget_deltas();
            x[i].opened = 1; x[i].restored = 0;
#ifdef MUT_SAME_EPOCH
            x[i].epoch = 1;
#else
            if :: i == 0 -> x[i].epoch = 16 * x[i].nonce + x[i].t_nonce
               :: else -> x[i].epoch = 16 * x[i].t_nonce + x[i].nonce fi;
#endif
            x[i].round = 0; x[i].reset = 1; x[i].resend_cur = 0; x[i].resend_prev = 0
       fi
     :: else
  fi
}

/* What peer/node/edge/edges.c does at the end of each step: ask, then send deltas over an open edge. */
inline settle() {
  if :: up && x[i].must_ask -> ask() :: else fi;
  if :: up && x[i].state == OPEN ->
       if :: x[i].resend_prev && x[i].prev != 0 -> q[o]!DELTA(x[i].epoch, x[i].round - 1, 0, 0, 0, x[i].prev, 0) :: else fi;
       if :: x[i].resend_cur && x[i].cur != 0 -> q[o]!DELTA(x[i].epoch, x[i].round, 0, 0, 0, x[i].cur, 0) :: else fi;
       x[i].resend_prev = 0; x[i].resend_cur = 0
     :: else
  fi;
  check()
}

/* The property `equal`. A reset that is not carried out yet means empty replicas. */
inline check() {
  if :: x[0].state == OPEN && x[1].state == OPEN && x[0].epoch == x[1].epoch && x[0].epoch != 0 &&
        !x[0].reset && !x[1].reset ->
       if :: x[0].round == x[1].round -> assert(x[0].a == x[1].b && x[0].b == x[1].a)
          :: x[0].round == x[1].round + 1 -> assert(x[0].a / 4 == x[1].b && x[0].b / 4 == x[1].a)
          :: x[1].round == x[0].round + 1 -> assert(x[1].a / 4 == x[0].b && x[1].b / 4 == x[0].a)
          :: else -> assert(false)
       fi
     :: else
  fi
}

inline lose_session() {
  up = 0;
  do :: len(q[0]) > 0 -> q[0]?_,_,_,_,_,_,_,_ :: len(q[1]) > 0 -> q[1]?_,_,_,_,_,_,_,_ :: else -> break od;
  i = 0;
  do :: i < 2 ->
       x[i].asked = 0; x[i].heard = 0; x[i].has_heard = 0;
       if :: x[i].state == OPEN || x[i].state == ASKING -> x[i].state = PAUSED :: else fi;
       i++
     :: else -> break
  od; i = 0
}

init {
  x[0].state = CLOSED; x[1].state = CLOSED;
  do
  /* A session comes up at both ends. */
  :: atomic { !up -> up = 1; x[0].must_ask = 1; x[1].must_ask = 1 }
  :: atomic { up && x[0].must_ask -> i = 0; o = 1; settle(); clear() }
  :: atomic { up && x[1].must_ask -> i = 1; o = 0; settle(); clear() }
  /* A message arrives. */
  :: atomic { len(q[0]) > 0 || len(q[1]) > 0 ->
       if :: len(q[0]) > 0 -> i = 0; o = 1 :: len(q[1]) > 0 -> i = 1; o = 0 fi;
       if
       :: q[i]?EDGE(e, r, n, f, s, c, ahead) ->
            /* edge_hear() */
            x[i].has_heard = 1;
            know = (f == 0 && x[i].asked);                 /* The requests cross. */
#ifdef MUT_PAIR_REQUESTS
            ahead = know;
#else
            ahead = (know && x[i].said_first && ahead);    /* They are used as a pair. */
#endif
            if
#ifndef MUT_ANY_ANSWER
            :: f != 0 && f != x[i].nonce -> skip
#endif
            :: know && !ahead && i == 0 -> skip
            :: else ->
                 x[i].heard = 1;
                 x[i].t_epoch = e; x[i].t_round = r; x[i].t_nonce = n; x[i].t_boot = c; x[i].t_restored = s;
                 if
                 :: f != 0 -> x[i].asked = 1
                 :: f == 0 && !ahead -> ask()
                 :: else -> skip
                 fi;
                 agree()
            fi
       :: q[i]?DELTA(e, r, n, f, s, c, ahead) ->
            /* edge_check() and edge_store() */
            if :: e != x[i].epoch || x[i].epoch == 0 ->
                 if :: x[i].state == OPEN -> x[i].must_ask = 1 :: else fi
#ifndef MUT_APPLY_REPEATS
               :: e == x[i].epoch && e != 0 && r < x[i].round -> skip
               :: e == x[i].epoch && e != 0 && r >= x[i].round ->
#else
               :: e == x[i].epoch && e != 0 ->
#endif
                 assert(r <= x[i].round + 1);                                        /* violation */
                 assert(!(r == x[i].round + 1 && x[i].cur == 0));                    /* violation */
                 if :: x[i].got[r % 2] == 0 -> x[i].got[r % 2] = c :: else fi;
#ifndef MUT_RECEIVED_IS_RESTORED
                 x[i].restored = 0
#endif
            fi
       fi;
       settle(); clear() }
  /* A job begins: mixing_join(), plan_resets(). */
  :: atomic { has_work(0) || has_work(1) ->
       if :: has_work(0) -> i = 0 :: has_work(1) -> i = 1 fi;
       s = is_ready(i);
       x[i].job = 1; x[i].job_commit = s; x[i].job_epoch = x[i].epoch;
       x[i].job_ours = x[i].cur; x[i].job_theirs = x[i].got[x[i].round % 2];
       x[i].job_encode = (x[i].state == OPEN && (s || x[i].cur == 0) && x[i].round + s < ROUNDS);
#ifdef TURNS
       if :: x[i].job_commit || x[i].reset -> x[i].job_encode = 0 :: true fi;
#endif
       if :: x[i].reset -> x[i].reset = 0; x[i].a = 0; x[i].b = 0 :: else fi;
       clear() }
  /* A job ends: finish_task(), edge_advance(). */
  :: atomic { x[0].job || x[1].job ->
       if :: x[0].job -> i = 0; o = 1 :: x[1].job -> i = 1; o = 0 fi;
#ifdef MUT_OLD_JOB_COUNTS
       s = 1;
#else
       s = (x[i].epoch == x[i].job_epoch && !x[i].reset);
#endif
       if :: s && x[i].job_commit ->
            x[i].a = 4 * x[i].a + x[i].job_ours; x[i].b = 4 * x[i].b + x[i].job_theirs;
            x[i].got[x[i].round % 2] = 0;
            x[i].prev = x[i].cur; x[i].cur = 0;
            x[i].restored = 0; x[i].round = x[i].round + 1
          :: else
       fi;
       if :: s && x[i].job_encode -> assert(x[i].cur == 0); x[i].cur = 1 + x[i].boot; x[i].resend_cur = 1 :: else fi;
       x[i].job = 0; x[i].job_commit = 0; x[i].job_encode = 0; x[i].job_epoch = 0; x[i].job_ours = 0; x[i].job_theirs = 0;
       settle(); clear() }
  /* The session is lost, with all messages in flight. */
  :: atomic { up && cuts < CUTS -> cuts++; lose_session(); clear() }
#if PAUSES > 0
  /* Silence on a session that is up: edge_pause(e, false). The next message, here any later step, ends the pause. */
  :: atomic { pauses < PAUSES && (x[0].state == OPEN || x[1].state == OPEN) -> pauses++;
       if :: x[0].state == OPEN -> x[0].state = PAUSED :: x[1].state == OPEN -> x[1].state = PAUSED fi }
  :: atomic { is_silent(0) || is_silent(1) ->
       if :: is_silent(0) -> i = 0; o = 1 :: is_silent(1) -> i = 1; o = 0 fi;
       x[i].state = OPEN; x[i].resend_prev = (x[i].prev != 0); x[i].resend_cur = (x[i].cur != 0);
       settle(); clear() }
#endif
#if RESETS > 0
  /* edges_reset_mismatched(). */
  :: atomic { resets < RESETS && up && x[1].state == OPEN && !x[1].job -> resets++;
       x[1].epoch = 0; x[1].must_ask = 1 }
#endif
#if REASKS > 0
  /* edges_reopen(): an end sends EDGE again. */
  :: atomic { reasks < REASKS && up && (x[1].state == OPEN || x[1].state == ASKING) && !x[1].must_ask -> reasks++;
       x[1].must_ask = 1 }
  :: atomic { reasks < REASKS && up && (x[0].state == OPEN || x[0].state == ASKING) && !x[0].must_ask -> reasks++;
       x[0].must_ask = 1 }
#endif
#if STOPS > 0
  /* An end writes a checkpoint, between two jobs. */
  :: atomic { can_save(0) || can_save(1) ->
       if :: can_save(0) -> i = 0 :: can_save(1) -> i = 1 fi;
       d[i].written = 1; d[i].reset = x[i].reset; d[i].opened = x[i].opened;
       d[i].epoch = x[i].epoch; d[i].round = x[i].round; d[i].cur = x[i].cur; d[i].prev = x[i].prev;
       d[i].a = x[i].a; d[i].b = x[i].b; clear() }
  /* An end is killed and starts again from its checkpoint, if there is one. Each end restarts BOOTS times at most. */
  :: atomic { stops < STOPS && (x[0].boot < BOOTS || x[1].boot < BOOTS) -> stops++;
       if :: up -> lose_session() :: else fi;
       if :: x[0].boot < BOOTS -> i = 0 :: x[1].boot < BOOTS -> i = 1 fi;
       x[i].state = CLOSED; x[i].boot++; x[i].met = 0; x[i].must_ask = 0; x[i].nonce = 0; x[i].said = 0;
       x[i].t_epoch = 0; x[i].t_round = 0; x[i].t_nonce = 0; x[i].t_boot = 0; x[i].t_restored = 0;
       x[i].got[0] = 0; x[i].got[1] = 0; x[i].resend_prev = 0; x[i].resend_cur = 0;
       x[i].job = 0; x[i].job_commit = 0; x[i].job_encode = 0; x[i].job_epoch = 0; x[i].job_ours = 0; x[i].job_theirs = 0;
       x[i].epoch = d[i].epoch; x[i].round = d[i].round; x[i].cur = d[i].cur; x[i].prev = d[i].prev;
       x[i].a = d[i].a; x[i].b = d[i].b; x[i].reset = d[i].reset; x[i].opened = d[i].opened;
       x[i].restored = d[i].written;
#ifndef MUT_KEEP_EMPTY_EPOCH
       if :: x[i].cur == 0 && x[i].prev == 0 -> x[i].epoch = 0 :: else fi;
#endif
       clear() }
#endif
  /* The end of the model: both ends have done all exchanges of one epoch. */
  :: atomic { x[0].round == ROUNDS && x[1].round == ROUNDS && x[0].epoch == x[1].epoch && up &&
       x[0].state == OPEN && x[1].state == OPEN && len(q[0]) == 0 && len(q[1]) == 0 -> break }
  od
}
