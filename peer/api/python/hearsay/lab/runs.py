"""hearsay.lab.runs: checks and runs hearsay as child processes, several at a time.

    check    hearsay COMMAND flags --check   before the first run: refuses wrong flags, and finds finished runs
    run      hearsay COMMAND flags           runs the others, at most `jobs` at a time

A run writes its results to its --out directory. The stderr of a run goes to a log file. SIGINT, SIGTERM and SIGHUP are
forwarded to the runs, and no run starts after such a signal. The runs end when this process ends, even if it is killed.
"""
import ctypes
import dataclasses
import fcntl
import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from types import FrameType, TracebackType
from typing import IO, Any, Callable, Dict, List, Optional, Sequence, Tuple, Type

from . import program
from .cli import InputError
from .output import shown

INTERRUPTED = 130  # Exit code of an interrupted command.
POLL_S = 0.05  # Interval at which child processes are polled.
GONE_S = 20.0  # Longest wait for a run of an earlier, killed command that is still ending.
LOG_TAIL = 64 * 1024  # Bytes at the end of a log in which the last line is searched.
PR_SET_PDEATHSIG = 1  # Option of prctl(2): send a signal to this process when its parent ends.

_libc: Any = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


@dataclasses.dataclass
class Job:
    """One run: a process of hearsay."""

    name: str  # Name of the run in messages.
    flags: List[str]  # Flags of the command, including --seed and --out.
    directory: str  # Value of --out.
    log: str  # Path of the file that gets stderr.
    group: str  # Runs of one group differ only in --seed and --out.
    finished: bool = False  # The run has finished before this command started. Set by Runner.check().
    code: Optional[int] = None  # Exit code, 128 + N after signal N. None: not started.


class Signals:
    """A context in which SIGINT, SIGTERM and SIGHUP set `asked` and are forwarded to the child processes."""

    def __init__(self) -> None:
        self.asked = 0  # Number of the last signal. 0: none.
        self.children: Dict[int, "subprocess.Popen[bytes]"] = {}
        self._before: Dict[int, Any] = {}

    def __enter__(self) -> "Signals":
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        for child in self.children.values():  # Ends children that are left after an exception.
            child.terminate()
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: Optional[FrameType]) -> None:
        self.asked = number
        for child in list(self.children.values()):
            child.send_signal(number)

    def start(self, words: Sequence[str], stdout: Any, stderr: Any, environment: Dict[str, str]) -> "subprocess.Popen[bytes]":
        """Start a child process that ends when this process ends."""
        parent = os.getpid()

        def end_with_parent() -> None:
            if _libc is not None:
                _libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
            if os.getppid() != parent:
                os._exit(INTERRUPTED)

        child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, env=environment,
                                 preexec_fn=end_with_parent)
        self.children[child.pid] = child
        if self.asked:  # A signal arrived before the child was in self.children, so it was not forwarded to the child.
            child.send_signal(self.asked)
        return child

    def forget(self, child: "subprocess.Popen[bytes]") -> None:
        """Remove a child that has ended."""
        self.children.pop(child.pid, None)


def _code_of(returncode: int) -> int:
    return 128 - returncode if returncode < 0 else returncode


class Runner:
    """Checks and runs jobs of one command."""

    def __init__(self, signals: Signals, path: str, command: str, jobs: int, source: str = "") -> None:
        self.signals, self.path, self.command, self.jobs = signals, path, command, jobs
        self.source = source  # Name of the settings file, shown in errors.
        # Called between polls while jobs run. An exception of this function stops the jobs.
        self.guard: Callable[[], None] = lambda: None
        self.environment = program.environment()
        # If several simulations run in parallel, each gets one thread. The number of threads does not change the
        # results. The flag --threads overrides the environment variable HEARSAY_THREADS.
        if jobs > 1 and command == "sim":
            self.environment["HEARSAY_THREADS"] = "1"

    def _in_parallel(self, jobs: Sequence[Job], start: Callable[[Job], "subprocess.Popen[bytes]"],
                     ended: Callable[[Job, int], None], idle: Callable[[], None]) -> None:
        """Start the jobs in order, and call ended(job, exit code) when a job ends and idle() while all are running."""
        waiting = list(jobs)
        busy: Dict[int, Tuple["subprocess.Popen[bytes]", Job]] = {}
        while busy or (waiting and not self.signals.asked):
            self.guard()
            while waiting and len(busy) < self.jobs and not self.signals.asked:
                job = waiting.pop(0)
                child = start(job)
                busy[child.pid] = (child, job)
            done = [(child, job) for child, job in busy.values() if child.poll() is not None]
            for child, job in done:
                del busy[child.pid]
                self.signals.forget(child)
                code = _code_of(child.returncode)
                if code == INTERRUPTED and not self.signals.asked:  # A signal to one run stops all other runs, too.
                    self.signals.asked = int(signal.SIGINT)
                ended(job, code)
            if not done:
                idle()
                time.sleep(POLL_S)

    # ---- Checks before the first run. ----

    def check(self, jobs: Sequence[Job]) -> None:
        """Check the jobs, and set `finished` of the jobs that have finished before. InputError: a job is refused.

        The first job of each group is checked, and each job with an existing directory. All other jobs differ from the
        first one of their group only in seed and directory.
        """
        first: Dict[str, Job] = {}
        for job in jobs:
            first.setdefault(job.group, job)
        asked = [job for job in jobs if job is first[job.group] or os.path.lexists(job.directory)]
        files: Dict[str, List[IO[bytes]]] = {}
        refused: Dict[str, Exception] = {}

        def start(job: Job) -> "subprocess.Popen[bytes]":
            out, err = files[job.directory] = [tempfile.TemporaryFile(), tempfile.TemporaryFile()]
            return self.signals.start([self.path, self.command, *job.flags, "--check", "--json"], out, err, self.environment)

        def ended(job: Job, code: int) -> None:
            out, err = files.pop(job.directory)
            with out, err:
                out.seek(0)
                job.finished = code == 0 and b'"finished":true' in out.read(256)
                if code != 0:
                    refused[job.directory] = self._refusal(job, code, last_line(err))

        self._in_parallel(asked, start, ended, lambda: None)
        for job in asked:
            if job.directory in refused and not self.signals.asked:
                raise refused[job.directory]

    def _refusal(self, job: Job, code: int, line: str) -> Exception:
        prefix = f"hearsay {self.command}: "
        line = line or f"`hearsay {self.command} --check` ended with exit code {code}"
        line = line[len(prefix):] if line.startswith(prefix) else line
        line = line.split("; --fresh")[0] + ("; use another --out" if "; --fresh" in line else "")
        text = ": ".join(part for part in (self.source, shown(job.name), line) if part)
        return InputError(text) if code == 2 else OSError(text)

    # ---- Running the jobs. ----

    def run(self, jobs: Sequence[Job], ended: Callable[[Job], None], idle: Callable[[], None]) -> None:
        """Run the jobs that have not finished. Calls ended(job) after each, with job.code set, and idle() while jobs run."""

        def start(job: Job) -> "subprocess.Popen[bytes]":
            self._wait_for_former(job.directory)
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            log = os.open(job.log, flags, 0o666)
            try:
                os.set_blocking(log, True)
                return self.signals.start([self.path, self.command, *job.flags], subprocess.DEVNULL, log, self.environment)
            finally:
                os.close(log)

        def done(job: Job, code: int) -> None:
            job.code = code
            ended(job)

        self._in_parallel([job for job in jobs if not job.finished], start, done, idle)

    def _wait_for_former(self, directory: str) -> None:
        """Wait until no process uses the directory: a run of an earlier, killed command may still be ending."""
        end = time.monotonic() + GONE_S
        while time.monotonic() < end and not self.signals.asked and _is_locked(directory):
            time.sleep(POLL_S)


def last_line(f: IO[bytes]) -> str:
    """The last line with text in a file. "": no such line."""
    f.seek(max(0, f.seek(0, os.SEEK_END) - LOG_TAIL))
    lines = [line.strip() for line in f.read(LOG_TAIL).decode("utf-8", "replace").splitlines()]
    return shown(next((line for line in reversed(lines) if line), "")[:500])


def reason(job: Job) -> str:
    """The reason for the failure of a run: exit code and last line of the log."""
    line = ""
    try:
        with open(os.open(job.log, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as f:
            line = last_line(f)
    except OSError:
        pass
    return f"exit code {job.code}: {line}" if line else f"exit code {job.code}"


# ---- Locks of output directories. ----


def _open_lock(directory: str, flags: int) -> int:
    return os.open(os.path.join(directory, ".lock"), os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | flags, 0o600)


def _is_locked(directory: str) -> bool:
    """Whether a process holds the lock of an --out directory (peer/output/outdir.h)."""
    try:
        fd = _open_lock(directory, 0)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return False
    except OSError:
        return True
    finally:
        os.close(fd)


class Lock:
    """The lock of an --out directory. Makes the directory if necessary. The lock is held until close() or the end of the
    process."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        try:
            make_directory(directory)
            self.fd = _open_lock(directory, os.O_CREAT)
            if not stat.S_ISREG(os.fstat(self.fd).st_mode):
                raise InputError(f"--out: {shown(directory)}/.lock: found another kind of file, expected a regular file")
        except OSError as error:
            raise InputError(f"--out: cannot write {shown(directory)}: {error.strerror}") from error
        try:
            fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            pid = os.pread(self.fd, 32, 0).decode("ascii", "replace").strip()
            os.close(self.fd)
            by = f"process {pid}" if pid.isdigit() else "another process"
            raise InputError(f"--out: {shown(directory)} is in use by {by}") from error
        os.ftruncate(self.fd, 0)
        os.pwrite(self.fd, f"{os.getpid()}\n".encode(), 0)

    def check(self) -> None:
        """Raise OSError if the directory was deleted or replaced after the lock was taken."""
        held = os.fstat(self.fd)
        try:
            there = os.lstat(os.path.join(self.directory, ".lock"))
        except OSError:
            there = None
        if there is None or (there.st_dev, there.st_ino) != (held.st_dev, held.st_ino):
            raise OSError(f"--out: {shown(self.directory)} was deleted or replaced during the runs. All runs are stopped, and their "
                          "results are lost. To start again, repeat the command")

    def close(self) -> None:
        """Release the lock."""
        os.close(self.fd)


def make_directory(path: str) -> None:
    """Make a directory and its parents. Only this user can read new directories."""
    parent = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(parent):
        make_directory(parent)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        if not os.path.isdir(path):
            raise


# ---- Showing progress. ----


def duration(seconds: float) -> str:
    """A duration as text: "4.2 s", "42 s", "3:20", "2:05:10" or "3 d 04:10"."""
    if seconds < 59.5:
        return f"{seconds:.{1 if seconds < 9.95 else 0}f} s"
    s = int(seconds + 0.5)
    if s < 3600:
        return f"{s // 60}:{s % 60:02d}"
    if s < 24 * 3600:
        return f"{s // 3600}:{s // 60 % 60:02d}:{s % 60:02d}"
    return f"{s // 86400} d {s // 3600 % 24:02d}:{s // 60 % 60:02d}"


class Progress:
    """Progress on stderr: a bar on a terminal, one line per run elsewhere."""

    WIDTH = 30
    EVERY_S = 0.5  # Shortest time between two updates of the bar.

    def __init__(self, command: str, total: int) -> None:
        self.command, self.total = command, total
        self.done = self.before = 0  # done: number of runs that have ended. before: those that ended before this command started.
        self.begun = time.monotonic()
        self.terminal = sys.stderr.isatty()
        self._drawn = 0.0
        self._shown = False

    def left(self) -> str:
        """The estimated time left, such as ", 1:20 left". "": unknown."""
        now_done = self.done - self.before
        if now_done == 0 or self.done >= self.total:
            return ""
        return f", {duration((time.monotonic() - self.begun) / now_done * (self.total - self.done))} left"

    def ended(self, text: str, before: bool = False, bad: bool = False) -> None:
        """Report that a run has ended. `before`: it ended in an earlier command. `bad`: print `text` even if stderr is a
        terminal."""
        self.done += 1
        self.before += before
        if bad or not self.terminal:
            self.say(f"{text} ({self.done} of {self.total} runs{', done before' if before else self.left()})")
        self.draw(True)

    def say(self, text: str) -> None:
        """Print a line to stderr."""
        self.clear()
        print(f"hearsay-lab {self.command}: {text}", file=sys.stderr, flush=True)

    def draw(self, now: bool = False) -> None:
        """Draw the bar if stderr is a terminal. `now`: also if the last update was less than EVERY_S ago."""
        if not self.terminal or not now and time.monotonic() - self._drawn < self.EVERY_S:
            return
        self._drawn, self._shown = time.monotonic(), True
        full = self.WIDTH * self.done // max(1, self.total)
        bar = "#" * full + "." * (self.WIDTH - full)
        print(f"\r[{bar}] {self.done} of {self.total} runs{self.left()}\x1b[K", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Remove the bar."""
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._shown = False
