"""hearsay.lab.run: reads the files in the --out directories of runs.

    DIR/run.txt, DIR/summary.json      settings and result of a run of several peers (`local`, `sim`)
    DIR/peer-0/metrics.jsonl, ...      metrics of each peer. Without peer-N directories, each directory in DIR with a
                                       metrics.jsonl or summary.json is a peer, except old.N and hidden directories
    DIR/metrics.jsonl                  metrics, if DIR is the directory of one `peer` or of `train`

    >>> run = hearsay.lab.load("out")
    >>> run.final.accuracy                                  # Range(low=0.91, high=0.93) of the worst and best peer
    >>> run.peers[0].columns["loss"]                        # one value per round
    >>> run.frame().groupby("peer").accuracy.max()          # pandas

The files may come from an untrusted source. Symbolic links below DIR are refused, each size has a limit, and a wrong value
raises InputError with file, line, field, found and expected value. A missing file is not an error: its numbers are NaN.

A metrics.jsonl with several starts is one table. Rounds that a later start repeats replace the earlier ones. `time_s`,
`bytes_sent` and `bytes_received` of a row count from its start; Peer.seconds(), Peer.sent() and Peer.received() are totals
over all starts. A last line without a line feed is incomplete, for example after a crash, and is left out.
"""
import array
import dataclasses
import datetime
import functools
import json
import math
import os
import re
import stat
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray

from .cli import InputError
from .output import add_input, shown

Array = NDArray[Any]
NAN = float("nan")
MIB = 1 << 20

# Kinds of numbers, worded for error messages.
REAL = "a number or null"
SIZE = "a number >= 0, or null"
WHOLE = "a whole number from 0 to 2^53, or null"

# Numeric columns of metrics.jsonl: name in lines of peers, name in lines of `train` (or None), kind.
COLUMNS: Tuple[Tuple[str, Optional[str], str], ...] = (
    ("round", "round", WHOLE), ("rounds", None, WHOLE), ("settle_rounds", None, WHOLE), ("time_s", "seconds", SIZE),
    ("loss", "loss", REAL), ("accuracy", "test_accuracy", SIZE), ("test_loss", "test_loss", REAL),
    ("drift", None, SIZE), ("relative_drift", None, SIZE), ("drift_round", None, WHOLE), ("drift_age", None, WHOLE),
    ("own_distance", None, SIZE), ("statistics_disagreement", None, SIZE), ("gamma", None, REAL),
    ("drift_excess", None, REAL), ("drift_target", None, REAL), ("goodput", None, SIZE),
    ("bytes_sent", None, WHOLE), ("bytes_received", None, WHOLE), ("bytes_ahead", None, WHOLE),
    ("compute_s", None, SIZE), ("wait_s", None, SIZE), ("mix_s", None, SIZE), ("live", None, WHOLE),
    ("edges", None, WHOLE), ("local_steps", None, WHOLE), ("steps_done", None, WHOLE), ("rounds_done", None, WHOLE),
    ("rounds_skipped", None, WHOLE), ("joined_round", None, WHOLE))
NAMES: Tuple[str, ...] = tuple(name for name, _, _ in COLUMNS)
TRAIN_NAMES: Tuple[Optional[str], ...] = tuple(train for _, train, _ in COLUMNS)
KINDS: Tuple[str, ...] = tuple(kind for _, _, kind in COLUMNS)
AT: Dict[str, int] = {name: i for i, name in enumerate(NAMES)}
WORDS: Tuple[str, ...] = ("phase", "rung", "rung_by")  # Text columns.

# Numbers of summary.json: name in `figures`, key of the enclosing object (None: top level), key in that object, kind.
SUMMARY: Tuple[Tuple[str, Optional[str], str, str], ...] = (
    ("round", None, "round", WHOLE), ("rounds", None, "rounds", WHOLE), ("settle_rounds", None, "settle_rounds", WHOLE),
    ("loss", None, "loss", REAL), ("accuracy", None, "accuracy", SIZE), ("test_loss", None, "test_loss", REAL),
    ("accuracy_min", None, "accuracy_min", SIZE), ("accuracy_max", None, "accuracy_max", SIZE),
    ("relative_drift", None, "relative_drift", SIZE), ("drift_round", None, "drift_round", WHOLE),
    ("estimated", None, "estimated_relative_drift", SIZE), ("seconds", None, "seconds", SIZE),
    ("seconds_in_all", None, "seconds_in_all", SIZE), ("simulated_s", None, "simulated_s", SIZE),
    ("starts", None, "starts", WHOLE), ("bytes_sent", None, "bytes_sent", WHOLE),
    ("bytes_received", None, "bytes_received", WHOLE), ("sent_in_all", None, "bytes_sent_in_all", WHOLE),
    ("received_in_all", None, "bytes_received_in_all", WHOLE), ("rounds_skipped", None, "rounds_skipped", WHOLE),
    ("n_peers", None, "n_peers", WHOLE), ("exit_code", None, "exit_code", REAL),
    ("verdict_skipped", "verdict", "rounds_skipped", WHOLE), ("members", "verdict", "n_members", WHOLE))


@dataclasses.dataclass(frozen=True)
class Limits:
    """Upper limits of the files that are read. A file beyond a limit is refused."""

    line_bytes: int = 64 * 1024  # Maximum size of one line of metrics.jsonl in bytes, including the line feed.
    lines: int = 4_000_000  # Maximum number of lines in all files of one load() or load_all().
    starts: int = 100_000  # Maximum number of starts of a peer in one metrics.jsonl.
    peers: int = 4096  # Maximum number of peers of one run.
    entries: int = 1_000_000  # Maximum number of files in one directory.
    word_bytes: int = 63  # Maximum size of one text in metrics.jsonl, in bytes.
    words: int = 255  # Maximum number of different texts in one metrics.jsonl.
    verdict_bytes: int = 1023
    summary_bytes: int = 64 * MIB
    settings_bytes: int = 10 * 1024 - 1


LIMITS = Limits()


@dataclasses.dataclass(frozen=True)
class Range:
    """Minimum and maximum of a number over several peers. NaN: unknown."""

    low: float = NAN
    high: float = NAN

    def widen(self, by: "Range") -> "Range":
        """The smallest range that contains both ranges. NaN is ignored."""
        return Range(_least(self.low, by.low), _greatest(self.high, by.high))


@dataclasses.dataclass(frozen=True)
class Final:
    """Final results of a run or a peer, from summary.json if possible, otherwise from the last rows. NaN: unknown."""

    accuracy: Range = Range()  # Test accuracy of the worst and the best peer.
    test_loss: Range = Range()  # Test loss of the best and the worst peer.
    loss: Range = Range()  # Training loss of the best and the worst peer.
    estimated: float = NAN  # Relative consensus distance, estimated by the peers.
    exact: float = NAN  # Relative consensus distance, computed from the models.
    rounds: float = NAN  # Rounds of training.
    settle_rounds: float = NAN  # Rounds of the consensus phase.
    skipped: float = NAN  # Skipped rounds.
    seconds: float = NAN  # Duration of the run in seconds, over all starts. For `sim`: in simulated time.
    wall_s: float = NAN  # Seconds that a simulation took. NaN for other commands.
    sent: float = NAN  # Bytes sent by all peers over all starts.
    received: float = NAN  # Bytes received by all peers over all starts.
    exit_code: float = NAN  # Exit code of the command.


@dataclasses.dataclass(frozen=True)
class Times:
    """Seconds of a peer over all starts, at its last row. `rest` is the time that none of the other three fields contains."""

    compute: float = NAN
    wait: float = NAN
    mix: float = NAN
    rest: float = NAN


@dataclasses.dataclass
class Start:
    """One start of a peer."""

    at_s: int  # Unix time of the start in seconds. -1: unknown.
    time_s: float  # Total seconds of all earlier starts.
    sent: float  # Total bytes sent in all earlier starts.
    received: float  # Total bytes received in all earlier starts.
    from_zero: bool  # The start began at round 0, so its model does not depend on an earlier start.


@dataclasses.dataclass
class Curve:
    """Test accuracy of a whole run at each round in which all peers were evaluated."""

    round: Array  # Step counter: rounds of training plus rounds of the consensus phase.
    sent: Array  # Bytes sent by all peers since the run last began at round 0.
    seconds: Array  # Seconds of the slowest peer since the run last began at round 0.
    accuracy: Array  # Accuracy of the worst peer.

    def at(self, axis: str, x: float) -> float:
        """The accuracy at x of the axis "round", "sent" or "seconds", interpolated linearly. NaN: x is outside the curve."""
        xs = getattr(self, axis)
        for i, right in enumerate(xs):
            if not right >= x:
                continue
            if right <= x:
                return float(self.accuracy[i])
            if i == 0:
                return NAN
            share = (x - xs[i - 1]) / (right - xs[i - 1])
            return float(self.accuracy[i - 1] + share * (self.accuracy[i] - self.accuracy[i - 1]))
        return NAN


class Peer:
    """One peer of a run. `columns` has one numpy array per column of metrics.jsonl, all of one length."""

    def __init__(self, name: str) -> None:
        self.name = name  # Name of the peer's directory.
        self.columns: Dict[str, Array] = _no_rows()  # Column by name: numbers (NaN for null), texts ("" for null), and `start`.
        self.starts: List[Start] = []
        self.summary: Dict[str, Any] = {}  # Contents of summary.json.
        self.figures: Optional[Dict[str, float]] = None  # Numbers of summary.json, by the names of SUMMARY. None: no such file.
        self.verdict = ""  # Verdict in summary.json. "": unknown.

    def __len__(self) -> int:
        return len(self.columns["round"])

    def step(self) -> Array:
        """Step counter of each row: rounds of training plus rounds of the consensus phase."""
        step: Array = self.columns["round"] + np.nan_to_num(self.columns["settle_rounds"], nan=0.0)
        return step

    def seconds(self) -> Array:
        """For each row, the total seconds from the first start of the peer to this row."""
        return self._total_of("time_s", "time_s")

    def sent(self) -> Array:
        """For each row, the total bytes that the peer had sent in all starts up to this row."""
        return self._total_of("sent", "bytes_sent")

    def received(self) -> Array:
        """For each row, the total bytes that the peer had received in all starts up to this row."""
        return self._total_of("received", "bytes_received")

    def _total_of(self, before: str, column: str) -> Array:
        """Totals over all starts of a column whose values begin at 0 at each start. `before`: the field of Start to add."""
        if len(self) == 0:
            return np.zeros(0)
        totals = np.array([getattr(start, before) for start in self.starts])
        total: Array = totals[self.columns["start"]] + self.columns[column]
        return total

    def begun(self, row: int) -> Start:
        """The last start at round 0 before a row. The model of the row does not depend on starts
        before that one."""
        i = int(self.columns["start"][row])
        while i > 0 and not self.starts[i].from_zero:
            i -= 1
        return self.starts[i]

    def last(self, column: str) -> float:
        """The value of a column in the last row. NaN: the table is empty."""
        return float(self.columns[column][-1]) if len(self) > 0 else NAN

    def _total(self, figure: str, before: str, rows: Array) -> float:
        """The total over all starts of a number of summary.json, which counts from the last
        start only. `before`: the field of Start with the total of all earlier starts. `rows`:
        totals of all rows; the last one is used if there is no summary.json."""
        summary = self.figure(figure)
        if math.isfinite(summary) and self.starts:
            return float(getattr(self.starts[-1], before)) + summary
        return _first_of(summary, float(rows[-1]) if len(rows) > 0 else NAN)

    def figure(self, name: str) -> float:
        """The number `name` of summary.json, a name in SUMMARY. NaN: unknown."""
        return NAN if self.figures is None else self.figures[name]

    @property
    def final(self) -> Final:
        """The final results of the peer."""
        get = self.figure
        loss = _first_of(get("loss"), self.last("loss"))
        return Final(accuracy=Range(get("accuracy"), get("accuracy")), test_loss=Range(get("test_loss"), get("test_loss")),
                     loss=Range(loss, loss), estimated=_first_of(get("relative_drift"), self.last("relative_drift")),
                     rounds=_first_of(get("round"), self.last("round")),
                     settle_rounds=_first_of(get("settle_rounds"), self.last("settle_rounds")),
                     skipped=_first_of(get("rounds_skipped"), self.last("rounds_skipped")),
                     seconds=self._total("seconds", "time_s", self.seconds()),
                     sent=self._total("bytes_sent", "sent", self.sent()),
                     received=self._total("bytes_received", "received", self.received()), exit_code=get("exit_code"))

    @property
    def times(self) -> Times:
        """The time that the peer computed, waited and mixed."""
        compute, wait, mix = self.last("compute_s"), self.last("wait_s"), self.last("mix_s")
        if not math.isfinite(compute + wait + mix):
            return Times(compute, wait, mix, NAN)
        rest = float(self.seconds()[-1]) - compute - wait - mix
        return Times(compute, wait, mix, max(0.0, rest) if math.isfinite(rest) else 0.0)


class Run:
    """A finished or interrupted run, read whole by load()."""

    def __init__(self, path: str) -> None:
        self.path = path  # Path that was given to load().
        self.label = _label(path)  # Name for figures and tables. load_all() makes labels unique.
        self.several = False  # True: each peer has a directory of its own.
        self.peers: List[Peer] = []  # Peers sorted by name, with numbers in names sorted by value.
        self.settings: Dict[str, str] = {}  # Lines key=value of run.txt.
        self.summary: Dict[str, Any] = {}  # Contents of summary.json.
        self.figures: Optional[Dict[str, float]] = None  # Numbers of summary.json, by the names of SUMMARY. None: no such file.
        self.verdict = ""  # Verdict in summary.json. "": unknown.

    @property
    def command(self) -> str:
        """The command of the run: "local", "sim", "peer" or "train". "": unknown."""
        return self.settings.get("command", "")

    @property
    def finished(self) -> bool:
        """Whether the run has written a summary.json."""
        return self.figures is not None

    @property
    def exit_code(self) -> Optional[int]:
        """Exit code of the command. None: unknown."""
        code = self.figure("exit_code")
        return int(code) if math.isfinite(code) else None

    def figure(self, name: str) -> float:
        """The number `name` of summary.json, a name in SUMMARY. NaN: unknown."""
        return NAN if self.figures is None else self.figures[name]

    @property
    def final(self) -> Final:
        """Final results, from summary.json of the run if possible, otherwise computed from its peers."""
        if not self.several:
            return self.peers[0].final
        f, get = self._of_peers(), self.figure
        if not math.isfinite(get("n_peers")):
            return dataclasses.replace(f, exit_code=get("exit_code"))
        wall_s = _first_of(get("seconds_in_all"), get("seconds"))
        simulated = math.isfinite(get("simulated_s"))
        return dataclasses.replace(
            f, accuracy=Range(get("accuracy_min"), get("accuracy_max")), exact=get("relative_drift"),
            estimated=get("estimated"), rounds=get("rounds"), settle_rounds=get("settle_rounds"),
            skipped=get("verdict_skipped"), sent=_first_of(get("sent_in_all"), get("bytes_sent")),
            received=_first_of(get("received_in_all"), get("bytes_received")),
            seconds=get("simulated_s") if simulated else wall_s, wall_s=wall_s if simulated else NAN,
            exit_code=get("exit_code"))

    def _of_peers(self) -> Final:
        f = Final(estimated=self._mean_estimate())
        for p in [peer.final for peer in self.peers]:
            f = dataclasses.replace(
                f, accuracy=f.accuracy.widen(p.accuracy), test_loss=f.test_loss.widen(p.test_loss), loss=f.loss.widen(p.loss),
                rounds=_greatest(f.rounds, p.rounds), settle_rounds=_greatest(f.settle_rounds, p.settle_rounds),
                seconds=_greatest(f.seconds, p.seconds), skipped=_add(f.skipped, p.skipped), sent=_add(f.sent, p.sent),
                received=_add(f.received, p.received))
        return f

    def _mean_estimate(self) -> float:
        """Mean of the estimates of the relative consensus distance that belong to the newest round."""
        newest, found = -1.0, [NAN]
        for peer in self.peers:
            ended = math.isfinite(peer.figure("relative_drift"))
            x = peer.figure("relative_drift") if ended else peer.last("relative_drift")
            round_ = peer.figure("drift_round") if ended else peer.last("drift_round")
            if not math.isfinite(x) or not round_ >= newest:
                continue
            found = [x] if round_ > newest or math.isnan(found[0]) else found + [x]
            newest = round_
        total = 0.0
        for x in found:  # Adds from left to right, as hearsay does: math.fsum() would differ in the last bit.
            total += x
        return total / len(found)

    def curve(self) -> Curve:
        """Test accuracy by rounds, bytes and seconds, at each round in which all peers were evaluated."""
        stops: List[Tuple[float, float, float, float]] = []
        if self.peers and len(self.peers[0]) > 0:
            tables = [_evaluations(peer) for peer in self.peers]
            for round_ in tables[0]:
                if all(round_ in table for table in tables):
                    found = [table[round_] for table in tables]
                    sent = 0.0
                    for one in found:
                        sent += one[0]
                    stops.append((round_, sent, _greatest(0.0, *[one[1] for one in found]), min(one[2] for one in found)))
        columns = np.array(stops).reshape(len(stops), 4)
        return Curve(columns[:, 0], columns[:, 1], columns[:, 2], columns[:, 3])

    def metrics(self) -> Dict[str, Array]:
        """All rows of all peers: `peer` (its name), `start` (from 0), words and numbers, one array per column."""
        names = [np.full(len(peer), peer.name, dtype=object) for peer in self.peers]
        table: Dict[str, Array] = {"peer": np.concatenate(names) if names else np.zeros(0, dtype=object)}
        for name in ("start",) + WORDS + NAMES:
            table[name] = np.concatenate([peer.columns[name] for peer in self.peers])
        return table

    def frame(self) -> Any:
        """metrics() as a pandas.DataFrame."""
        try:
            import pandas  # type: ignore[import-untyped,unused-ignore]
        except ImportError as error:
            raise ImportError("Run.frame() needs pandas (pip install pandas, Debian: python3-pandas)") from error
        return pandas.DataFrame(self.metrics())

    def __repr__(self) -> str:
        state = self.verdict or ("finished" if self.finished else "not finished")
        return f"<Run {self.path!r}: {self.command or 'unknown command'}, {len(self.peers)} peers, {state}>"


# ---- Small arithmetic with NaN for "unknown". ----


def _first_of(a: float, b: float) -> float:
    return a if math.isfinite(a) else b


def _least(*xs: float) -> float:
    return min((x for x in xs if not math.isnan(x)), default=NAN)


def _greatest(*xs: float) -> float:
    return max((x for x in xs if not math.isnan(x)), default=NAN)


def _add(total: float, x: float) -> float:
    return _first_of(total, 0.0) + x if math.isfinite(x) else total


def _evaluations(peer: Peer) -> Dict[float, Tuple[float, float, float]]:
    """For each evaluated round: bytes, seconds and accuracy. If a round has several evaluations, the last one is used."""
    step, accuracy, sent, seconds = peer.step(), peer.columns["accuracy"], peer.sent(), peer.seconds()
    found: Dict[float, Tuple[float, float, float]] = {}
    for i in np.flatnonzero(np.isfinite(accuracy)):
        begun = peer.begun(int(i))
        found[float(step[i])] = (float(sent[i]) - begun.sent, float(seconds[i]) - begun.time_s, float(accuracy[i]))
    return found


# ---- Opening paths. ----


def refuse(path: str, why: str) -> InputError:
    """The InputError for a file with unexpected contents. `why`: found and expected contents."""
    return InputError(f"{shown(path)}: {shown(why)}")


def _cannot_read(path: str, error: OSError) -> InputError:
    return refuse(path, f"cannot read: {error.strerror or error}")


def _label(path: str) -> str:
    """The last part of a real path, at most 200 bytes."""
    base = os.fsencode(os.path.basename(os.path.realpath(path)))[:200]
    return os.fsdecode(base) or "/"


def look(path: str, directory: bool = False) -> bool:
    """Whether a regular file (or a directory) exists at PATH. InputError: PATH is something else, for example a symbolic link."""
    wanted = "a directory" if directory else "a regular file"
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return False
    except (OSError, ValueError) as error:
        raise refuse(path, f"cannot read: {getattr(error, 'strerror', None) or error}") from error
    if stat.S_ISLNK(mode):
        raise refuse(path, f"found a symbolic link, which is not followed, expected {wanted}")
    if stat.S_ISDIR(mode) if directory else stat.S_ISREG(mode):
        return True
    raise refuse(path, f"found another kind of file, expected {wanted}")


def _open(path: str) -> int:
    """Open a regular file and return its descriptor. A FIFO or device at PATH is refused without waiting."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise _cannot_read(path, error) from error
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise refuse(path, "found another kind of file, expected a regular file")
    add_input(fd)
    return fd


def _read_whole(path: str, most: int) -> bytes:
    with open(_open(path), "rb") as f:
        try:
            data = f.read(most + 1)
        except OSError as error:
            raise _cannot_read(path, error) from error
    if len(data) > most:
        raise refuse(path, f"found a longer file, expected {most} bytes at most")
    return data


# ---- JSON from untrusted files. ----


def _pairs(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("found a key twice")
    return found


def _no_constant(text: str) -> float:
    raise ValueError(f"{text} is no JSON")


_decoder = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_no_constant)


def parse_object(data: bytes) -> Dict[str, Any]:
    """Parse one JSON object. ValueError names the found and the expected value."""
    try:
        value = _decoder.decode(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"found no JSON ({str(error)[:100]}), expected an object") from None
    if not isinstance(value, dict):
        raise ValueError(f"found {_type_name(value)}, expected an object")
    return value


def _type_name(value: Any) -> str:
    if value is None:
        return "null"
    for kind, name in ((bool, "a truth value"), ((int, float), "a number"), (str, "a text"), (list, "a list")):
        if isinstance(value, kind):
            return name
    return "an object"


def _number(name: str, value: Any, kind: str) -> float:
    """The number in a field, NaN for null. ValueError: the value is not of the kind of the field."""
    if value is None:
        return NAN
    if type(value) is int:
        if kind is WHOLE and 0 <= value <= 1 << 53 or kind is not WHOLE and abs(value) < 1 << 63 and (value >= 0 or kind is REAL):
            return float(value)
        raise ValueError(f"{name}: found {value if abs(value) < 1 << 63 else 'a larger number'}, expected {kind}")
    if type(value) is float:
        if math.isfinite(value) and (kind is REAL or kind is SIZE and value >= 0):
            return value
        raise ValueError(f"{name}: found {value:.9g}, expected {kind}")
    raise ValueError(f"{name}: found {_type_name(value)}, expected {kind}")


def _text(name: str, value: Any, most: int) -> str:
    """The text in a field, "" for null. ValueError: the value is no text, or too long."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(f"{name}: found {_type_name(value)}, expected a text or null")
    try:
        n = len(value.encode("utf-8"))
    except UnicodeEncodeError:
        raise ValueError(f"{name}: found half a character (a lone surrogate), expected a text or null") from None
    if "\0" in value:
        raise ValueError(f"{name}: found a NUL, expected a text or null")
    if n > most:
        raise ValueError(f"{name}: found a text of {n} bytes, expected {most} at most")
    return value


# ---- Reading metrics.jsonl. ----


def _no_rows() -> Dict[str, Array]:
    columns: Dict[str, Array] = {"start": np.zeros(0, dtype=np.int64)}
    columns.update((name, np.zeros(0, dtype=object)) for name in WORDS)
    columns.update((name, np.zeros(0)) for name in NAMES)
    return columns


def _time_of(text: str) -> int:
    """Unix time of a text such as "2026-11-22T13:33:02Z". -1: the text has another form."""
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z", text):
        return -1
    try:
        leap = text[17:19] == "60"
        at = datetime.datetime.strptime(text.replace(":60Z", ":59Z") if leap else text, "%Y-%m-%dT%H:%M:%SZ")
    except ValueError:
        return -1
    seconds = int(at.replace(tzinfo=datetime.timezone.utc).timestamp()) + leap
    return seconds if seconds >= 0 else -1


class Table:
    """Collects the rows of one metrics.jsonl while its lines are read."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.limits = limits
        self.starts: List[Start] = []
        self.n = 0  # Number of rows.
        self._step = array.array("d")  # Step counter of each row, ascending.
        self._columns = [array.array("d") for _ in NAMES]
        self._words: List[List[str]] = [[] for _ in WORDS]
        self._start = array.array("q")
        self._different: Dict[str, str] = {}
        self._next = Start(-1, 0.0, 0.0, 0.0, True)  # Total seconds and bytes up to the last row, for the next start of the peer.

    def take(self, line: bytes) -> bool:
        """Read one line of metrics.jsonl. True: the line is the row of a round. False: the line marks a start. ValueError:
        a field is wrong."""
        fields = parse_object(line)
        if fields.get("start") is True:
            self._take_start(fields)
            return False
        self._take_row(fields)
        return True

    def row(self, i: int) -> Dict[str, float]:
        """The numbers of row i, bytes and seconds as totals over all starts."""
        values = {name: self._columns[k][i] for k, name in enumerate(NAMES)}
        before = self.starts[self._start[i]]
        values["bytes_sent"] += before.sent
        values["bytes_received"] += before.received
        values["seconds"] = before.time_s + values["time_s"]
        values["step"] = self._step[i]
        return values

    def word(self, i: int, name: str) -> str:
        """The text of row i in the column `name`."""
        return self._words[WORDS.index(name)][i]

    def start_of(self, i: int) -> Start:
        """The start of the peer's process in which row i was written."""
        return self.starts[self._start[i]]

    def _drop_behind(self, step: float) -> None:
        """Remove the rows after `step`, because a later start repeats them."""
        n = self.n
        while n > 0 and self._step[n - 1] > step:
            n -= 1
        if n == self.n:
            return
        self.n = n
        for column in self._columns:
            del column[n:]
        for words in self._words:
            del words[n:]
        del self._start[n:], self._step[n:]

    def _add_start(self, at_s: int, from_zero: bool) -> None:
        if len(self.starts) >= self.limits.starts:
            raise ValueError(f"too many starts, expected {self.limits.starts} at most")
        self.starts.append(dataclasses.replace(self._next, at_s=at_s, from_zero=from_zero))

    def _take_start(self, fields: Mapping[str, Any]) -> None:
        text = _text("at", fields.get("at"), self.limits.word_bytes)
        from_round = _number("from_round", fields.get("from_round"), WHOLE)
        at_s = _time_of(text) if text else -1
        if text and at_s < 0:
            raise ValueError("at: expected a time, as 2026-11-22T13:33:02Z, or null")
        self._drop_behind(from_round if math.isfinite(from_round) else 0.0)
        self._add_start(at_s, not from_round > 0)

    def _take_row(self, fields: Mapping[str, Any]) -> None:
        get = fields.get
        names = NAMES if "phase" in fields else TRAIN_NAMES
        values = [NAN if name is None else _number(name, get(name), kind) for name, kind in zip(names, KINDS)]
        if math.isnan(values[0]):
            raise ValueError("round: found none, expected a whole number")
        words = [_text(name, get(name), self.limits.word_bytes) for name in WORDS]
        for name, word in zip(WORDS, words):
            if word and word not in self._different:
                if len(self._different) >= self.limits.words:
                    raise ValueError(f"{name}: more than {self.limits.words} different texts in the file")
                self._different[word] = word
        if not self.starts:
            self._add_start(-1, True)
        settle = values[AT["settle_rounds"]]
        step = values[0] + (0.0 if math.isnan(settle) else settle)
        self._drop_behind(step)
        for column, value in zip(self._columns, values):
            column.append(value)
        for column_of_words, word in zip(self._words, words):
            column_of_words.append(self._different.get(word, ""))
        self._start.append(len(self.starts) - 1)
        self._step.append(step)
        self.n += 1
        start = self.starts[-1]
        self._next = Start(-1, start.time_s + _greatest(0.0, values[AT["time_s"]]),
                           start.sent + _greatest(0.0, values[AT["bytes_sent"]]),
                           start.received + _greatest(0.0, values[AT["bytes_received"]]), False)

    def columns(self) -> Dict[str, Array]:
        """One numpy array per column."""
        found: Dict[str, Array] = {"start": np.array(self._start, dtype=np.int64)}
        for name, words in zip(WORDS, self._words):
            found[name] = np.array(words, dtype=object)
        for name, values in zip(NAMES, self._columns):
            found[name] = np.array(values, dtype=float)
        return found


class _Budget:
    """Number of lines that may still be read. Shared by all files of one load(), so that the input is bounded."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.lines = limits.lines


def _whole_lines(path: str, limits: Limits) -> Iterator[bytes]:
    """Yield each line that ends in a line feed. InputError: a line is longer than the limit, even if incomplete."""
    with open(_open(path), "rb") as f:
        number = 0
        while True:
            try:
                line = f.readline(limits.line_bytes)
            except OSError as error:
                raise _cannot_read(path, error) from error
            number += 1
            if not line.endswith(b"\n"):
                if len(line) >= limits.line_bytes:
                    raise refuse(path, f"line {number}: too long, expected {limits.line_bytes - 1} bytes at most")
                return  # The end of the file, or an incomplete last line.
            yield line


def _read_rows(peer: Peer, path: str, budget: _Budget) -> None:
    if not look(path):
        return
    table = Table(budget.limits)
    for number, line in enumerate(_whole_lines(path, budget.limits), 1):
        if budget.lines <= 0:
            raise refuse(path, f"line {number}: too many lines, expected {budget.limits.lines} at most in all files")
        budget.lines -= 1
        try:
            table.take(line)
        except ValueError as error:
            raise refuse(path, f"line {number}: {error}") from None
    peer.columns, peer.starts = table.columns(), table.starts


# ---- Reading summary.json and run.txt. ----


def _figures(fields: Mapping[str, Any], limits: Limits) -> Tuple[Dict[str, float], str]:
    """Numbers and verdict of a summary.json. The field of `train` for the test accuracy is test_accuracy."""
    verdict = fields.get("verdict")
    inner: Mapping[str, Any] = verdict if isinstance(verdict, dict) else {}
    figures = {name: _number(key, (fields if at is None else inner).get(key), kind) for name, at, key, kind in SUMMARY}
    if "test_accuracy" in fields:
        figures["accuracy"] = _number("test_accuracy", fields["test_accuracy"], SIZE)
    return figures, _text("text", inner.get("text"), limits.verdict_bytes)


def _read_summary(of: Any, path: str, limits: Limits) -> None:
    """Fill summary, figures and verdict of a Run or Peer. For `sim`, the summary of the run contains the summaries of the peers."""
    if not look(path):
        return
    try:
        fields = parse_object(_read_whole(path, limits.summary_bytes))
        of.figures, of.verdict = _figures(fields, limits)
        of.summary = fields
        listed = fields.get("peers")
        if not isinstance(of, Run) or not of.several or not isinstance(listed, list):
            return
        missing = {peer.name: peer for peer in of.peers if peer.figures is None}
        for one in listed:
            inner = one if isinstance(one, dict) else {}
            peer = missing.pop(_text("name", inner.get("name"), 255), None)
            if peer is not None:
                peer.figures, peer.verdict = _figures(inner, limits)
                peer.summary = inner
    except ValueError as error:
        raise refuse(path, str(error)) from None


def _read_settings(path: str, limits: Limits) -> Dict[str, str]:
    if not look(path):
        return {}
    data = _read_whole(path, limits.settings_bytes)
    if b"\0" in data:
        raise refuse(path, "found a NUL, expected lines of key=value")
    settings: Dict[str, str] = {}
    for line in data.decode("utf-8", "surrogateescape").split("\n"):
        key, equals, value = line.partition("=")
        if equals:
            settings.setdefault(key, value)
    return settings


def _difference(there: Mapping[str, str], here: Mapping[str, str]) -> str:
    """The first difference between two run descriptions, "" if they are equal. Flags and the command are not compared."""
    for key in list(there) + [key for key in here if key not in there]:
        if key != "command" and not key.startswith("--") and there.get(key) != here.get(key):
            return f"{key}={there.get(key, 'none')[:40]} there, {here.get(key, 'none')[:40]} here"
    return ""


# ---- Reading the directories of runs. ----


def _has_results(path: str) -> bool:
    return look(os.path.join(path, "metrics.jsonl")) or look(os.path.join(path, "summary.json"))


def natural_order(a: str, b: str) -> int:
    """Compare names: negative if a comes before b, 0 if they are equal, otherwise positive. Digits are compared by value."""
    key = [[(1, part) if part[:1].isdigit() else (0, part) for part in re.findall(rb"[0-9]+|[^0-9]", os.fsencode(text))]
           for text in (a, b)]
    for (x_digits, x), (y_digits, y) in zip(*key):
        if x_digits and y_digits:
            x, y = x.lstrip(b"0"), y.lstrip(b"0")
            if len(x) != len(y):
                return len(x) - len(y)
        if x != y:
            return -1 if x < y else 1
    if len(key[0]) != len(key[1]):
        return len(key[0]) - len(key[1])
    return (os.fsencode(a) > os.fsencode(b)) - (os.fsencode(a) < os.fsencode(b))


def _is_peer(path: str, name: str, numbered: bool) -> bool:
    if name.startswith(".") or re.fullmatch("old\\.[0-9]+", name) or bool(re.fullmatch("peer-[0-9]+", name)) != numbered:
        return False
    at = os.path.join(path, name)
    if numbered:
        return look(at, directory=True)
    try:
        return stat.S_ISDIR(os.lstat(at).st_mode) and _has_results(at)
    except OSError:
        return False


def _find_peers(run: Run, names: Sequence[str], numbered: bool, limits: Limits) -> None:
    found = [name for name in names if _is_peer(run.path, name, numbered)]
    if len(found) > limits.peers:
        raise refuse(run.path, f"found {len(found)} peers, expected {limits.peers} at most")
    run.peers = [Peer(name) for name in sorted(found, key=functools.cmp_to_key(natural_order))]


def _names(path: str, limits: Limits) -> List[str]:
    names = []
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                names.append(entry.name)
                if len(names) > limits.entries:
                    raise refuse(path, f"found more names, expected {limits.entries} at most")
    except (OSError, ValueError) as error:
        raise refuse(path, f"cannot read: {getattr(error, 'strerror', None) or error}") from error
    return names


def _read_one(run: Run, budget: _Budget) -> None:
    """Read the directory of one peer or of `train`."""
    peer = Peer(run.label)
    run.peers = [peer]
    run.settings = _read_settings(os.path.join(run.path, "run.txt"), budget.limits)
    _read_rows(peer, os.path.join(run.path, "metrics.jsonl"), budget)
    _read_summary(run, os.path.join(run.path, "summary.json"), budget.limits)
    peer.summary, peer.figures, peer.verdict = run.summary, run.figures, run.verdict


def _read_several(run: Run, budget: _Budget) -> None:
    """Read a run whose peers have directories. Without a run.txt of the run, all peers must have the same run description."""
    run.several = True
    run.settings = _read_settings(os.path.join(run.path, "run.txt"), budget.limits)
    named = bool(run.settings)
    for peer in run.peers:
        at = os.path.join(run.path, peer.name)
        _read_rows(peer, os.path.join(at, "metrics.jsonl"), budget)
        _read_summary(peer, os.path.join(at, "summary.json"), budget.limits)
        if named:
            continue
        settings = _read_settings(os.path.join(at, "run.txt"), budget.limits)
        if not run.settings:
            run.settings = settings
        elif settings and _difference(run.settings, settings):
            raise refuse(at, f"found a peer of another run than the directory before it ({_difference(run.settings, settings)})")
    _read_summary(run, os.path.join(run.path, "summary.json"), budget.limits)


def _read(path: str, budget: _Budget) -> Run:
    try:
        run = Run(path)
        if os.path.exists(path) and not os.path.isdir(path):
            raise refuse(path, "found a file, expected a directory that a run has written with --out")
        if look(os.path.join(path, "metrics.jsonl")):
            _read_one(run, budget)
            return run
        names = _names(path, budget.limits)
    except ValueError as error:  # The path contains a NUL.
        raise refuse(path, f"cannot read: {error}") from None
    _find_peers(run, names, True, budget.limits)
    if not run.peers:
        _find_peers(run, names, False, budget.limits)
    if run.peers:
        _read_several(run, budget)
    elif _has_results(path):
        _read_one(run, budget)
    else:
        raise refuse(path, "found no metrics.jsonl, neither in this directory nor in peer-0, peer-1, ..., expected a directory "
                           "that a run has written with --out")
    return run


def load(path: "os.PathLike[str] | str", limits: Limits = LIMITS) -> Run:
    """Read the --out directory of a run, or of one of its peers. InputError: the directory has no run, or a file is wrong."""
    return _read(os.fspath(path), _Budget(limits))


def load_all(paths: Sequence["os.PathLike[str] | str"], limits: Limits = LIMITS,
             say: Optional[Callable[[str], None]] = None) -> List[Run]:
    """Read several runs. A path of a directory that `compare` or `sweep` has written stands for all of its runs.

    Each run gets a unique label: its directory, if necessary with the parent directory or a number, or in an experiment its arm
    and seed. A file among the paths is skipped if another path is a directory. `say` gets one line about all that is skipped.
    The limit of lines applies to all runs together. InputError: a run is not readable, or all are skipped.
    """
    budget = _Budget(limits)
    places, skipped = _find_runs([os.fspath(path) for path in paths], limits)
    if skipped and say is not None:
        more = ", ..." if len(skipped) > 3 else ""
        say(f"skipped {len(skipped)} path{'' if len(skipped) == 1 else 's'} without results of a run: "
            f"{', '.join(map(shown, skipped[:3]))}{more}")
    if not places:
        raise refuse(skipped[0] if skipped else "", "found no results in any run below it, expected a metrics.jsonl or summary.json")
    runs = [_read(path, budget) for path, _ in places]
    labels = [run.label for run, (_, label) in zip(runs, places) if not label]
    for run, (_, label) in zip(runs, places):
        if label:
            run.label = label
        elif labels.count(run.label) > 1:
            run.label = _label_by_parent(run)
    taken: List[str] = []
    for run in runs:
        label, number = run.label, 2
        while run.label in taken:
            run.label = f"{label}-{number}"
            number += 1
        taken.append(run.label)
    return runs


# ---- Directories of compare and sweep. ----

# Largest depth of a run's directory below the directory of an experiment: OUT/ARM/lr-X/seed-N has
# depth 3.
_EXPERIMENT_DEPTH = 3


def _seed_places(path: str, limits: Limits) -> List[Tuple[str, ...]]:
    """The directories seed-N of an experiment, each as names below `path`, such as ("ARM", "seed-1"). Empty: `path` is a run."""
    names = _names(path, limits)
    if any(name in ("metrics.jsonl", "summary.json") or re.fullmatch("peer-[0-9]+", name) for name in names):
        return []
    found: List[Tuple[str, ...]] = []

    def walk(above: Tuple[str, ...], names: Sequence[str]) -> None:
        for name in sorted(names, key=functools.cmp_to_key(natural_order)):
            at = os.path.join(path, *above, name)
            if name.startswith((".", "old.")) or not os.path.isdir(at) or os.path.islink(at):
                continue
            if re.fullmatch("seed-[0-9]+", name):
                found.append(above + (name,))
            elif len(above) + 1 < _EXPERIMENT_DEPTH:
                walk(above + (name,), _names(at, limits))

    walk((), names)
    return found


def _experiment_labels(path: str, places: Sequence[Tuple[str, ...]], is_only: bool) -> List[str]:
    """The label of each directory in `places`, such as "ARM, seed 1". If two labels would be equal, they also name learning
    rate or `path`."""
    # compare and sweep make a lock file in their --out directory only, not in directories below it.
    is_out = is_only and os.path.exists(os.path.join(path, ".lock"))
    whole = [((_label(path),) if not is_out or len(place) == 1 else ()) + place for place in places]
    short = [(names[0],) + tuple(name for name in names[1:] if not name.startswith("lr-")) for names in whole]
    return [", ".join(one if short.count(one) == 1 else names).replace(", seed-", ", seed ") for one, names in zip(short, whole)]


def _find_runs(paths: Sequence[str], limits: Limits) -> Tuple[List[Tuple[str, str]], List[str]]:
    """The runs of a command line, each with its label or "", and the paths that are skipped."""
    found: List[Tuple[str, str]] = []
    skipped: List[str] = []
    n_directories = sum(os.path.isdir(path) for path in paths)
    for path in paths:
        if not os.path.isdir(path):
            if n_directories > 0 and os.path.lexists(path):
                skipped.append(path)
            else:
                found.append((path, ""))  # Not a run: _read() will raise the error.
            continue
        places = _seed_places(path, limits)
        for place, label in zip(places, _experiment_labels(path, places, n_directories == 1)):
            at = os.path.join(path, *place)
            if _has_results(at) or any(re.fullmatch("peer-[0-9]+", name) for name in _names(at, limits)):
                found.append((at, label))
            else:
                skipped.append(at)
        if not places:
            found.append((path, ""))
    return found, skipped


def _label_by_parent(run: Run) -> str:
    """The label PARENT-NAME of a run in the directory .../PARENT/NAME."""
    parent, name = os.path.split(os.path.realpath(run.path))
    if parent in ("", "/"):
        return run.label
    return os.fsdecode(os.fsencode(os.path.basename(parent))[:120] + b"-" + os.fsencode(name)[:120])
