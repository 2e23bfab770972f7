"""hearsay.lab.feed: reads the metrics of a run from its files, and sends them to a sink, such as TensorBoard.

    replay(run, sink)            sends a run that load() has read
    follow(path, sink)           reads metrics.jsonl files as they grow, until the run has written its summary.json

The step of a value is the step counter of its row. Bytes are totals over all starts. The time of a row is the time of its start
plus its seconds. A simulation has no start time, so its rows begin in 1970.
"""
import argparse
import functools
import math
import os
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

import numpy as np

from .cli import InputError
from .output import add_input, note, shown
from .run import LIMITS, NAMES, Limits, Peer, Run, Table, load, load_all, look, refuse
from .sinks import ALL, Sink

IDLE_S = 600.0  # Default of --idle.

# Final results of a run: tag, name in summary.json.
_ENDS = (("end/accuracy_min", "accuracy_min"), ("end/accuracy_max", "accuracy_max"), ("end/exact_drift", "drift"),
         ("end/exact_relative_drift", "relative_drift"))


def end_figures(run: Run) -> Tuple[int, Dict[str, float]]:
    """The last step of a finished run of several peers, and its final results by tag. Empty dict: the run is not finished, or
    has one peer."""
    final = run.final
    if not run.several or not math.isfinite(run.figure("n_peers")):
        return 0, {}
    figures = {tag: float(run.summary[name]) for tag, name in _ENDS if isinstance(run.summary.get(name), (int, float))}
    figures.update({"end/bytes_sent": final.sent, "end/bytes_received": final.received, "end/seconds": final.seconds})
    step = final.rounds + (final.settle_rounds if math.isfinite(final.settle_rounds) else 0)
    return int(step) if math.isfinite(step) else 0, figures


def _wall_time(at_s: int, time_s: float) -> float:
    return max(at_s, 0) + (time_s if math.isfinite(time_s) else 0.0)


def replay_peer(peer: Peer, sink: Sink) -> None:
    """Send all rows of a peer to a sink."""
    steps, sent, received = peer.step(), peer.sent(), peer.received()
    for i in range(len(peer)):
        figures: Dict[str, Any] = {name: float(peer.columns[name][i]) for name in NAMES}
        figures["bytes_sent"], figures["bytes_received"] = float(sent[i]), float(received[i])
        figures["wall_time"] = _wall_time(peer.starts[int(peer.columns["start"][i])].at_s, figures["time_s"])
        sink.on_round(peer.name, int(steps[i]), figures)


def replay(run: Run, sink: Sink) -> None:
    """Send all rows of all peers to a sink, then the final results. Does not close the sink."""
    for peer in run.peers:
        replay_peer(peer, sink)
    _end(run, sink)


def _end(run: Run, sink: Sink) -> None:
    step, figures = end_figures(run)
    if figures:
        walls = [_wall_time(peer.starts[-1].at_s, peer.last("time_s")) for peer in run.peers if peer.starts]
        sink.on_round(ALL, step, {**figures, "wall_time": float(np.max(walls)) if walls else 0.0})


# ---- Following a run in progress. ----


class Tail:
    """Reads new lines of one metrics.jsonl."""

    def __init__(self, name: str, path: str, limits: Limits = LIMITS) -> None:
        self.name = name
        self.path = path
        self.limits = limits
        self._fd = -1
        self._clear()

    def _clear(self) -> None:
        self._table = Table(self.limits)
        self._bytes = b""
        self._number = 0
        self._n = 0  # Number of rows that were sent to the sink and are still valid: no later start has done their rounds again.

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def _is_open(self, sink: Sink) -> bool:
        """Open the file if it is not open yet. A file that was replaced or truncated is read from its beginning. Returns False
        if there is no file."""
        try:
            there: Optional[os.stat_result] = os.lstat(self.path) if look(self.path) else None
        except OSError:
            there = None
        if self._fd >= 0:
            now = os.fstat(self._fd)
            same = there is None or (there.st_dev, there.st_ino) == (now.st_dev, now.st_ino)
            if same and now.st_size >= os.lseek(self._fd, 0, os.SEEK_CUR):
                return True
            self.close()
            self._clear()
            sink.restart(self.name, 0)
        if there is None:
            return False
        try:
            self._fd = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return False
        add_input(self._fd)
        return True

    def poll(self, sink: Sink) -> bool:
        """Send new rows to the sink. True: the file has grown."""
        if not self._is_open(sink):
            return False
        any_ = False
        while True:
            data = os.read(self._fd, 1 << 20)
            if not data:
                return any_
            any_ = True
            lines = (self._bytes + data).split(b"\n")
            self._bytes = lines.pop()
            for line in lines:
                self._take(line, sink)
            if len(self._bytes) >= self.limits.line_bytes:
                raise refuse(self.path, f"line {self._number + 1}: too long, expected {self.limits.line_bytes - 1} bytes at most")

    def _take(self, line: bytes, sink: Sink) -> None:
        self._number += 1
        if len(line) >= self.limits.line_bytes or self._number > self.limits.lines:
            raise refuse(self.path, f"line {self._number}: too long, or too many lines")
        try:
            is_row = self._table.take(line)
        except ValueError as error:
            raise refuse(self.path, f"line {self._number}: {error}") from None
        if not is_row:
            return
        i = self._table.n - 1
        figures: Dict[str, Any] = self._table.row(i)
        step = figures["step"]
        if i < self._n:  # A later start did this round again: row i replaces a row that was sent.
            sink.restart(self.name, int(step))
        self._n = i + 1
        figures["wall_time"] = _wall_time(self._table.start_of(i).at_s, figures["time_s"])
        sink.on_round(self.name, int(step), figures)


class Follower:
    """Follows one run directory."""

    def __init__(self, path: str, limits: Limits = LIMITS) -> None:
        self.path = path
        self.limits = limits
        self._tails: Dict[str, Tail] = {}

    def _find(self) -> None:
        """Find peers that have begun since the last call."""
        if look(os.path.join(self.path, "metrics.jsonl")):
            name = os.path.basename(os.path.realpath(self.path))
            self._tails.setdefault(name, Tail(name, os.path.join(self.path, "metrics.jsonl"), self.limits))
            return
        try:
            names = sorted(os.listdir(self.path))
        except FileNotFoundError:
            return
        except OSError as error:
            raise refuse(self.path, f"cannot read: {error.strerror or error}") from error
        for name in names:
            at = os.path.join(self.path, name, "metrics.jsonl")
            if name.startswith((".", "old.")) or name in self._tails or not os.path.isdir(os.path.join(self.path, name)):
                continue
            if look(os.path.join(self.path, name), directory=True) and look(at):
                if len(self._tails) >= self.limits.peers:
                    raise refuse(self.path, f"found more peers, expected {self.limits.peers} at most")
                self._tails[name] = Tail(name, at, self.limits)

    def poll(self, sink: Sink) -> bool:
        """Send new rows of all peers to the sink. True: a file has grown."""
        self._find()
        return any([tail.poll(sink) for tail in self._tails.values()])

    @property
    def has_begun(self) -> bool:
        """Whether a metrics.jsonl was found."""
        return bool(self._tails)

    def has_ended(self) -> bool:
        """Whether the run has written its summary.json after its last row."""
        try:
            summary = os.lstat(os.path.join(self.path, "summary.json")).st_mtime_ns
            rows = [os.lstat(tail.path).st_mtime_ns for tail in self._tails.values()]
        except OSError:
            return False
        return summary >= max(rows, default=0)

    def close(self) -> None:
        """Close all files."""
        for tail in self._tails.values():
            tail.close()


def follow(path: str, sink: Sink, every_s: float = 1.0, limits: Limits = LIMITS, idle_s: float = 0.0) -> bool:
    """Send the rows of a run to the sink while the files grow, then the final results. Returns True when the run has ended.

    An interrupted run writes no summary.json. The function therefore returns False if no file has grown for `idle_s` seconds.
    The idle time begins when the first metrics.jsonl exists. `idle_s` 0: no limit.
    """
    follower = Follower(path, limits)
    ended = False
    grown = time.monotonic()
    try:
        while True:
            ended = follower.has_ended()
            if follower.poll(sink) or not follower.has_begun:
                grown = time.monotonic()
            elif ended or 0 < idle_s <= time.monotonic() - grown:
                break
            time.sleep(every_s if not ended else 0)
    finally:
        follower.close()
    if ended:
        _end(load(path, limits), sink)
    return ended


# ---- What the commands have in common. ----


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that all sinks have in common."""
    parser.add_argument("dirs", metavar="DIR", nargs="+", help="the --out directory of a run, of one of its peers, or of compare or sweep")
    parser.add_argument("--follow", action="store_true",
                        help="read the files of one run while they grow, until the run ends; DIR need not exist yet")
    parser.add_argument("--every", metavar="SECONDS", type=float, default=1.0, help="interval at which --follow reads (default: 1)")
    parser.add_argument("--idle", metavar="SECONDS", type=float, default=IDLE_S,
                        help="end --follow when no metrics.jsonl has grown for this time, as after an interrupted run "
                             f"(default: {IDLE_S:g}; 0: never)")


def feed(arguments: argparse.Namespace, make: Callable[[Optional[Run], str, int], Sink]) -> int:
    """Send the runs of a command line to sinks. make(run, label, number of runs) makes a sink. `run` is None if the run
    is followed while it is in progress."""
    if not 0.01 <= arguments.every <= 3600:
        raise InputError(f"--every {arguments.every}: expected 0.01 to 3600 seconds")
    if not 0 <= arguments.idle <= 1e9:
        raise InputError(f"--idle {arguments.idle}: expected seconds, or 0 for no limit")
    if arguments.follow and len(arguments.dirs) > 1:
        raise InputError(f"--follow: found {len(arguments.dirs)} directories, expected one")
    try:
        if arguments.follow:
            _follow_one(arguments, make)
            return 0
        runs: List[Run] = load_all(arguments.dirs, say=note)
        for run in runs:
            _closing(make(run, run.label, len(runs)), functools.partial(replay, run))
    except ImportError as error:
        raise InputError(str(error)) from error
    return 0


def _follow_one(arguments: argparse.Namespace, make: Callable[[Optional[Run], str, int], Sink]) -> None:
    path = arguments.dirs[0]
    if not os.path.isdir(path):
        note(f"waiting for the directory {shown(path)}")

    def use(sink: Sink) -> None:
        if not follow(path, sink, arguments.every, idle_s=arguments.idle):
            note(f"{shown(path)}: no metrics.jsonl has grown for {arguments.idle:g} s and there is no summary.json of a finished run: "
                 "stopped following. Everything that was read is stored; the same command follows again")

    _closing(make(None, os.path.basename(os.path.realpath(path)) or "run", 1), use)


def _closing(sink: Sink, use: Callable[[Sink], None]) -> None:
    """Call use(sink), and close the sink."""
    try:
        use(sink)
    except BaseException:
        sink.close(failed=True)
        raise
    sink.close()
