"""Progress lines of a run on stderr, at most one line every INTERVAL_S seconds."""
import math
import os
import sys
import time
from typing import Any, Optional

FIRST_S = 1.0  # Time before the first line. A shorter run prints only its verdict.
INTERVAL_S = 5.0
PHASES = {"joining": "joining", "consensus": "consensus phase", "finishing": "finishing", "no-quorum": "waiting for a quorum",
          "left": "left"}


def is_first_rank() -> bool:
    """Returns whether this process is rank 0 of its job. Also true if no job has started the process."""
    return os.environ.get("RANK", os.environ.get("SLURM_PROCID", os.environ.get("OMPI_COMM_WORLD_RANK", "0"))) == "0"


def wanted(progress: Optional[bool]) -> bool:
    """Returns whether to print progress. `progress` None: only at rank 0 of a job, and if stderr is a terminal."""
    if progress is not None:
        return bool(progress)
    try:
        return is_first_rank() and sys.stderr.isatty()
    except (AttributeError, ValueError):  # stderr is None or closed.
        return False


def say(line: str) -> None:
    """Writes a line to stderr. Errors are ignored, so that a closed stderr does not end the training."""
    try:
        print(line, file=sys.stderr, flush=True)
    except (AttributeError, OSError, ValueError):
        pass


def amount(n: float) -> str:
    """Returns a number of bytes as text with three digits and a unit."""
    for unit in ("B", "kB", "MB"):
        if n < 999.5:
            return f"{n:.3g} {unit}"
        n /= 1000
    return f"{n:.3g} GB"


def line(f: Any, min_peers: int, bytes_per_s: float, waits: bool = False) -> str:
    """Returns the progress line for these figures. `waits`: the peer is waiting for its neighbours."""
    here = max(1, f.n_live)
    peers = f"{here} peer{'' if here == 1 else 's'}"
    if f.phase in ("", "joining"):
        return f"waiting for {min_peers - here} of {min_peers} peers" if here < min_peers else f"joining: {peers}"
    words = [f"round {f.round} of {f.rounds or '?'}"]
    if f.phase in PHASES:
        words.append(PHASES[f.phase] + (f", round {f.settle_rounds} of it" if f.phase == "consensus" else ""))
    words += [f"{name} {value:.4g}" for name, value in (("loss", f.loss), ("accuracy", f.accuracy)) if not math.isnan(value)]
    if not math.isnan(f.relative_drift):
        words.append(f"relative drift {f.relative_drift:.2g}")
    words += [peers, f"sends {amount(bytes_per_s)}/s"]
    if waits and f.phase == "training":
        words.append("waits for neighbours")
    return ", ".join(words)


class Progress:
    """Writes the progress lines of one peer."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._begun = self._at = time.monotonic()
        self._next = self._begun + FIRST_S
        self._sent = 0

    def due(self) -> bool:
        return time.monotonic() >= self._next

    def show(self, figures: Any, min_peers: int, waits: bool) -> None:
        now = time.monotonic()
        rate = (figures.bytes_sent - self._sent) / max(now - self._at, 1e-3)
        self._at, self._sent, self._next = now, figures.bytes_sent, now + INTERVAL_S
        self.say(line(figures, min_peers, rate, waits))

    def say(self, text: str) -> None:
        say(f"{self.name}: {text}")
