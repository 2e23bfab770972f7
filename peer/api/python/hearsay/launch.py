"""Starts several peers from one program: as processes on this machine, or as ranks of torchrun, Slurm or mpirun."""
import contextlib
import ctypes
import multiprocessing
import multiprocessing.connection
import os
import pickle
import re
import secrets
import signal
import socket
import sys
import tempfile
import time
import traceback
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Sequence

from . import _options, progress
from ._lib import UsageError
from .final import Results, exact, write
from .peer import LEAVE_S, Peer, log_warning

if TYPE_CHECKING:
    from typing_extensions import Unpack

PR_SET_PDEATHSIG = 1  # Option of prctl(2): send a signal to this process when its parent ends.
# Time in seconds in which a process must end after it has sent its result. An interrupted process gets LEAVE_S seconds.
END_S = 10.0


def keygen(path: str) -> str:
    """Writes a new cluster key, as `hearsay key new` does: 32 random bytes in hexadecimal, mode 600. Returns the path.
    FileExistsError if the file exists.
    """
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600)
    with os.fdopen(fd, "w") as f:
        f.write(secrets.token_hex(32) + "\n")
    return path


# ---- processes on this machine ------------------------------------------------------


# Messages of a rank to the parent. RUNS: the rank calls `train`. GATHERS: connect() was called; with the value of min_peers.
# ENDS: `train` has returned; with its result. ABSENT: like ENDS, but connect() was never called. FAILS: with a traceback.
RUNS, GATHERS, ENDS, ABSENT, FAILS = "runs", "gathers", "ends", "absent", "fails"


class LocalError(RuntimeError):
    """A process of local() failed. `rank` is the rank of the process. The text has its traceback."""

    def __init__(self, rank: int, text: str) -> None:
        super().__init__(f"hearsay.local: peer {rank} failed:\n{text}")
        self.rank = rank


class Connect:
    """Argument of `train` in local(): connect(model, optimizer, ...) makes the Peer of this rank."""

    def __init__(self, rank: int, options: Mapping[str, Any], answer: Any) -> None:
        self.rank = rank
        self.options = dict(options)
        self.answer = answer
        self.peers: List[Peer] = []

    @_options.listed()
    def __call__(self, module: Any, optimizer: Any = None, /, **more: "Unpack[_options.PeerOptions]") -> Peer:
        _options.check("connect", more, _options.PEER_NAMES)
        options: Dict[str, Any] = {"on_note": log_warning, **self.options, **more}
        options["progress"] = bool(options.get("progress")) and self.rank == 0  # Only rank 0 prints progress, for all ranks.
        self.answer.send_bytes(pickle.dumps((GATHERS, str(options.get("min_peers", "")))))
        self.peers.append(Peer(module, optimizer, **options))
        return self.peers[-1]


class _Interrupt:
    """Handler of SIGINT and SIGTERM: `train` gets one KeyboardInterrupt. Later signals are ignored, so that the peer can
    leave the run.
    """

    def __init__(self) -> None:
        self.heard = False

    def __call__(self, *_signal: Any) -> None:
        if not self.heard:
            self.heard = True
            raise KeyboardInterrupt


def _on_a_leash(parent: int) -> None:
    """Makes the kernel send SIGTERM to this process when its parent ends: without the parent no process reads the result."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGTERM)  # The parent was killed before the prctl() call.


def _child(rank: int, train: Callable[..., Any], args: Sequence[Any], options: Dict[str, Any], listener: socket.socket,
           answer: Any, parent: int, final: str) -> None:
    """Runs in the new process. `final` is the path of the file for the final model of this rank."""
    answer.send_bytes(pickle.dumps((RUNS, None)))
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    connect = Connect(rank, {**options, "listen": f"fd:{listener.detach()}"}, answer)
    interrupt = _Interrupt()
    own = os.getpid()
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, interrupt)
        _on_a_leash(parent)
        result = train(rank, connect, *args)
        if os.getpid() != own:
            raise SystemExit(0)
        for peer in connect.peers:
            peer.finish()
        if result is None and connect.peers:
            result = connect.peers[-1].figures()
        if connect.peers:
            write(final, connect.peers[-1]._model)
        interrupt.heard = True
        answer.send_bytes(pickle.dumps((ENDS if connect.peers else ABSENT, result)))
    except BaseException:
        if os.getpid() != own:
            raise  # `train` has forked this process. The rank itself still runs, so no failure is reported.
        interrupt.heard = True
        with contextlib.suppress(BrokenPipeError):  # The pipe is broken if the parent was killed.
            answer.send_bytes(pickle.dumps((FAILS, traceback.format_exc())))
    finally:
        for peer in connect.peers:
            peer.leave()


def _listeners(n: int) -> List[socket.socket]:
    """Opens the listening sockets before any process starts, so that no other program gets one of their ports."""
    made = []
    for _ in range(n):
        one = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        one.bind(("127.0.0.1", 0))
        one.listen(128)
        made.append(one)
    return made


def _threads(n: int) -> Dict[str, str]:
    """Returns environment variables that divide the cores among n processes, unless the user has set them."""
    each = str(max(1, len(os.sched_getaffinity(0)) // n))
    return {name: each for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS") if name not in os.environ}


def _own(rank: int, options: Mapping[str, Any]) -> Dict[str, Any]:
    """Returns the options that must differ between peers, as in `hearsay local`: DIR/peer-0, DIR/peer-1, ..., and PORT +
    rank.
    """
    own: Dict[str, Any] = {}
    if options.get("out") is not None:
        own["out"] = os.path.join(os.fspath(options["out"]), f"peer-{rank}")
    if options.get("metrics") is not None:
        host, colon, port = str(options["metrics"]).rpartition(":")
        if not port.isdigit():
            raise UsageError(f"hearsay.local: metrics: found {options['metrics']!r}, expected PORT or HOST:PORT")
        own["metrics"] = f"{host}{colon}{int(port) + (rank if int(port) > 0 else 0)}"
    return own


def _all_can_begin(n: int, absent: List[int], needs: Mapping[int, str]) -> None:
    """Raises LocalError if a rank waits for more peers than can join, because the ranks in `absent` never called connect().
    `needs`: min_peers by rank."""
    for rank, least in needs.items():
        if absent and least.isdigit() and int(least) > n - len(absent):
            raise LocalError(absent[0], f"it returned without connect(), while peer {rank} waits until there are {least} peers")


def _ended(process: Any, runs: bool, spawned: bool) -> str:
    """Returns the reason why a process has no result. `runs`: the process has reached `train`."""
    text = f"its process ended with code {process.exitcode}, and no result"
    if runs or not spawned:
        return text
    return (f"its process ended with code {process.exitcode} before it called `train`; its own traceback is on stderr. A new interpreter "
            "imports the script: expected the call of local() under `if __name__ == \"__main__\":`, and `train` at the top level of "
            "the script or of a module; start_method=\"fork\" copies this process instead")


def _collect(answers: List[Any], processes: List[Any], others: bool, spawned: bool) -> List[Any]:
    """Returns the results by rank. LocalError names the first rank that fails. `others`: peers other than these ranks may join
    the run."""
    runs: List[int] = []
    results: Dict[int, Any] = {}
    absent: List[int] = []
    needs: Dict[int, str] = {}
    while len(results) < len(answers):
        waiting = {answers[i]: i for i in range(len(answers)) if i not in results}
        for answer in multiprocessing.connection.wait(list(waiting)):
            rank = waiting[answer]
            try:
                said, result = pickle.loads(answer.recv_bytes())  # type: ignore[union-attr]
            except EOFError:
                processes[rank].join(END_S)
                said, result = FAILS, _ended(processes[rank], rank in runs, spawned)
            if said == FAILS:
                raise LocalError(rank, result)
            if said == RUNS:
                runs.append(rank)
                continue
            if said == GATHERS:
                needs[rank] = result
            else:
                results[rank] = result
            if said == ABSENT:
                absent.append(rank)
            if not others:
                _all_can_begin(len(answers), absent, needs)
    return [results[i] for i in range(len(answers))]


def _end(processes: List[Any], early: bool) -> None:
    """Waits until all processes have ended. `early`: asks the processes to leave first. A process that takes too long is
    killed. A second Ctrl-C kills all processes.
    """
    begun = [one for one in processes if one.pid is not None]
    end = time.monotonic() + (LEAVE_S if early else END_S)
    try:
        for process in begun:
            if early and process.is_alive():
                process.terminate()
        for process in begun:
            process.join(max(0.0, end - time.monotonic()))
    finally:
        for process in begun:
            if process.is_alive():
                process.kill()
            process.join()


def _is_file(path: Any) -> bool:
    return isinstance(path, str) and os.path.isfile(path)


def _method(train: Any) -> str:
    """Returns the start method of the processes: "spawn", or "fork" if `train` is not in a file (prompt, notebook, stdin, -c). A
    spawned interpreter must import `train` from a file."""
    main = sys.modules.get("__main__")
    while hasattr(train, "func"):  # A functools.partial stands for the function in it.
        train = train.func
    module, code = getattr(train, "__module__", None), getattr(train, "__code__", None)
    if module not in ("__main__", "__mp_main__") and _is_file(getattr(main, "__file__", None)):
        return "spawn"
    in_file = _is_file(getattr(main, "__file__", None)) and (code is None or _is_file(code.co_filename))
    return "spawn" if in_file and "ipykernel" not in sys.modules else "fork"


@_options.listed()
def local(n: int, train: Callable[..., Any], *args: Any, start_method: Optional[str] = None,
          **options: "Unpack[_options.PeerOptions]") -> Results:
    """Run n peers as processes on this machine: for a first try, and for tests.

        def train(rank, connect):
            model = Net()                            # all ranks begin with rank 0's values, or those of the rank with initial=True
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            peer = connect(model, optimizer)         # hearsay.Peer
            for x, y in peer.shard(dataset): ...; peer.step()
            return peer.finish(), peer.accuracy

        if __name__ == "__main__":
            print(hearsay.local(4, train, rounds=200, topology="ring"))

    Each process calls train(rank, connect, *args). Keyword arguments are those of Peer. local() chooses key, ports, names,
    min_peers and shards that are not given. With out=DIR, rank i writes to DIR/peer-i. With metrics=PORT, rank i serves at
    PORT + i. With progress=True, rank 0 prints progress lines.
    Returns a list with the result of `train` by rank; a result of None is replaced by the peer's last figures. The
    attributes `drift` and `relative_drift` of the list are exact, computed from the final tensors of all ranks.
    If a rank fails, the other ranks are ended, and LocalError has the traceback of the failed rank. LocalError also names a
    rank that returns without connect() while others wait. At a KeyboardInterrupt, all ranks get some seconds to leave and to
    write summary and checkpoint; `train` gets one KeyboardInterrupt, and local() raises it. A second KeyboardInterrupt ends
    the processes at once.
    Processes are spawned, as PyTorch recommends: `train` and `args` are pickled, and a script needs the line with
    __name__. If `train` is not in a file (a notebook, a prompt, stdin), processes are forked, with one thread each.
    """
    if n < 1:
        raise ValueError(f"hearsay.local: found {n} peers, expected at least 1")
    _options.check("hearsay.local", options, _options.PEER_NAMES)
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise UsageError("hearsay.local: found a call while a process of local() imports this script, expected it under "
                         '`if __name__ == "__main__":`')
    method = start_method or _method(train)
    context: Any = multiprocessing.get_context(method)
    listeners = _listeners(n)
    threads = {"OMP_NUM_THREADS": "1"} if method == "fork" else _threads(n)
    before = {name: os.environ.get(name) for name in threads}
    processes: List[Any] = []
    answers: List[Any] = []
    good = False
    with tempfile.TemporaryDirectory(prefix="hearsay-") as directory:
        places = [f"127.0.0.1:{one.getsockname()[1]}" for one in listeners]
        common: Dict[str, Any] = {"key": os.path.join(directory, "key"), "bootstrap": ",".join(places), "min_peers": n,
                                  **{name: value for name, value in options.items() if value is not None}}
        finals = [os.path.join(directory, f"final-{rank}") for rank in range(n)]
        keygen(os.path.join(directory, "key"))
        try:
            os.environ.update(threads)
            for rank in range(n):
                reader, writer = context.Pipe(duplex=False)
                own: Dict[str, Any] = {"name": f"rank-{rank}", "shard": f"{rank + 1}/{n}", **common,
                                       **_own(rank, options)}
                if rank == 0 and options.get("bootstrap") is None:
                    del own["bootstrap"]  # The peer without a bootstrap list provides the initial model.
                processes.append(context.Process(target=_child, name=own["name"],
                                                 args=(rank, train, args, own, listeners[rank], writer, os.getpid(), finals[rank])))
                processes[-1].start()
                answers.append(reader)
                writer.close()
                listeners[rank].close()
            results = Results(_collect(answers, processes, options.get("bootstrap") is not None, method != "fork"))
            good = True
            results.models, results.drift, results.relative_drift = exact(finals)
            if options.get("progress") and results.models > 0:
                progress.Progress("hearsay").say(f"relative drift {results.relative_drift:.4g}, exact, of {results.models} models")
            return results
        finally:
            try:
                _end(processes, not good)
            finally:
                for one in listeners:
                    one.close()
                for name, value in before.items():
                    if value is None:
                        os.environ.pop(name, None)
                    else:
                        os.environ[name] = value


# ---- ranks of a job -----------------------------------------------------------------

RANKS = (("RANK", "WORLD_SIZE"), ("SLURM_PROCID", "SLURM_NTASKS"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
         ("PMI_RANK", "PMI_SIZE"))


def _first_host(nodes: str) -> str:
    """Returns the first host of Slurm's list of hosts: "n[03-07,9],m1" gives n03."""
    found = re.match(r"([^\[,]+)(?:\[([^\],-]+)[^\]]*\])?([^,]*)", nodes)
    return "" if found is None else found.group(1) + (found.group(2) or "") + found.group(3)


def _place(env: Mapping[str, str], port: Optional[int]) -> str:
    """Returns the address of rank 0 as HOST:PORT."""
    host = env.get("MASTER_ADDR") or _first_host(env.get("SLURM_STEP_NODELIST") or env.get("SLURM_JOB_NODELIST") or "")
    if not host:
        raise UsageError("hearsay.torchrun: found no MASTER_ADDR, expected the host of rank 0 in it")
    if port is None and "MASTER_PORT" in env:
        port = int(env["MASTER_PORT"]) + 1  # The next port, because torchrun uses MASTER_PORT itself.
    if port is None:
        port = 20000 + int(env.get("SLURM_JOB_ID", "0")) % 10000
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def from_env(env: Optional[Mapping[str, str]] = None, port: Optional[int] = None) -> Dict[str, Any]:
    """Returns the options of the Peer of a rank that torchrun, Slurm (srun) or mpirun started.

    Rank 0 listens at port MASTER_PORT + 1 (or `port`) of MASTER_ADDR. All other ranks listen at any port and contact rank
    0 first, whose model becomes the initial model of all ranks. The name is rank-N; min_peers and shard follow from the
    number of ranks. The key is not part of these options, because launchers do not copy secrets: key=FILE, or
    HEARSAY_KEY=FILE, must name a copy of the key file on each host.
    """
    env = os.environ if env is None else env
    for rank_name, size_name in RANKS:
        if rank_name in env and size_name in env:
            break
    else:
        raise UsageError("hearsay.torchrun: found neither RANK and WORLD_SIZE nor SLURM_PROCID and SLURM_NTASKS nor those of "
                         "mpirun, expected to be started by torchrun, srun or mpirun")
    rank, size = int(env[rank_name]), int(env[size_name])
    place = _place(env, port)
    own = place.rpartition(":")[2] if rank == 0 else "0"
    options: Dict[str, Any] = {"listen": f"0.0.0.0:{own}", "name": f"rank-{rank}", "min_peers": size,
                               "shard": f"{rank + 1}/{size}"}
    if rank > 0:
        options["bootstrap"] = place  # Rank 0 gets no bootstrap list, so it provides the initial model.
    return options


@_options.listed()
def torchrun(module: Any, optimizer: Any = None, /, *, port: Optional[int] = None, **options: "Unpack[_options.PeerOptions]") -> Peer:
    """Makes the Peer of this rank, for `torchrun --nproc-per-node 4 train.py`. `options` replace those of from_env()."""
    _options.check("hearsay.torchrun", options, _options.PEER_NAMES)
    return Peer(module, optimizer, **{**from_env(port=port), **options})
