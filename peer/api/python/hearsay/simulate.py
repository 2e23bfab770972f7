"""Runs many peers of one program over a simulated network, in virtual time. Each peer has a thread; one thread runs at a
time.

    thread of peer 0   connect() ...|            |train|           |train|
    thread of peer 1                |connect() ..|     |train|     |     |train|
                                                 ^ all have connected: the simulation lets one thread train at a time
"""
import ctypes
import os
import sys
import threading
import traceback
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Sequence

from . import _check, _model, _options
from ._lib import HearsayError, encoded, lib
from .final import Results, distance, trained
from .peer import Peer, log_warning

if TYPE_CHECKING:
    from typing_extensions import Unpack


class SimulationError(HearsayError, RuntimeError):
    """A peer of simulate() failed: `rank` is its rank, and __cause__ is its exception."""

    def __init__(self, rank: int, text: str) -> None:
        super().__init__(f"hearsay.simulate: peer {rank}: {text}")
        self.rank = rank


class _World:
    """The simulation that the threads of all peers share. A thread waits here until all threads have called connect(), and
    is informed if another one fails."""

    def __init__(self, n: int, network: str) -> None:
        self.n, self.network = n, network
        self.changed = threading.Condition()
        self.handles: Dict[int, Any] = {}
        self.models: Dict[int, Any] = {}
        self.ended: Dict[int, Optional[BaseException]] = {}
        self.code: Optional[int] = None
        self.sentence = ""
        self.failed = False
        self.absent: Optional[int] = None  # Rank that returned without connect() before any failure.
        self.n_gone = 0  # Number of threads whose call of `train` has ended.

    def open(self, rank: int, handle: Any) -> int:
        """Replaces hearsay_open(): waits until all ranks have called connect(). The last rank to call connect() opens
        the simulation."""
        with self.changed:
            if rank in self.handles:
                raise HearsayError("hearsay.simulate: found a second connect() of this peer, expected one")
            self.handles[rank] = handle
            if len(self.handles) == self.n:
                all_of_them = (ctypes.c_void_p * self.n)(*(self.handles[i] for i in range(self.n)))
                self.code = lib.hearsay_open_simulated(all_of_them, self.n, encoded(self.network, "network"))
                self.sentence = _model._sentence(self.handles[0])
            self.changed.notify_all()
            self.changed.wait_for(lambda: self.code is not None or self.failed)
        if self.code is None:
            if self.absent is not None:
                raise SimulationError(rank, f"peer {self.absent} returned without connect()")
            raise SimulationError(rank, "another peer failed before the run began")
        return self.code

    def go(self) -> None:
        with self.changed:
            self.n_gone += 1
            self.changed.notify_all()

    def wait_for_threads(self, n: int) -> None:
        """Waits until `train` has ended in n threads. Thread.join() is not used, because after an interrupt it regards the
        thread as ended.
        """
        with self.changed:
            while self.n_gone < n:
                self.changed.wait(0.2)

    @staticmethod
    def cancelled(rank: int) -> SimulationError:
        return SimulationError(rank, "another peer failed")

    def end(self, rank: int, error: Optional[BaseException]) -> None:
        with self.changed:
            self.ended[rank] = error
            if error is None and self.code is None and not self.failed:
                self.absent = rank
            self.failed = self.failed or error is not None or self.code is None
            self.changed.notify_all()


class _Connect:
    """Argument of `train` in simulate(): connect(model, optimizer, ...) makes the Peer of this rank."""

    def __init__(self, world: _World, rank: int, options: Mapping[str, Any]) -> None:
        self.world, self.rank, self.options = world, rank, dict(options)
        self.peer: Optional[Peer] = None

    @_options.listed()
    def __call__(self, module: Any, optimizer: Any = None, /, **more: "Unpack[_options.PeerOptions]") -> Peer:
        options: Dict[str, Any] = {"on_note": log_warning, **self.options, **more}
        options["progress"] = bool(options.get("progress")) and self.rank == 0  # Only rank 0 prints progress, for all ranks.
        self.peer = Peer(module, optimizer, _world=(self.world, self.rank), **options)
        self.world.models[self.rank] = self.peer._model
        return self.peer


def _end_fork(own: int, error: Optional[BaseException]) -> None:
    """Ends a process that `train` forked, when `train` returns in it. Does nothing in the process `own`."""
    if os.getpid() == own:
        return
    code = error.code if isinstance(error, SystemExit) else error
    if code is not None and not isinstance(code, int):
        traceback.print_exception(type(error), error, error.__traceback__ if error is not None else None)
        code = 1
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code or 0)


def _run(world: _World, connect: _Connect, train: Callable[..., Any], args: Sequence[Any], results: List[Any]) -> None:
    """Runs `train` in the thread of one peer."""
    own = os.getpid()
    try:
        results[connect.rank] = train(connect.rank, connect, *args)
        _end_fork(own, None)
        if connect.peer is not None:
            connect.peer.finish()
            if results[connect.rank] is None:
                results[connect.rank] = connect.peer.figures()
        world.end(connect.rank, None)
    except BaseException as error:
        _end_fork(own, error)
        world.end(connect.rank, error)
    finally:
        try:
            if connect.peer is not None:
                connect.peer.leave()
        finally:
            world.go()


@_options.listed()
def simulate(n: int, train: Callable[..., Any], *args: Any, network: str = "", **options: "Unpack[_options.PeerOptions]") -> Results:
    """Runs n peers in this process, over a simulated network, in virtual time.

        def train(rank, connect):
            model = hearsay.packed({"w": numpy.zeros(785)})
            peer = connect(model)                        # hearsay.Peer
            while not peer.over: ...; peer.step()
            return peer.relative_drift

        hearsay.simulate(64, train, rounds=100, topology="torus", network="latency-us=2000 bandwidth=1e6")

    Each peer has a thread that calls train(rank, connect, *args), as in local(). One thread trains at a time, so that a
    synchronous run has the same bits each time. Peers with the names "peer-0", "peer-1", ... over TCP have the same bits, too
    (with compress="auto" only if bandwidth="off", because a real link influences the codec). `train` must not use a random
    stream that peers share.
    network: latency-us, jitter-us, bandwidth (bytes per second of each link; 0: no limit), step-us (virtual time of a
    local step), cut-rate, seed.
    Returns a list with the result of `train` by rank; a result of None is replaced by the peer's last figures. The attributes
    `drift` and `relative_drift` of the list are exact. SimulationError: a peer failed; raised after all others have ended.
    """
    n = _check.whole("hearsay.simulate: n", n, 1, 2**32 - 1)
    _options.check("hearsay.simulate", options, _options.SIMULATED)
    world = _World(n, network)
    results: List[Any] = [None] * n
    threads: List[threading.Thread] = []
    try:
        # Each thread starts when the thread before it waits in connect(), so that all threads act
        # in a fixed order.
        for rank in range(n):
            connect = _Connect(world, rank, {"shard": f"{rank + 1}/{n}", **options})
            threads.append(threading.Thread(target=_run, args=(world, connect, train, args, results), daemon=True))
            threads[-1].start()
            with world.changed:
                world.changed.wait_for(lambda: rank in world.handles or rank in world.ended or world.failed)
            if world.failed:
                break
        world.wait_for_threads(len(threads))
    except BaseException:
        world.end(-1, KeyboardInterrupt())
        raise
    finally:
        world.wait_for_threads(len(threads))
        for thread in threads:
            thread.join()
    for rank, error in sorted(world.ended.items()):
        if error is not None and not isinstance(error, SimulationError):
            raise SimulationError(rank, repr(error)) from error
    if world.absent is not None:
        raise SimulationError(world.absent, "it returned without connect(), expected `train` to call that")
    for rank, error in sorted(world.ended.items()):
        if error is not None:
            raise error
    found = Results(results)
    found.models = len(world.models)
    found.drift, found.relative_drift = distance([_flat(world.models[rank]) for rank in sorted(world.models)])
    return found


def _flat(model: Any) -> Any:
    import numpy

    return numpy.concatenate([*trained(model), numpy.zeros(0, numpy.float32)])
