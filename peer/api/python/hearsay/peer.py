"""A peer: your training loop, and the cluster in which it takes part.

    peer = hearsay.Peer(model, optimizer, key="cluster.key", bootstrap="a:7100,b:7100", rounds=1000, local_steps=8)
    for x, y in peer.shard(loader):
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()
        peer.step()                   # every local_steps-th call exchanges with the neighbours
    print(peer.finish(), peer.drift)

Turns of program and library, which use the model alternately ("yours": the program may use it):

    constructor -> yours --step()...step()--> the library's --> yours ... --> over
                     ^                              |  KeyboardInterrupt, an exception of `evaluate`
                     +------- wait(), step() <------+  (pending: the library still has the model)

While step() exchanges, the library uses the model, and the program must not change it. At all other times the program
may change the model.
"""
import ctypes
import dataclasses
import logging
import os
import re
import socket
import sys
import threading
import time
import weakref
from collections import deque
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Deque, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Type

from . import _check, _lib, _model, _options, data, keeping
from . import progress as _progress
from ._lib import CallbackError, ForkedError, UsageError, lib
from .figures import Figures, score_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

SLICE_S = 0.2  # A waiting call returns after this time in seconds, so that Python can handle Ctrl-C.
LEAVE_S = 5.0
HISTORY = 10_000  # Maximum number of rounds in `history`.
LEVELS = (logging.INFO, logging.WARNING, logging.ERROR)
logger = logging.getLogger("hearsay")
_stuck: List[Any] = []  # Memory that is never freed, because a peer that did not end in time may still write to it.


def log_note(level: int, text: str, least: int = 0) -> None:
    """Default of on_note: writes to Python's logger "hearsay".

    If the program has configured neither this logger nor the root logger, `logging` itself would drop messages at the level
    of information, such as the death of a member. Messages from level `least` on are then printed on stderr, as by
    `hearsay peer`. Of a job, only rank 0 prints information.
    """
    number = LEVELS[min(level, 2)]
    if logger.hasHandlers() or logger.level != logging.NOTSET:
        logger.log(number, "%s", text)
    elif level >= (least if _progress.is_first_rank() else 1) and not logger.disabled and logger.manager.disable < number:
        _progress.say(f"hearsay: {('', 'warning: ', 'error: ')[min(level, 2)]}{text.removeprefix('hearsay: ')}")


def log_warning(level: int, text: str) -> None:
    """Default of on_note if one program starts several peers: as log_note(), but without information."""
    log_note(level, text, 1)


class _Callbacks:
    """Callbacks that the library calls. The callbacks have only a weak reference to the peer, so that the peer can be
    garbage collected. The callbacks store exceptions, because an exception must not pass through C code.
    """

    def __init__(self, peer: "Peer") -> None:
        self.peer = weakref.ref(peer)
        self.error: Optional[BaseException] = None
        self.inside = False
        self.note = _lib.NOTE(self._note)
        self.evaluate = _lib.EVALUATE(self._evaluate)

    def _note(self, _self: Any, level: int, text: bytes) -> None:
        peer = self.peer()
        try:
            self.inside = True
            on_note = peer.on_note if peer is not None else log_note
            if on_note is not None:
                on_note(level, _options.speak(text.decode(errors="replace")))
        except BaseException as error:  # The method of Peer that called the library raises the error when it returns.
            self.error = self.error or error
        finally:
            self.inside = False

    def _evaluate(self, _self: Any, samples: int, score: Any) -> int:
        peer = self.peer()
        try:
            self.inside = True
            if peer is not None and peer.evaluate is not None:
                found = score_of(peer.evaluate, peer.model, samples, peer._model)
                score[0] = _lib.Score(*found)
            else:
                score[0] = _lib.Score(float("nan"), float("nan"), 0)
            return 0
        except BaseException as error:
            self.error = self.error or error
            return 1
        finally:
            self.inside = False

    def refuse_inside(self, what: str) -> None:
        """Raises UsageError if a callback of this peer is running: the library cannot free the handle during a callback.
        `what`: name of the method that was called.
        """
        if self.inside:
            raise UsageError(f"hearsay: {what}: found a call from within a callback, expected one behind it")

    def raise_error(self) -> None:
        error, self.error = self.error, None
        if error is not None:
            raise error


class _Hearing:
    """Context manager for library calls that may run callbacks. Preserves a KeyboardInterrupt that Python raises at the
    start of a callback, before the callback's `try`.

    ctypes passes such an exception only to sys.unraisablehook. Only the main thread gets KeyboardInterrupts.
    """

    def __init__(self, callbacks: _Callbacks) -> None:
        self.callbacks = callbacks
        self.before = sys.unraisablehook

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            sys.unraisablehook = self.hook

    def __exit__(self, *_error: Any) -> None:
        self.callbacks.inside = False
        if threading.current_thread() is threading.main_thread():
            sys.unraisablehook = self.before

    def hook(self, lost: Any) -> None:
        # Since Python 3.13 lost.object is None, and only the message says that the exception is from a ctypes callback.
        own = getattr(lost.object, "__self__", None) is self.callbacks
        if own or (lost.object is None and "ctypes callback function" in (lost.err_msg or "")):
            self.callbacks.error = self.callbacks.error or lost.exc_value or lost.exc_type()
        else:
            self.before(lost)


def _progress_of(wanted: Optional[bool], given: Mapping[str, str]) -> Optional[_progress.Progress]:
    name = f"hearsay {given['name']}" if "name" in given else "hearsay"
    return _progress.Progress(name) if _progress.wanted(wanted) else None


def _step_of(figures: Figures) -> int:
    """Returns the step counter: rounds of training plus rounds of the consensus phase."""
    return figures.round + figures.settle_rounds


def _close(handle: Any, pid: int, opened: List[bool], held: Any) -> None:
    """Leaves the run and frees the handle. `held`: objects that the library may use until then."""
    if pid != os.getpid():
        return
    if lib.hearsay_exit_code(handle) < 0 and opened[0]:
        if lib.hearsay_leave(handle, LEAVE_S) == _lib.TIMEOUT:
            _stuck.append(held)
    lib.hearsay_close(handle)


class Peer:
    """One peer of a run, which trains the model of the program.

    module     a torch.nn.Module, or a dict of name -> numpy array (float32 or float16). Names, shapes, types and their
               order must be the same at all peers.
               Module: parameters, and buffers that are floats and are saved, are mixed. All other buffers begin with the
               initial values of the run, and each peer keeps its own values afterwards. Float32 tensors on the CPU become
               views of one flat buffer, so that a round copies nothing: make the Peer after model.to(...).
               Dict: arrays are trained in place. hearsay.packed() makes arrays that the library does not need to copy.
               When the constructor returns, the tensors of all peers have the values of one peer: the peer with
               initial=True, else the peer without `bootstrap` (rank 0 of local() and torchrun()), else one of the peers
               that begin the run.
    optimizer  checkpoints keep its state and the state of its learning-rate scheduler. None: neither
    buffers    if module is a dict: name -> array that is mixed but not trained
    options    "topology=ring compress=topk:0.01": the same options as one text
    timeout    time in seconds that the constructor waits for the first round before it raises TimeoutError. None: no limit
    evaluate   callable(model) or callable(model, samples) -> loss, (loss, accuracy), (loss, accuracy, samples), or a
               dict with these keys. Called every `evaluate_every` rounds and at the end, in eval mode and without
               gradients. `samples`: number of samples to evaluate, 0 for all. May be set later: peer.evaluate = ...
    on_note    callable(level, text) with level 0 information, 1 warning, 2 error; default: logging.getLogger("hearsay"),
               or stderr if the program does not configure `logging`. None: messages are dropped
    on_round   callable(name, step, figures): called in the thread of the caller after each round. The last round and the
               consensus phase behind it are one call. `step` is round + settle_rounds, `figures` is figures() as a dict.
               step(), wait() or finish() raises its exceptions; the next step() continues. hearsay.lab.sinks sends
               figures to TensorBoard, Weights & Biases and MLflow
    keep       name -> more state for checkpoints: an object with state_dict() and load_state_dict(), or two callables
               (get, set). keep=hearsay.RNG keeps random number generators. Needs out=DIR. The state may have numbers,
               text, bytes, containers, arrays and tensors; TypeError names any other value, such as a function.
    skip       patterns of the names of tensors that are not mixed: ("*.bn*.*", "embedding.weight")
    progress   True: a line with round, loss, drift, peers and bytes every 5 s on stderr. None: if stderr is a terminal

    All other keyword arguments are options of the run and of this peer, described in README.md and in peer/docs/flags.md.
    None stands for the default: the run's if this peer joins a run, else the library's. `key` is required, and `rounds` is
    required at a peer that begins a run. With model="lenet5" data="mnist", `hearsay peer` can join the run.

    A Peer belongs to the process that made it, and may be used by one thread at a time. Forked children, such as workers of
    a DataLoader, do not disturb it. A Peer is a context manager: the end of the `with` block calls finish(), or leave() after
    an exception. A Peer also leaves the run when it is garbage collected and when the interpreter ends.

    Raises TypeError for an unknown keyword argument, with the nearest name. UsageError: an option, the key, the model or
    the directory is wrong or does not fit the run. ResourceError: memory, a port or a disk is missing. TypeError and
    ValueError name a tensor that cannot be mixed. UsageError and ResourceError are subclasses of hearsay.HearsayError.
    """

    @_options.listed(_options.RunOptions)
    def __init__(self, module: Any, optimizer: Any = None, /, *, buffers: Optional[Mapping[str, Any]] = None,
                 options: str = "", timeout: Optional[float] = None, evaluate: Optional[Callable[..., Any]] = None,
                 on_note: Optional[Callable[[int, str], None]] = log_note,
                 on_round: Optional[Callable[[str, int, Dict[str, Any]], Any]] = None,
                 keep: Optional[Mapping[str, Any]] = None, skip: Sequence[str] = (), progress: Optional[bool] = None,
                 _world: Any = None,
                 **keywords: "Unpack[_options.RunOptions]") -> None:
        _options.check("hearsay.Peer", keywords, _options.PEER_NAMES if _world is None else _options.SIMULATED)
        _options.check_own("hearsay.Peer", evaluate=evaluate, on_note=on_note, on_round=on_round, keep=keep, options=options,
                           skip=skip)
        self.model, self.optimizer = module, optimizer
        self.evaluate, self.on_note, self.on_round = evaluate, on_note, on_round
        self._told: Optional[int] = None  # Step counter at the last call of on_round. None: the constructor has not returned.
        self.history: Deque[Figures] = deque(maxlen=HISTORY)
        self._pid = os.getpid()
        # _world: the simulation, if simulate() makes this peer. _opened: a list, so that the finalizer sees its later value.
        self._world, self._opened = _world, [False]
        self._model = _model.Model(module, buffers, skip)
        self._callbacks = _Callbacks(self)
        self._ending: Tuple[int, int, str, Optional[int], str] = (0, 0, "", None, "")
        self._steps_done, self._pending, self._over = 0, False, False
        self._step_calls = 0  # Number of calls of step(), by which shard() notices that the program calls none.
        self._loss: Any = 0.0
        self._weight, self._samples = 0.0, 0
        self._last: Optional[Figures] = None
        self._epochs = 0
        self._progress: Optional[_progress.Progress] = None
        handle = lib.hearsay_new()
        if handle is None:
            raise MemoryError("hearsay_new: out of memory for a handle")
        self._handle = ctypes.c_void_p(handle)
        self._finalizer = weakref.finalize(self, _close, self._handle, self._pid, self._opened,
                                           (self._callbacks, self._model))
        try:
            self._set(options, keywords)
            self._keeper = keeping.Keeper(optimizer, keep or {}, "out" in self._given or "HEARSAY_OUT" in os.environ, self._warn)
            self._progress = _progress_of(progress, self._given) if _world is None or progress else None
            self._open(timeout)
        except BaseException:
            self.close()
            raise

    # ---- opening the peer ----

    def _set(self, options: str, keywords: Mapping[str, Any]) -> None:
        names = _options.RUN_NAMES if self._world is None else _options.RUN_NAMES & _options.SIMULATED
        words = (word.partition("=")[0] for word in options.split() if "=" in word)
        _options.check("hearsay.Peer: options", words, names, "name", UsageError)
        self._given = dict(word.partition("=")[::2] for word in options.split())
        self._check_given({name: str(value) for name, value in (*self._given.items(), *keywords.items()) if value is not None})
        self._check(lib.hearsay_options(self._handle, _lib.encoded(options, "options")))
        for name, value in _model.words(keywords.items()):
            self._given[name] = value  # Options by the names of the library, such as "min-peers".
            self._check(lib.hearsay_set(self._handle, name.encode(), _lib.encoded(value, name)))

    def _check_given(self, given: Mapping[str, str]) -> None:
        """Raises UsageError for options that need another option. The library's own message would name command-line flags or no
        reason."""
        names = {name.replace("_", "-") for name in given}
        if self._world is None and "key" not in names and "HEARSAY_KEY" not in os.environ:
            raise UsageError("hearsay: key: not given; hearsay.keygen(path) or `hearsay key new FILE` makes one")
        if "model" not in names and "HEARSAY_MODEL" not in os.environ:
            for name in sorted(names & _lib.needing_model()):
                raise UsageError(f"hearsay: {name.replace('-', '_')} is used only with model=...; without it, the model, the data and the "
                                 "optimizer are the program's, with settings of their own")

    def _open(self, timeout: Optional[float]) -> None:
        self._model.tell(self._handle, opaque="model" not in self._given and "HEARSAY_MODEL" not in os.environ)
        self._check(lib.hearsay_on_note(self._handle, self._callbacks.note, None))
        self._check(lib.hearsay_on_evaluate(self._handle, self._callbacks.evaluate, None))
        if self._world is None:
            self._check(lib.hearsay_open(self._handle))
        else:
            world, rank = self._world
            _lib.check(world.open(rank, self._handle), world.sentence)
        self._opened[0] = self._pending = True
        if not self.wait(timeout) and self._pending:
            raise TimeoutError(f"hearsay: after {timeout} s the first round had not begun: {self._missing()}")
        self._model.take_opaque()
        n, at_round = ctypes.c_size_t(), ctypes.c_uint64()
        kept = lib.hearsay_kept(self._handle, ctypes.byref(n), ctypes.byref(at_round))
        if kept:
            self._keeper.restore(ctypes.string_at(kept, n.value))
        self._told = _step_of(self.figures())

    def _warn(self, text: str) -> None:
        if self.on_note is not None:
            self.on_note(1, f"hearsay: {text}")

    def _show(self, waits: bool) -> None:
        """Prints a progress line if one is due. `waits`: the peer is waiting for its neighbours."""
        if self._progress is not None and self._progress.due() and self._opened[0]:
            self._progress.show(self.figures(), self._min_peers(), waits)

    def _min_peers(self) -> int:
        """Returns the number of peers that the run waits for before its first round."""
        words = dict(word.partition("=")[::2] for word in self.run.split())
        text = words.get("min-peers", self._given.get("min-peers", os.environ.get("HEARSAY_MIN_PEERS", "1")))
        return int(text) if text.isdigit() else 1

    def _missing(self) -> str:
        """Returns the reason why the first round has not begun, as far as it is known."""
        figures, least = self.figures(), self._min_peers()
        here = max(1, figures.n_live)
        if here < least:
            return f"{here} of {least} peers (min_peers) are here"
        if here == 1 and "bootstrap" in self._given:
            return f"no other peer has answered at {self._given['bootstrap']} (bootstrap)"
        return f"{here} peer{'' if here == 1 else 's'} here, phase {figures.phase}"

    # ---- return codes of the library ----

    def _check(self, code: int) -> int:
        if code == _lib.FORKED:
            raise ForkedError("hearsay: this peer belongs to the process that made it, which this one was forked from")
        return _lib.check(code, _model._sentence(self._handle))

    def _usable(self) -> None:
        if os.getpid() != self._pid:
            self._check(_lib.FORKED)
        if not self._finalizer.alive:
            raise UsageError("hearsay: found a peer that is closed")

    def _settle(self, code: int) -> bool:
        """Handles the return code of a call that waits. Returns True if the wait is over."""
        if code == _lib.CALLBACK:
            self._callbacks.raise_error()
            raise CallbackError(_model._sentence(self._handle))
        if code < 0:
            self._pending = code != _lib.NOT_FINITE and lib.hearsay_exit_code(self._handle) < 0
            self._over = lib.hearsay_exit_code(self._handle) >= 0
            self._callbacks.error = None
            self._check(code)
        if code in (_lib.OK, _lib.OVER):
            self._pending, self._over = False, code == _lib.OVER
            self._model.take_back()
            self._last = self.figures()
        self._callbacks.raise_error()
        return code in (_lib.OK, _lib.OVER)

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Waits until you may use the model again: needed after a KeyboardInterrupt, or an exception of `evaluate`.

        timeout: seconds; None: no limit. Returns False if the run is over or the time is up; `over` tells which. Raises
        the exceptions of `evaluate`, `on_note` and `on_round`. UsageError: this peer does not fit the run, or is closed.
        ResourceError: this peer failed. SimulationError: another peer of simulate() failed. ForkedError: this process is
        a fork of the peer's process.
        """
        self._usable()
        timeout = _check.seconds("timeout", timeout)
        end = None if timeout is None else time.monotonic() + timeout
        while self._pending:
            left = SLICE_S if end is None else min(SLICE_S, max(0.0, end - time.monotonic()))
            with _Hearing(self._callbacks):
                code = lib.hearsay_wait(self._handle, left)
            if self._settle(code):
                break
            self._show(True)
            if end is not None and time.monotonic() >= end:
                return False
            if self._world is not None and self._world[0].failed:
                raise self._world[0].cancelled(self._world[1])
        self._tell_round()
        return not self._over

    def _tell_round(self) -> None:
        """Calls on_round if the peer has completed a round since the last call of on_round."""
        if self._last is None or self._told is None or self._told == _step_of(self._last):
            return
        self._told = _step_of(self._last)
        if self.on_round is not None:
            self.on_round(self.name, self._told, dataclasses.asdict(self._last))

    # ---- training and leaving ----

    def step(self, loss: Any = None, samples: Optional[int] = None) -> bool:
        """Counts one local step. The last step of a round exchanges with the neighbours, and waits for them.

        loss: mean loss over the samples of this step, a number or a tensor of one value; None: unknown. A tensor is not
        waited for before the end of the round. A NaN or an infinity is divergence: the first time the model returns to an
        earlier round, the second time the run ends (exit code 3).
        samples: number of samples of this step, 0 to 2**53: its weight in the loss of the round. 0: the loss is ignored.
        Returns False if the run is over: the model is the final one, and more calls do nothing.
        NotFiniteError: the model has a NaN or an infinity. The model was not sent, and the program may change it. UsageError
        names a tensor that was moved or replaced after the Peer was made. All other exceptions are those of wait(). After
        such an exception or a KeyboardInterrupt, the next step() waits for the pending exchange and does not count a step.
        """
        self._step_calls += 1
        if self._over:
            return False
        self._usable()
        if self._pending:  # The library had the model during this step, so the step does not count.
            return self.wait()
        self._show(False)
        self._note_loss(loss, samples)
        self._steps_done += 1
        if self._steps_done < lib.hearsay_steps(self._handle):
            return True
        return self._exchange()

    def _note_loss(self, loss: Any, samples: Optional[int]) -> None:
        weight = 1 if samples is None else _check.whole("samples", samples, 0)
        if loss is None or weight == 0:
            return
        self._loss = self._loss + _check.loss(loss) * weight
        self._weight += weight
        self._samples += 0 if samples is None else weight

    def _exchange(self) -> bool:
        if self._world is not None and self._world[0].failed:
            raise self._world[0].cancelled(self._world[1])
        self._model.check_place()
        for text in self._model.changed():
            if self.on_note is not None:
                self.on_note(1, text)
        known = self._weight > 0
        did = _lib.Did(float(self._loss) / self._weight, max(1, self._samples)) if known else _lib.Did(float("nan"), 0)
        self._keeper.look_for_late()
        if self._keeper.due():
            state = self._keeper.state()
            self._check(lib.hearsay_keep(self._handle, state, len(state)))
        self._model.hand_over()
        self._pending = True
        with _Hearing(self._callbacks):
            code = lib.hearsay_round(self._handle, ctypes.byref(did), SLICE_S)
        if code != _lib.NOT_FINITE:
            self._steps_done, self._loss, self._weight, self._samples = 0, 0.0, 0.0, 0
        done = self._settle(code)
        more = not self._over if done else self.wait()
        if self._last is not None:
            self.history.append(self._last)
        self._tell_round()
        return more

    def finish(self, timeout: Optional[float] = None) -> str:
        """Waits for the end of the run if a wait is pending, else leaves the run. Then closes the peer. Returns the
        verdict.

        A run without consensus raises no exception. exit_code has the result: 0 consensus, or stopped; 3 no consensus.
        TimeoutError after `timeout` seconds; then finish() or leave() can be called.
        """
        if self._finalizer.alive and os.getpid() == self._pid:
            if self._pending and not self.wait(timeout) and self._pending:
                raise TimeoutError(f"hearsay: after {timeout} s the run was not over")
            self.leave()
        return self.verdict

    def leave(self, timeout: float = LEAVE_S) -> None:
        """Leaves the run and closes the peer. The neighbours are informed. Local steps of the present round are not sent,
        but stay in the model.

        timeout: longest time in seconds. Does nothing if the peer is closed or belongs to another process. UsageError if
        called within `evaluate` or `on_note`.
        """
        if not self._finalizer.alive or os.getpid() != self._pid:
            return
        self._callbacks.refuse_inside("leave()")
        limit = _check.seconds("timeout", timeout)
        try:
            if not self._over and self._opened[0]:
                with _Hearing(self._callbacks):
                    code = lib.hearsay_leave(self._handle, -1.0 if limit is None else limit)
                self._over = code == _lib.OVER
                if code == _lib.TIMEOUT:
                    _stuck.append((self._callbacks, self._model))
                self._model.take_back()
        finally:
            self._callbacks.error = None
            self.close()

    def close(self) -> None:
        """Frees the handle, and leaves the run if it is not over. The tensors stay valid. UsageError if called within
        `evaluate` or `on_note`.
        """
        if self._finalizer.alive and os.getpid() == self._pid:
            self._callbacks.refuse_inside("close()")
            try:
                self._last = self.figures()
            except _lib.HearsayError:
                pass  # No figures, because the peer never joined a run.
            if self._progress is not None and self.verdict:
                self._progress.say(f"round {self.round} of {self.rounds}: {self.verdict}")
            self._ending = (self.round, self.rounds, self.verdict, self.exit_code, self.run)
            self._finalizer()
            self._over = True

    def __enter__(self) -> "Peer":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        if kind is None:
            self.finish()
        else:
            self.leave()

    # ---- querying the peer's state ----

    def _ask(self, i: int, question: Callable[[], Any]) -> Any:
        """Returns question(), which asks the library. For a closed peer, returns stored answer
        number `i` instead."""
        if self._finalizer.alive:
            return question()
        return self._ending[i]

    @property
    def round(self) -> int:
        """Number of complete rounds of the run, including rounds before this peer joined. Learning-rate schedules should
        use this number."""
        return int(self._ask(0, lambda: lib.hearsay_rounds_done(self._handle)))

    @property
    def rounds(self) -> int:
        """Number of rounds of the run. 0: not known yet."""
        return int(self._ask(1, lambda: lib.hearsay_rounds(self._handle)))

    @property
    def verdict(self) -> str:
        """The verdict of the run as a sentence. "": the run is not over."""
        return _options.speak(str(self._ask(2, lambda: (lib.hearsay_verdict(self._handle) or b"").decode(errors="replace"))))

    @property
    def exit_code(self) -> Optional[int]:
        """Exit code, as of `hearsay peer`: 0 consensus, or stopped; 3 no consensus; 1 or 2 failed. None: the run is not over."""
        code = self._ask(3, lambda: int(lib.hearsay_exit_code(self._handle)))
        return None if code is None or code < 0 else code

    @property
    def run(self) -> str:
        """The run description in canonical form. "": not known yet."""
        return str(self._ask(4, lambda: (lib.hearsay_run(self._handle) or b"").decode(errors="replace")))

    @property
    def over(self) -> bool:
        """Whether the run is over for this peer."""
        return self._over

    @property
    def steps(self) -> int:
        """Number of local steps in the present round."""
        return int(lib.hearsay_steps(self._handle)) if self._finalizer.alive else 0

    @property
    def name(self) -> str:
        """The name of this peer in the cluster."""
        if self._world is not None:
            return f"peer-{self._world[1]}"
        # Without a given name, the default name is made as in peer/uv/settings.c.
        host = re.sub("[^A-Za-z0-9._-]", "-", socket.gethostname())[:24]
        return self._given.get("name") or os.environ.get("HEARSAY_NAME") or f"{host}-{self.port}"

    @property
    def port(self) -> int:
        """Port on which this peer listens. 0: it does not listen."""
        return int(lib.hearsay_port(self._handle)) if self._finalizer.alive else 0

    def figures(self) -> Figures:
        """Returns the present metrics, or for a closed peer the last ones. ForkedError: this process is a fork of the
        peer's process.
        """
        if not self._finalizer.alive:
            return self._last if self._last is not None else Figures()
        if os.getpid() != self._pid:
            self._check(_lib.FORKED)
        text = lib.hearsay_figures_json(self._handle)
        if not text:
            self._check(_lib.SYSTEM)
        return Figures.of(text.decode())

    @property
    def drift(self) -> float:
        """Estimated consensus distance: the root mean square over the peers of |x_i - mean|. NaN: not known."""
        return self.figures().drift

    @property
    def relative_drift(self) -> float:
        """Estimated consensus distance relative to the mean model: drift / |mean|. NaN: not known."""
        return self.figures().relative_drift

    @property
    def accuracy(self) -> float:
        """Accuracy of the last evaluation, in [0, 1]. NaN: there was no evaluation."""
        return self.figures().accuracy

    @property
    def bytes_sent(self) -> int:
        """Bytes that this process has sent, counted at the sockets."""
        return self.figures().bytes_sent

    # ---- this peer's share of the data ----

    @property
    def shares(self) -> int:
        """A number that increases when this peer's shard may have changed."""
        return int(lib.hearsay_shares(self._handle)) if self._finalizer.alive else 0

    def samples(self, n: int) -> Any:
        """Returns this peer's present shard of a data set of n samples, which all peers have.

        n: at most 2^32 - 1. The result is an ascending numpy array of sample numbers, int64. The array is empty if this
        peer has no shard.
        """
        return data.samples(self, n)

    def sampler(self, n: int) -> Any:
        """Returns a torch Sampler of samples(n). Each epoch has another order, and uses the shard that the peer has then.
        """
        return data.sampler(self, n)

    def shard(self, source: Any, batch_size: Optional[int] = None, shuffle: Optional[bool] = None) -> Iterator[Any]:
        """Yields batches of this peer's samples, epoch after epoch, until the run is over.

        source: a torch DataLoader, a dataset with len() and [i], or one array or a tuple of arrays of the same length,
        which are cut into batches along the first axis. A DataLoader keeps its settings. Of the samples that its sampler
        draws (subset, weights, order), this peer gets the samples of its own shard. batch_size: default the DataLoader's,
        or 32. shuffle: default the DataLoader's, or True. ValueError: the arrays have different lengths. TypeError: the
        source has no sample numbers, or the samples of its sampler cannot be divided among peers. UsageError: this peer's
        shard has no sample. A loop that does not call step() never ends; a warning says so after 100 batches and 5 s.
        """
        return data.shard(self, source, batch_size, shuffle)

    def __reduce__(self) -> Any:
        raise TypeError("a Peer cannot be pickled: it belongs to its process")

    def __repr__(self) -> str:
        if self._finalizer.alive:
            return f"<hearsay.Peer round {self.round} of {self.rounds or '?'}>"
        return f"<hearsay.Peer closed: {self.verdict or 'never begun'}>"

    @classmethod
    @_options.listed()
    def from_env(cls, module: Any, optimizer: Any = None, /, **options: "Unpack[_options.PeerOptions]") -> "Peer":
        """Returns the Peer of a rank that torchrun, Slurm or mpirun started, as hearsay.torchrun() does."""
        from .launch import from_env

        _options.check("hearsay.Peer.from_env", options, _options.PEER_NAMES)
        return cls(module, optimizer, **{**from_env(), **options})
