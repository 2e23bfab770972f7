#!/usr/bin/python3
"""Tests of hearsay.Peer: python_peer.py CHECK runs the function check_CHECK. Exits with 0, or with an error message.

Where possible, two peers are two threads of one process, because a process can have several handles.
"""
import contextlib
import ctypes
import gc
import inspect
import io
import json
import logging
import multiprocessing
import os
import pydoc
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest.mock
import urllib.request

sys.dont_write_bytecode = True
import hearsay  # noqa: E402
import numpy as np  # noqa: E402
from hearsay import _lib, _model, _options, progress  # noqa: E402
from hearsay.launch import _own  # noqa: E402
from hearsay.peer import LEAVE_S  # noqa: E402

PATIENCE = 120


def together(n, train, **options):
    """Runs train(rank, connect) in n threads, one peer each. Returns a list of the results by rank, or raises the first
    exception."""
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    places = ",".join(f"127.0.0.1:{one.getsockname()[1]}" for one in listeners)
    results, errors = [None] * n, []
    with tempfile.TemporaryDirectory() as directory:
        key = hearsay.keygen(os.path.join(directory, "key"))

        def run(rank):
            def connect(model, optimizer=None, /, **more):
                own = dict(key=key, bootstrap=places, min_peers=n, name=f"rank-{rank}", shard=f"{rank + 1}/{n}",
                           listen=f"fd:{os.dup(listeners[rank].fileno())}", timeout=PATIENCE, **options)
                return hearsay.Peer(model, optimizer, **{**own, **more})

            try:
                results[rank] = train(rank, connect)
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=run, args=(rank,)) for rank in range(n)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    for one in listeners:
        one.close()
    if errors:
        raise errors[0]
    return results


def alone(model, optimizer=None, /, **options):
    """Returns a hearsay.Peer in a run with one peer."""
    directory = tempfile.mkdtemp()
    key = hearsay.keygen(os.path.join(directory, "key"))
    return hearsay.Peer(model, optimizer, **{**dict(key=key, listen="127.0.0.1:0", min_peers=1, rounds=5, timeout=PATIENCE), **options})


def raises(kind, words, call):
    try:
        call()
    except kind as error:
        assert words in str(error), f"found {error!r}, expected {words!r} in it"
        return error
    raise AssertionError(f"found no {kind.__name__}")


# ---- models of numpy arrays ----


def move(model, rank, peer):
    while not peer.over:
        for a in model.values():
            a += np.asarray(0.1 * (rank + 1), a.dtype)
        peer.step()


def check_numpy():
    """Packed arrays are used in place, other arrays are copied; in both cases all peers end with the same model."""
    for packed in (True, False):
        def train(rank, connect):
            model = {"w": np.zeros((3, 4), np.float32), "b": np.zeros((), np.float32)}
            model = hearsay.packed(model) if packed else model
            address = [a.ctypes.data for a in model.values()]
            peer = connect(model)
            move(model, rank, peer)
            assert address == [a.ctypes.data for a in model.values()]
            assert peer.finish() and peer.exit_code == 0 and peer.rounds == 10, peer.verdict
            assert len(peer.history) == 10 and [f.round for f in peer.history] == sorted(f.round for f in peer.history)
            return float(model["w"][2, 3]), float(model["b"]), peer.figures().bytes_copied

        (w0, b0, copied), (w1, _, _) = together(2, train, rounds=10, compress="none", topology="complete")
        assert (copied == 0) == packed, copied
        assert abs(w0 - w1) < 2e-3 and abs(w0 - b0) < 2e-3 and abs(w0 - 1.5) < 5e-3, (w0, w1, b0)


def check_buffers():
    """Buffers in addition to a dict of arrays are mixed. The running variance is mixed as a variance."""
    def train(rank, connect):
        model, more = {"w": np.ones(4, np.float32)}, {"bn.running_var": np.full(2, 1.0 + rank * 0, np.float32)}
        peer = connect(model, buffers=more)
        while not peer.over:
            more["bn.running_var"][:] = 1 + rank
            peer.step()
        peer.finish()
        return more["bn.running_var"][0]

    a, b = together(2, train, rounds=5, compress="none", topology="complete")
    assert abs(a - b) < 5e-3 and abs(a - 1.5) < 0.01, (a, b)


def check_refusals():
    """An invalid argument is refused before the run begins, with a message that names the argument."""
    f = np.zeros(3, np.float32)
    raises(TypeError, "float64", lambda: alone({"w": np.zeros(3)}))
    raises(hearsay.UsageError, "contiguous", lambda: alone({"w": np.zeros((4, 4), np.float32)[:, 1]}))
    raises(TypeError, "expected a torch.nn.Module or a dict", lambda: alone([f]))
    raises(hearsay.UsageError, "topology", lambda: alone({"w": f}, topology="rign"))
    raises(hearsay.UsageError, "NAME=VALUE", lambda: alone({"w": f}, options="topology"))
    raises(hearsay.UsageError, "options: found the unknown name 'tensr', expected one of", lambda: alone({"w": f}, options="tensr=1"))
    raises(hearsay.UsageError, "min_peers: found '0'", lambda: alone({"w": f}, min_peers=0))
    raises(TypeError, "keyword argument rounds: found object", lambda: alone({"w": f}, rounds=object()))
    raises(hearsay.UsageError, "found no tensor", lambda: alone({"w": f}, skip=["w"]))
    raises(hearsay.NotFiniteError, "w", lambda: alone({"w": f * np.nan}))
    raises(hearsay.UsageError, "rounds", lambda: hearsay.Peer({"w": f}, key=hearsay.keygen(tempfile.mkdtemp() + "/key"), listen="127.0.0.1:0"))
    raises(hearsay.UsageError, "key: not given; hearsay.keygen(path)", lambda: hearsay.Peer({"w": f}, rounds=5))
    for name in [name for name, (_, needs_model) in listed().items() if needs_model and name != "model"]:
        for more in ({name: 1}, {"options": name.replace("_", "-") + "=1"}):
            raises(hearsay.UsageError, f"{name} is used only with model=", lambda: alone({"w": f}, **more))
    raises(hearsay.SimulationError, "lr is used only with model=", lambda: hearsay.simulate(1, lambda rank, connect: connect({"w": f}), rounds=2, lr=0.1))
    alone({"w": f}, lr=None).leave()
    raises(hearsay.UsageError, "shard: ", lambda: alone({"w": f}, shard="3/2"))
    raises(hearsay.UsageError, "checkpoint: found", lambda: alone({"w": f}, checkpoint="-1"))
    raises(hearsay.UsageError, "found the name 'nnnn", lambda: alone({"n" * 96: f}))
    raises(hearsay.UsageError, "tensor __metadata__: found a name that model files use", lambda: alone({"__metadata__": f}))
    raises(TypeError, "found 5 as the name of an array", lambda: alone({5: f}))
    for call in (lambda: alone({"w\0v": f}), lambda: alone({"w": f}, name="a\0b"), lambda: alone({"w": f}, options="name=a\0b"),
                 lambda: hearsay.Codec("sign\0x", 10)):
        raises(hearsay.UsageError, "found a NUL character in", call)
    both = np.zeros(12, np.float32)
    raises(hearsay.UsageError, "tensors a and b: found shared memory", lambda: alone({"b": both[5:], "z": f, "a": both[:6]}))
    alone({"b": both[6:], "a": both[:6]}).leave()


def listed():
    """Returns the options of the library: name -> (default, whether it is only for model=)."""
    found, one = {}, _lib.Option()
    while _lib.lib.hearsay_option_at(len(found), ctypes.byref(one)) == _lib.OK:
        assert one.values and one.about, one.name
        found[one.name.decode().replace("-", "_")] = (one.fallback.decode() if one.fallback else None, bool(one.needs_model))
    return found


def check_keywords():
    """The keyword arguments, the library's options, README.md and the keys of the run in flags.md agree.

    The error for an unknown option suggests the most similar one.
    """
    library = listed()
    assert len(library) > 50 and set(library) == set(_options.RunOptions.__annotations__), set(library) ^ set(_options.RunOptions.__annotations__)
    for function in (hearsay.Peer, hearsay.local, hearsay.simulate, hearsay.torchrun, hearsay.Peer.from_env, hearsay.launch.Connect.__call__,
                     hearsay.simulate.__globals__["_Connect"].__call__):
        parameters = inspect.signature(function).parameters
        missing = set(_options.PEER_NAMES) - set(parameters)
        assert not missing and not [one for one in parameters.values() if one.kind is one.VAR_KEYWORD or one.name[0] == "_"], (function, missing)
        assert all(parameters[name].default is None and parameters[name].annotation == kind
                   for name, kind in _options.RunOptions.__annotations__.items()), function
        assert "min_peers: Optional[int] = None" in pydoc.render_doc(function, renderer=pydoc.plaintext), function
    pages = os.path.join(os.path.dirname(__file__), "../../peer")
    with open(os.path.join(pages, "api/python/README.md"), encoding="utf-8") as f:
        text = f.read()
    rows = [[cell.strip("` ") for cell in line.split("|")] for line in text.splitlines() if re.match(r"\| `[a-z0-9_]+` \| ", line)]
    page = {row[1]: row[3] for row in rows}
    assert len(page) == len(rows), "a row is there twice"
    with open(os.path.join(pages, "docs/flags.md"), encoding="utf-8") as f:
        run = {name.replace("-", "_") for name in re.findall(r"^\| `--([a-z0-9-]+).*\*\(run\)\*", f.read(), re.M)}
    flags = set(re.findall("`([a-z_]+)`", re.search(r"^- Flags of `hearsay peer`:(.*?)(?=^- )", text, re.M | re.S).group(1))) - {"simulate"}
    assert len(page) + len(run) + len(flags) == len(set(page) | run | flags), "a keyword is described twice"
    assert set(page) | run | flags == set(_options.PEER_NAMES), (set(page) | run | flags) ^ set(_options.PEER_NAMES)
    assert flags - _options.SIMULATED == set(_options.PEER_NAMES) - _options.SIMULATED, flags - _options.SIMULATED
    wrong = {name: (page[name], default) for name, (default, _) in library.items() if name in page and page[name] != (default or "")}
    assert not wrong, f"(the page, the library): {wrong}"

    f = np.zeros(3, np.float32)
    for call, where in ((lambda **more: alone({"w": f}, **more), "hearsay.Peer"), (lambda **more: hearsay.local(2, no_peer, **more), "hearsay.local"),
                        (lambda **more: hearsay.simulate(2, no_peer, **more), "hearsay.simulate"),
                        (lambda **more: hearsay.torchrun({"w": f}, **more), "hearsay.torchrun")):
        for name, near in (("tolopogy", "topology"), ("minpeers", "min_peers"), ("localSteps", "local_steps"), ("round", "rounds"),
                           ("evalutate", "evaluate"), ("final-drit", "final_drift")):
            raises(TypeError, f"{where}: found the unknown keyword argument {name!r}, did you mean {near!r}?", lambda: call(**{name: 1}))
        raises(TypeError, "unknown keyword argument 'xyzzy', expected one of a", lambda: call(xyzzy=1))
    raises(TypeError, "'key', which a simulated peer does not take", lambda: hearsay.simulate(2, no_peer, key="k"))
    alone({"w": f}, **{"min-peers": 1, "topology": None}).leave()
    for more in (dict(evaluate=3), dict(on_note="x"), dict(keep=[1]), dict(options={"a": 1}), dict(skip=3), dict(skip=[1])):
        (name, value), = more.items()
        raises(TypeError, f"hearsay.Peer: {name}: found {value!r}, expected ", lambda: alone({"w": f}, **more))

    # Messages of the library: none of them names a command-line flag.
    notes = []
    for more in (dict(rounds=0), dict(min_peers=-1), dict(topology="star", byzantine=3), dict(mixer="average", policy="async"), dict(bootstrap="a"),
                 dict(listen="x"), dict(key="/nowhere"), dict(overlap="layer"), dict(final_drift=1e-9), dict(mixer="gossip", topology="ring"),
                 dict(metrics="x"), dict(bandwidth="?"), dict(evaluate_every=-1), dict(initial="maybe"), dict(gamma="x"), dict(local_steps=0.5)):
        error = raises(hearsay.HearsayError, "", lambda: alone({"w": f}, on_note=lambda level, text: notes.append(text), **more))
        assert "--" not in str(error) and any(name in str(error) for name in more), (more, error)
    out = os.path.join(tempfile.mkdtemp(), "out")
    with alone({"w": f}, out=out, checkpoint=0.01, rounds=10**6) as peer:
        while not [name for name in os.listdir(out) if "checkpoint" in name]:
            peer.step()
        peer.leave()
    error = raises(hearsay.UsageError, "another directory as out begins again", lambda: alone({"w": f}, out=out, rounds=7))
    assert not [text for text in [*notes, str(error)] if "--" in text], (notes, error)


def check_nan():
    """A model with a NaN is not sent. step() raises an error, and the program can correct the model and continue."""
    model = hearsay.packed({"w": np.zeros(3)})
    with alone(model) as peer:
        model["w"][1] = np.nan
        raises(hearsay.NotFiniteError, "tensor w", peer.step)
        model["w"][1] = 1
        while peer.step():
            pass
    assert peer.exit_code == 0 and model["w"][1] == 1, peer.verdict


def check_losses():
    """A loss of None means unknown, and NaN or infinity means divergence. Sample counts out of range are refused."""
    nan, inf = float("nan"), float("inf")
    for loss, n, code in ((None, None, 0), (None, 4, 0), (nan, 0, 0), (1, 4, 0), (np.float32(1), None, 0), (nan, None, 3), (nan, 4, 3), (inf, 4, 3),
                          (-inf, None, 3), (np.float64(nan), 1, 3)):
        with alone({"w": np.ones(3, np.float32)}, rounds=12, on_note=None) as peer:
            while peer.step(loss, n):
                pass
        assert peer.exit_code == code and ("diverged" in peer.verdict) == (code == 3), (loss, n, peer.verdict)
    with alone({"w": np.ones(3, np.float32)}, local_steps=2) as peer:
        for n in (2**70, 2**53 + 1, -1, -(2**70)):
            raises(ValueError, "samples: found", lambda: peer.step(1, n))
        for n in (1.5, "4", True, nan):
            raises(TypeError, "samples: found", lambda: peer.step(1, n))
        for loss in ("1.0x", [1, 2], 1j, np.ones(2)):
            raises(TypeError, "loss: found", lambda: peer.step(loss, 1))
        raises(ValueError, "timeout: found nan", lambda: peer.wait(nan))
        raises(TypeError, "timeout: found 'x'", lambda: peer.wait("x"))
        for n in (2**32, 2**70, -1):
            raises(ValueError, "n: found", lambda: peer.samples(n))
        assert peer.step(1.0, np.int64(3)) and peer.round == 0
        assert peer.step(1.0, 2**53) and peer.round == 1, "a step that was refused was counted"
    raises(ValueError, "evaluate: samples: found -1", lambda: _drained(alone({"w": np.ones(3, np.float32)}, evaluate=lambda m: (1.0, 0.5, -1), evaluate_every=1)))


def _drained(peer):
    while peer.step():
        pass


def check_end():
    """After the end of the run step() does nothing, properties have their last values, and the model stays."""
    model = hearsay.packed({"w": np.ones(3)})
    peer = alone(model)
    while peer.step():
        pass
    assert not peer.step() and peer.over and peer.round == 5, peer.round
    peer.finish()
    assert not peer.step() and not peer.step(1.0) and peer.finish() == peer.verdict != ""
    assert peer.round == 5 and peer.figures().phase and peer.exit_code == 0 and "closed" in repr(peer)
    assert peer.figures().codec and peer.bytes_sent >= 0 and peer.run
    del peer
    gc.collect()
    assert model["w"].tolist() == [1, 1, 1]
    with alone(model) as peer:  # The with-block is left before the run is over.
        peer.step()
        peer.leave()
        assert "stopped" in peer.verdict or "left" in peer.verdict, peer.verdict
    peer = alone(model)
    del peer  # The peer is garbage collected, and so leaves the run.
    gc.collect()


def check_again():
    """After fifty peers in sequence, a process has as many threads and open files as after one."""
    def count():
        return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))

    for i in range(50):
        model = {"w": np.ones(1000, np.float32), "b": np.zeros(3, np.float16)}
        with alone(model, rounds=2, compress="topk:0.1") as peer:
            while peer.step():
                pass
        assert peer.exit_code == 0, peer
        before = before if i > 0 else count()
    assert count() == before, (count(), before)


def check_shard():
    """Shards are disjoint and cover the data set; batches come from the shard, in another order in each epoch."""
    def train(rank, connect):
        ids = np.arange(101)
        with connect({"w": np.ones(2, np.float32)}) as peer:
            mine = peer.samples(101)
            epochs, now = [], []
            for batch in peer.shard(ids, batch_size=7):
                now.extend(batch.tolist())
                if len(now) == len(mine):
                    epochs.append(now)
                    now = []
                peer.step()
            raises(hearsay.UsageError, "closed", lambda: peer.leave() or peer.samples(3))
        for one in epochs:
            assert sorted(one) == mine.tolist(), one
        assert len(epochs) > 2 and epochs[0] != epochs[1]
        return mine.tolist(), epochs[0]

    found = [together(2, train, rounds=40, compress="none") for _ in range(2)]
    assert sorted(found[0][0][0] + found[0][1][0]) == list(range(101))
    assert found[0] == found[1], "the same run has another order"


def check_step_reminder():
    """A loop over shard() that does not call step() gets one warning; a loop that calls step() now and then gets none."""
    def notes_of(n_batches, every):
        notes = []
        with alone({"w": np.ones(2, np.float32)}, rounds=1000, on_note=lambda level, text: notes.append((level, text))) as peer:
            for i, _batch in enumerate(peer.shard(np.arange(20), batch_size=3)):
                if i == n_batches:
                    break
                if i % every == every - 1:
                    peer.step()
        return [text for level, text in notes if level == 1 and "peer.step()" in text]

    with unittest.mock.patch("hearsay.data.WITHOUT_STEP_S", 0):
        assert notes_of(450, 50) == []
        assert len(notes_of(450, 1000)) == 1
    assert notes_of(450, 1000) == [], "warned before 5 s"


def check_notes():
    """Messages go to on_note, or to a logger; an exception of on_note is raised by the call."""
    def lonely(**more):
        return alone({"w": np.zeros(2, np.float32)}, min_peers=2, bootstrap="127.0.0.1:1", **more)

    def bad(level, text):
        heard.append((level, text))
        raise KeyError("of on_note")

    heard, logged = [], []
    raises(KeyError, "of on_note", lambda: lonely(on_note=bad))
    assert heard and all(level in (0, 1, 2) and text for level, text in heard), heard

    class Hear(logging.Handler):
        def emit(self, record):
            logged.append((record.levelno, record.getMessage()))
            raise KeyboardInterrupt

    logging.getLogger("hearsay").addHandler(Hear())
    raises(KeyboardInterrupt, "", lonely)
    assert logged[0][0] in (logging.INFO, logging.WARNING) and logged[0][1], logged


ONE_OF_THREE = """
import sys, time, hearsay, numpy as np
name, listen, place, directory = sys.argv[1:]
more = dict(bootstrap=place) if name != "a" else {}
model = hearsay.packed({"w": np.zeros(3)})
with hearsay.Peer(model, key=directory + "/key", name=name, listen=listen, min_peers=3, rounds=10**9, out=directory + "/" + name, **more) as peer:
    while peer.step(0.5, 1):
        time.sleep(0.01)
"""


def check_members():
    """A program that does not configure logging prints the death and the return of a member, and the loss of the quorum."""
    directory = tempfile.mkdtemp()
    hearsay.keygen(os.path.join(directory, "key"))
    running = {}

    def start(name, listen="127.0.0.1:0", fds=()):
        with open(os.path.join(directory, name + ".err"), "w", encoding="utf-8") as err:
            running[name] = subprocess.Popen([sys.executable, "-c", ONE_OF_THREE, name, listen, place, directory], stderr=err, pass_fds=fds)

    def printed(pattern):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with open(os.path.join(directory, "a.err"), encoding="utf-8") as f:
                lines = f.read().splitlines()
            if any(re.fullmatch(pattern, line) for line in lines):
                return
            time.sleep(0.1)
        raise AssertionError(f"{pattern} is not in {lines}")

    def kill(name):
        running[name].kill()
        running[name].wait()

    try:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            place = f"127.0.0.1:{listener.getsockname()[1]}"
            start("a", f"fd:{listener.fileno()}", (listener.fileno(),))
        start("b")
        start("c")
        while not os.path.exists(os.path.join(directory, "b", "metrics.jsonl")):
            time.sleep(0.1)
        kill("b")
        printed(r"hearsay: b is dead, silent for \d+ s: the topology now has 2 members")
        start("b")
        printed(r"hearsay: b is back after \d+ s: the topology now has 3 members")
        kill("b")
        kill("c")
        printed(r"hearsay: warning: below the quorum: 1 of 3 members are reachable, 2 are needed; .*")
    finally:
        for name in running:
            kill(name)


def check_quiet():
    """Without configured logging, information is printed by a Peer and by rank 0 of a job, but not in local() and simulate()."""
    def printed(call, **env):
        text = f"import logging, hearsay.peer as peer\n{call}"
        return subprocess.run([sys.executable, "-c", text], env={**os.environ, **env}, capture_output=True, text=True, check=True).stderr

    assert printed("peer.log_note(0, 'x')") == "hearsay: x\n"
    assert printed("peer.log_note(0, 'x')", RANK="0") == "hearsay: x\n"
    assert printed("peer.log_note(1, 'hearsay: x')", RANK="1") == "hearsay: warning: x\n"
    for call in ("peer.log_warning(0, 'x')", "logging.basicConfig(); peer.log_note(0, 'x')", "peer.logger.setLevel(30); peer.log_note(0, 'x')",
                 "logging.disable(); peer.log_note(2, 'x')"):
        assert printed(call) == "", call
    assert printed("peer.log_note(0, 'x')", RANK="1") == ""
    assert printed("peer.log_warning(2, 'x')") == "hearsay: error: x\n"
    assert printed("logging.basicConfig(level=20); peer.log_note(0, 'x')") == "INFO:hearsay:x\n"


def check_waiting():
    """A peer that waits for others reacts to Ctrl-C and to a time limit at once, and leaves nothing behind."""
    def wait(**more):
        return alone({"w": np.zeros(2, np.float32)}, min_peers=2, **more)

    raises(TimeoutError, "after 0.5 s the first round had not begun: 1 of 2 peers (min_peers) are here", lambda: wait(timeout=0.5))
    raises(TimeoutError, "no other peer has answered at 127.0.0.1:9 (bootstrap)",
           lambda: alone({"w": np.zeros(2, np.float32)}, timeout=0.5, min_peers=None, rounds=None, bootstrap="127.0.0.1:9"))
    threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    raises(KeyboardInterrupt, "", wait)
    threads = [name for name in os.listdir("/proc/self/task")]
    gc.collect()
    assert len(threads) <= 2 + threading.active_count(), threads

    # Python may raise KeyboardInterrupt at the start of a callback, where only sys.unraisablehook gets it.
    def begins(self, _self, _level, _text):
        raise KeyboardInterrupt

    before, hearsay.peer._Callbacks._note = hearsay.peer._Callbacks._note, begins
    try:
        raises(KeyboardInterrupt, "", lambda: wait(timeout=20))
    finally:
        hearsay.peer._Callbacks._note = before
    assert sys.unraisablehook is sys.__unraisablehook__


def check_evaluate():
    """The result of the callback evaluate() is in the peer's figures.

    If evaluate() raises an exception, the program gets it with its traceback, and the run continues.
    """
    def good(model):
        return {"loss": 0.5, "accuracy": 0.25}

    with alone({"w": np.zeros(2, np.float32)}, evaluate=good, evaluate_every=1) as peer:
        while peer.step(loss=1.5, samples=4):
            pass
    assert peer.accuracy == 0.25 and peer.figures().test_loss == 0.5, peer.figures()
    assert peer.history[0].loss == 1.5, peer.history[0]

    failed = []

    def bad(model):
        if not failed:
            failed.append(1)
            raise ZeroDivisionError("of evaluate")
        return 0.25

    peer = alone({"w": np.zeros(2, np.float32)}, evaluate=bad, evaluate_every=1)
    error = raises(ZeroDivisionError, "of evaluate", lambda: [peer.step() for _ in range(5)])
    names = []
    trace = error.__traceback__
    while trace is not None:
        names.append(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    assert "bad" in names, names
    while peer.step():
        pass
    assert peer.finish() and peer.exit_code == 0 and peer.figures().test_loss == 0.25, peer.figures()

    for value, what in (("good", "loss"), ("0.5", "loss"), (None, "loss"), ((0.5, "x"), "accuracy"), ({"accuracy": [1]}, "accuracy"),
                        (np.ones(2), "loss"), ([0.1] * 4, "4 values"), ({"los": 1}, "'los'"), ((1, 0.5, "n"), "samples: found 'n'")):
        with alone({"w": np.zeros(2, np.float32)}, evaluate=lambda m: value, evaluate_every=1) as peer:
            assert what in str(raises(TypeError, "evaluate: ", lambda: [peer.step() for _ in range(5)])), (value, what)
            peer.leave()

    try:
        with alone({"w": np.zeros(2, np.float32)}, evaluate=lambda m: 1 / 0, evaluate_every=1) as peer:
            while peer.step():
                pass
    except ZeroDivisionError:
        pass
    assert peer.over and peer.exit_code == 0 and peer.verdict, peer.verdict


def check_closing():
    """leave(), close() and step() are refused within a callback, and a peer that leaves later leaves nothing behind."""
    def count():
        return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))

    def close(name):
        held = []
        peer = alone({"w": np.zeros(2, np.float32)}, evaluate=lambda model: getattr(held[0], name)(), evaluate_every=1)
        held.append(peer)
        raises(hearsay.UsageError, "callback", lambda: [peer.step() for _ in range(5)])
        assert not peer.over and peer.port > 0, peer
        peer.evaluate = None
        getattr(peer, "leave" if name in ("step", "wait") else name)()
        assert peer.over and "closed" in repr(peer), peer

    close("step")
    before = count()
    for name in ("leave", "close", "finish", "wait"):
        close(name)
        assert count() == before, (name, count(), before)


def check_fork():
    """A forked child process can neither use the peer of its parent nor disturb it."""
    model = hearsay.packed({"w": np.zeros(2)})
    with alone(model, rounds=20) as peer:
        peer.step()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                try:
                    peer.step()
                except hearsay.ForkedError:
                    code = 0
                peer.close()
                del peer
                gc.collect()
            finally:
                os._exit(code)
        assert os.waitpid(pid, 0)[1] == 0, "the child's step() was no ForkedError"
        while peer.step():
            pass
    assert peer.exit_code == 0 and peer.round == 20, peer.verdict


def failing(rank, connect):
    peer = connect({"w": np.zeros(2, np.float32)})
    if rank == 1:
        raise LookupError("of rank 1")
    while peer.step():
        pass


def forking(rank, connect):
    """Training function of a rank that forks children, which end in each possible way. The end of a child must not be
    taken for the end of the rank."""
    with connect({"w": np.zeros(2, np.float32)}) as peer:
        codes = []
        for way in range(4):
            pid = os.fork()
            if pid == 0:
                if way < 2:
                    sys.exit(7 * way)
                if way == 2:
                    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
                    raise LookupError("of a child")
                return "a child's"
            codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        while peer.step():
            pass
    assert codes == [0, 7, 1, 0], codes
    return rank


def dying(rank, connect):
    if rank == 0:
        os._exit(7)
    connect({"w": np.zeros(2, np.float32)})


def counting(rank, connect, start):
    model = {"w": np.full(2, start, np.float32)}
    with connect(model) as peer:
        while peer.step():
            pass


def until(marks, n):
    while len(os.listdir(marks)) < n:
        time.sleep(0.02)


def marking(rank, connect, marks, deaf=False):
    with connect({"w": np.zeros(2, np.float32)}) as peer:
        while peer.step():
            if peer.round > 3:
                open(os.path.join(marks, str(rank)), "w").close()
                if deaf:
                    signal.signal(signal.SIGTERM, signal.SIG_IGN)
                    while True:
                        signal.pause()


def interrupted(deaf, *kills):
    """Interrupts local() with three ranks by the signals `kills`. Returns the directories of the ranks, and the time
    until local() ended."""
    directory, marks = tempfile.mkdtemp(), tempfile.mkdtemp()

    def press():
        until(marks, 3)
        pressed.append(time.monotonic())
        for kill in kills:
            kill()

    pressed = []
    threading.Thread(target=press, daemon=True).start()
    raises(KeyboardInterrupt, "", lambda: hearsay.local(3, marking, marks, deaf, rounds=10**9, out=directory, checkpoint=1))
    assert not multiprocessing.active_children()
    return directory, time.monotonic() - pressed[0]


def check_interrupted():
    """Ctrl-C of local() makes its peers leave with a summary and a checkpoint. A peer that does not end is killed."""
    def one():
        os.kill(os.getpid(), signal.SIGINT)

    def group():
        os.killpg(os.getpgid(0), signal.SIGINT)

    if os.getpgid(0) != os.getpid():
        os.setpgid(0, 0)
    for kill in (one, group):
        directory, _ = interrupted(False, kill)
        for rank in range(3):
            with open(os.path.join(directory, f"peer-{rank}", "summary.json"), encoding="utf-8") as f:
                assert json.load(f)["rounds_done"] > 3
    _, took = interrupted(True, one, lambda: time.sleep(0.5), one)
    assert took < LEAVE_S, f"a second Ctrl-C took {took} s"
    interrupted(True, one)


def check_orphaned():
    """If the process that called local() is killed, its peers leave with a summary, and no process remains."""
    if "ORPHANED" in os.environ:
        marks, out = os.environ["ORPHANED"].split(":")
        hearsay.local(3, marking, marks, False, rounds=10**9, out=out, checkpoint=1)
    directory, marks = tempfile.mkdtemp(), tempfile.mkdtemp()
    parent = subprocess.Popen([sys.executable, os.path.abspath(__file__), "orphaned"],
                              env={**os.environ, "ORPHANED": f"{marks}:{directory}"})
    until(marks, 3)
    parent.kill()
    parent.wait()
    for rank in range(3):
        while not os.path.exists(os.path.join(directory, f"peer-{rank}", "summary.json")):
            time.sleep(0.02)


FROM_STDIN = """
import os, sys, hearsay, numpy as np
def train(rank, connect):
    model = hearsay.packed({"w": np.zeros(3)})
    with connect(model) as peer:
        if "%s" == "fails" and rank == 1:
            raise LookupError("of rank 1")
        while peer.step(0.5, 1):
            model["w"] += 0.1 * (rank + 1)
            if rank == 0 and "%s" == "slow" and peer.round < 20:
                __import__("time").sleep(0.01)
    return peer.exit_code, peer.round
hearsay.progress.FIRST_S, hearsay.progress.INTERVAL_S = 0, 0.01
print(list(hearsay.local(3, train, rounds=20, topology="ring", compress="none", **eval("%s"))))
"""


def script(text, *how):
    return subprocess.run([sys.executable, *how], input=text, capture_output=True, text=True, timeout=PATIENCE, check=False)


def check_stdin():
    """local() works from stdin, -c, a prompt and -i; only rank 0 prints progress; a process that cannot start reports why."""
    good = FROM_STDIN % ("", "slow", "dict(progress=True)")
    for found in (script(good, "-"), script("", "-c", good)):
        assert found.stdout == "[(0, 20), (0, 20), (0, 20)]\n", found
        lines = found.stderr.splitlines()
        assert lines and all(line.startswith(("hearsay rank-0: ", "hearsay: relative drift ")) for line in lines), found.stderr
        assert any(re.fullmatch(r"hearsay rank-0: round \d+ of 20, loss 0.5, (relative drift \S+, )?3 peers, sends \S+ k?M?B/s"
                                r"(, waits for neighbours)?", line) for line in lines), found.stderr
        assert "consensus of 3 of 3" in lines[-2] and lines[-1].endswith("exact, of 3 models"), found.stderr
    prompt = script(good.replace("    return", "    return").replace("\nhearsay.progress", "\n\nhearsay.progress"), "-i")
    assert "[(0, 20), (0, 20), (0, 20)]" in prompt.stdout, prompt
    found = script(FROM_STDIN % ("fails", "", "dict()"), "-")
    assert "LookupError: of rank 1" in found.stderr and found.returncode == 1 and not found.stdout, found
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "unguarded.py")
        with open(path, "w", encoding="utf-8") as f:
            f.write(FROM_STDIN % ("", "", "dict()"))
        found = script("", path)
        last = found.stderr.splitlines()[-1]
        assert found.returncode == 1 and "before it called `train`" in last and '__name__ == "__main__"' in last, found.stderr
    found = script(FROM_STDIN % ("", "", "dict(start_method='spawn')"), "-")
    assert "before it called `train`" in found.stderr and found.returncode == 1, found


def check_progress():
    """Progress lines are printed every few seconds and say what the peer waits for.

    With progress=False there are no progress lines.
    An error while progress is written has no effect on the training.
    """
    f = {"w": np.zeros(3, np.float32)}

    def lines(call, stream=None):
        out = io.StringIO() if stream is None else stream
        with contextlib.redirect_stderr(out):
            call()
        return out.getvalue().splitlines() if stream is None else []

    def train(**more):
        with alone(f, **more) as peer:
            while peer.step(0.25, 4):
                time.sleep(0.01)

    progress.FIRST_S, progress.INTERVAL_S = 0, 0.25
    said = lines(lambda: raises(TimeoutError, "", lambda: alone(f, min_peers=3, timeout=1.1, progress=True, on_note=None, name="a")))
    assert 2 <= len(said) <= 5 and set(said) == {"hearsay a: waiting for 2 of 3 peers"}, said
    begun = time.monotonic()
    said = lines(lambda: train(rounds=100, progress=True))
    took = time.monotonic() - begun
    assert 3 <= len(said) <= took / 0.25 + 2 and "of 100, loss 0.25, " in said[-2] and "1 peer, sends " in said[-2], (said, took)
    assert said[-1].startswith("hearsay: round 100 of 100: consensus of 1 of 1"), said
    assert lines(lambda: train(rounds=20)) == [] == lines(lambda: train(rounds=20, progress=False))
    assert lines(lambda: hearsay.simulate(2, counting, 1.0, rounds=3)) == []
    said = lines(lambda: hearsay.simulate(3, counting, 1.0, rounds=3, progress=True))
    assert said and all("consensus of 3 of 3" in one or " of 3" in one for one in said) and len(said) < 9, said
    # By default, progress is printed if stderr is a terminal, and only by rank 0.
    for rank, shown in (("0", True), ("1", False)):
        try:
            ours, theirs = os.openpty()
        except OSError:  # No terminal can be made, because a bare root file system has no /dev/pts.
            break
        with os.fdopen(theirs, "w") as terminal, unittest.mock.patch.dict(os.environ, {"RANK": rank}):
            lines(lambda: train(rounds=3), terminal)
            os.set_blocking(ours, False)
            text = ""
            with contextlib.suppress(BlockingIOError):
                while True:
                    text += os.read(ours, 4096).decode()
            assert ("hearsay: round 3 of 3: " in text) == shown, (rank, text)
        os.close(ours)
    closed = io.StringIO()
    closed.close()
    lines(lambda: train(rounds=20, progress=True), closed)
    lines(lambda: train(rounds=20, progress=True), None)
    with contextlib.redirect_stderr(None):
        train(rounds=3, progress=True)
        train(rounds=3)


def drifting(rank, connect, late):
    model = {"w": np.full(5, 3.0, np.float32), "b": np.zeros((2, 2), np.float16)}
    with connect(model, buffers={"mean": np.ones(2, np.float32)}) as peer:
        move(model, rank, peer)
    # If `late` is not 0, the model changes after the last round. local() must return the consensus distance after this change.
    model["w"] += late * rank
    return {name: a.copy() for name, a in model.items()}


def check_exact_drift():
    """local() and simulate() return the exact consensus distance of the ranks' final models."""
    for run in (hearsay.local, hearsay.simulate):
        for late in (0, 0.5):
            found = run(3, drifting, late, rounds=5, topology="ring", compress="topk:0.5")
            x = np.stack([np.concatenate([one["w"], one["b"].reshape(-1)]).astype(np.float64) for one in found])
            drift = np.sqrt(np.square(x - x.mean(0)).sum(1).mean())
            assert found.models == 3 and abs(found.drift - drift) <= 1e-12 * drift, (found.drift, drift)
            assert abs(found.relative_drift - drift / np.linalg.norm(x.mean(0))) < 1e-12 and (found.relative_drift > 0.01) == (late > 0)
    found = hearsay.local(3, leaving_out, rounds=5, min_peers=2)
    assert found.models == 2 and found.drift == 0 and isinstance(found, list) and found[1] is None, found
    assert hearsay.local(2, no_peer).models == 0 and np.isnan(hearsay.local(1, no_peer).drift)


def drawing(rank, connect, initial):
    drawn = np.random.default_rng(rank).standard_normal(4).astype(np.float32)
    model = {"w": drawn.copy()}
    notes = []
    with connect(model, initial=rank in initial or None, on_note=lambda level, text: notes.append((level, text))) as peer:
        given = model["w"].copy()
        move(model, rank, peer)
    return drawn.tolist(), given.tolist(), notes


def check_initial():
    """The run begins with the model of the peer with initial=True.

    A warning is given if several peers have initial=True, or if the run has already begun.
    """
    def all_name_all(n, train, initial, **options):
        return together(n, lambda rank, connect: train(rank, connect, initial), **options)

    for run in (hearsay.local, hearsay.simulate, all_name_all):
        for initial in ((1,),) if run is hearsay.local else ((0,), (1,), (2,)):
            found = run(3, drawing, initial, rounds=3, topology="ring", compress="none")
            assert all(given == found[initial[0]][0] for _, given, _ in found), (run, initial, found)
            assert not [text for *_, notes in found for level, text in notes if level > 0 and "initial" in text], found
    found = hearsay.local(3, drawing, (1, 2), rounds=3, topology="ring", compress="none")
    chosen = [rank for rank in (1, 2) if found[rank][0] == found[0][1]]
    assert len(chosen) == 1 and all(given == found[0][1] for _, given, _ in found), found
    warned = [[text for level, text in notes if level == 1 and "initial: the run starts with another peer's model" in text] for *_, notes in found]
    assert [bool(one) for one in warned] == [False, chosen[0] != 1, chosen[0] != 2], (chosen, warned)
    f = {"w": np.zeros(3, np.float32)}
    raises(hearsay.UsageError, "initial: this peer takes the run from other peers", lambda: alone(f, initial=True, bootstrap="127.0.0.1:1", rounds=None))
    raises(hearsay.UsageError, "initial: cannot be combined with model", lambda: alone(f, initial=True, model="logreg", data="mnist"))


def check_late_initial():
    """initial=True has no effect for a peer that joins a run, and causes a warning."""
    directory, notes = tempfile.mkdtemp(), []
    key = hearsay.keygen(os.path.join(directory, "key"))
    begun = threading.Event()
    model, late = {"w": np.ones(4, np.float32)}, {"w": np.zeros(4, np.float32)}

    def first():
        with hearsay.Peer(model, key=key, listen="127.0.0.1:0", rounds=300, name="a", min_peers=1) as peer:
            places.append(f"127.0.0.1:{peer.port}")
            begun.set()
            while peer.step():
                if peer.figures().n_live < 2:
                    time.sleep(0.01)
                    # This peer does no more local steps, so its run does not end before the other
                    # peer joins.
                    peer._steps_done = -1 if peer.round > 3 else 0

    places = []
    thread = threading.Thread(target=first)
    thread.start()
    begun.wait()
    with hearsay.Peer(late, key=key, listen="127.0.0.1:0", rounds=300, name="b", min_peers=1, initial=True, bootstrap=places[0],
                      on_note=lambda level, text: notes.append((level, text))) as peer:
        assert late["w"].tolist() == [1, 1, 1, 1], late
        while peer.step():
            pass
    thread.join()
    assert [text for level, text in notes if level == 1 and text.startswith("initial: the run starts with another peer's model")], notes


def leaving_out(rank, connect):
    if rank != 1:
        connect({"w": np.zeros(2, np.float32)})


def check_absent():
    """If a rank returns without connect(), the error names it, and no rank waits for it.

    If `min_peers` is so small that the run starts without this rank, there is no error.
    """
    error = raises(hearsay.LocalError, "returned without connect()", lambda: hearsay.local(3, leaving_out, rounds=5))
    assert error.rank == 1 and "3 peers" in str(error), error
    found = hearsay.local(3, leaving_out, rounds=5, min_peers=2)
    assert found[1] is None and isinstance(found[2], hearsay.Figures), found
    assert hearsay.local(2, no_peer) == [0, 1]


def no_peer(rank, connect):
    return rank


def check_local():
    """local(): results are by rank; a failed rank is reported with its traceback, and the other ranks end."""
    found = hearsay.local(2, counting, 3.0, rounds=5)
    assert [f.round for f in found] == [5, 5] and isinstance(found[0], hearsay.Figures), found
    error = raises(hearsay.LocalError, "of rank 1", lambda: hearsay.local(2, failing, rounds=1000000))
    assert error.rank == 1 and "in failing" in str(error), error
    raises(hearsay.LocalError, "code 7", lambda: hearsay.local(2, dying, rounds=5))


def check_forking():
    """Children that a rank forks may end in any way: the rank, local() and simulate() continue."""
    assert hearsay.local(2, forking, rounds=5) == [0, 1]
    assert hearsay.local(2, forking, rounds=5, start_method="fork") == [0, 1]
    assert hearsay.simulate(2, forking, rounds=5) == [0, 1]


def check_metrics():
    """During a run there is a live page, files under `out`, and one port per peer."""
    directory, notes = tempfile.mkdtemp(), []
    out = os.path.join(directory, "out")
    peer = alone({"w": np.zeros(4, np.float32)}, out=out, metrics=0, evaluate=lambda model: (1.0, 0.5, 10), on_note=lambda level, text: notes.append(text))
    peer.step()
    page = [text for text in notes if "a live page is at http://" in text][0].split()[5].rstrip(",")
    assert page.startswith("http://127.0.0.1:"), page
    with urllib.request.urlopen(page + "metrics") as answer:
        assert "hearsay_phase{" in answer.read().decode()
    with urllib.request.urlopen(page) as answer:
        assert b"<title>hearsay</title>" in answer.read()
    at = page[7:-1]
    raises(hearsay.UsageError, f"metrics: cannot listen on {at}: Address already in use", lambda: alone({"w": np.zeros(4, np.float32)}, metrics=at))
    peer.finish()
    raises(OSError, "", lambda: urllib.request.urlopen(page))
    with open(os.path.join(out, "metrics.jsonl"), encoding="utf-8") as f:
        lines = [json.loads(line) for line in f]
    assert lines[0]["start"] and lines[0]["from_round"] == 0 and lines[-1]["round"] >= 1, lines
    both = os.path.join(directory, "both")
    hearsay.local(2, counting, 3.0, rounds=5, out=both)
    assert sorted(os.listdir(both)) == ["peer-0", "peer-1"] and os.path.exists(os.path.join(both, "peer-1", "metrics.jsonl"))
    assert [_own(i, {"metrics": "h:9100"})["metrics"] for i in (0, 2)] == ["h:9100", "h:9102"] and _own(1, {"metrics": 0}) == {"metrics": "0"}


def check_env():
    """Environment variables of launchers become options."""
    found = hearsay.from_env({"RANK": "2", "WORLD_SIZE": "4", "MASTER_ADDR": "h", "MASTER_PORT": "29500"})
    assert found == {"listen": "0.0.0.0:0", "bootstrap": "h:29501", "name": "rank-2", "min_peers": 4, "shard": "3/4"}, found
    found = hearsay.from_env({"SLURM_PROCID": "0", "SLURM_NTASKS": "2", "SLURM_JOB_NODELIST": "n[03-07,9],m1", "SLURM_JOB_ID": "5"})
    assert "bootstrap" not in found and found["listen"] == "0.0.0.0:20005", found
    found = hearsay.from_env({"SLURM_PROCID": "1", "SLURM_NTASKS": "2", "SLURM_JOB_NODELIST": "n[03-07,9],m1", "SLURM_JOB_ID": "5"})
    assert found["bootstrap"] == "n03:20005" and found["listen"] == "0.0.0.0:0", found
    raises(hearsay.UsageError, "expected to be started by", lambda: hearsay.from_env({}))
    raises(hearsay.UsageError, "MASTER_ADDR", lambda: hearsay.from_env({"RANK": "0", "WORLD_SIZE": "1"}))


def main():
    checks = {name[6:]: f for name, f in globals().items() if name.startswith("check_")}
    if sys.argv[1:] == ["--list"]:
        for name, f in checks.items():
            print(name, f.__doc__.splitlines()[0])
        return
    checks[sys.argv[1]]()


if __name__ == "__main__":
    main()
