"""hearsay.lab.graph: the communication graph of the peers of a run.

`hearsay topology` builds it from the settings of the run.
"""
import re
import subprocess
from typing import List, Tuple

from . import program
from .cli import InputError
from .run import Run

PEERS_MAX = 200  # Largest number of peers whose graph is drawn: a larger picture would be unreadable.
EDGES_MAX = 800  # Largest number of edges that are drawn: a picture with more would be unreadable.
SECONDS_MAX = 60  # Time limit of `hearsay topology`.

# Accepted topologies: a name with numbers, or a list of edges. edges:FILE is refused, because hearsay would read the file.
_SPEC = re.compile(r"edges:[0-9]+-[0-9]+(,[0-9]+-[0-9]+)*|(?!edges)[a-z][a-z-]*(:[0-9][0-9a-z.,-]*)?")


class NoGraph(Exception):
    """Raised if no graph can be drawn. The text of the exception is the reason; "" for a run without a graph."""


def n_members(run: Run) -> int:
    """The number of members of the run."""
    peers = run.settings.get("--peers", "")
    if re.fullmatch("[0-9]{1,9}", peers):
        return int(peers)
    members = run.figure("members")
    return int(members) if members > 0 else len(run.peers)


def edges_of(run: Run) -> Tuple[int, List[Tuple[int, int]]]:
    """The number of vertices of the graph of a run, and all edges. Vertex i is the i-th member in the order of names."""
    if run.command == "train":
        raise NoGraph("")
    spec, seed = run.settings.get("topology", ""), run.settings.get("seed", "")
    if not spec or not re.fullmatch("[0-9]{1,20}", seed):
        raise NoGraph("there is no run.txt with a topology and a seed")
    n = n_members(run)
    if n > PEERS_MAX:
        raise NoGraph(f"the run has {n} peers, and at most {PEERS_MAX} are drawn")
    if not _SPEC.fullmatch(spec):
        raise NoGraph("the topology in run.txt is unknown")
    try:
        done = subprocess.run([program.find(), "topology", spec, "--peers", str(n), "--seed", seed, "--dot"],
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS_MAX, check=False,
                              env=program.environment())
    except InputError as error:
        raise NoGraph(str(error)) from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoGraph(f"hearsay topology failed: {error}") from error
    if done.returncode != 0:
        raise NoGraph(f"hearsay topology failed with exit code {done.returncode}")
    edges = [(int(a), int(b)) for a, b in re.findall(rb"^\s*([0-9]+) -- ([0-9]+);", done.stdout, re.MULTILINE)]
    if len(edges) > EDGES_MAX:
        raise NoGraph(f"the graph has {len(edges)} edges, and at most {EDGES_MAX} are drawn")
    if any(a >= n or b >= n for a, b in edges):
        raise NoGraph("hearsay topology printed a graph with more vertices")
    return n, edges
