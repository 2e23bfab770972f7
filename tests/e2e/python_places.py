#!/usr/bin/env python3
"""Tests hearsay.Peer in a trainer and in a notebook: python_places.py CHECK. Exits with 0, with an error message, or with 77 if
a package is missing.

    trainer   a trainer that owns the loop, like Lightning's, and calls back
    notebook  a kernel of Jupyter: cells that train, that start processes, and that are interrupted
"""
import os
import queue
import signal
import sys
import tempfile

sys.dont_write_bytecode = True
PATIENCE = 120


# ---- a small training framework that calls back ----


class Trainer:
    """A trainer with its own loop, without any code for peers. The trainer calls callbacks, which may stop the loop."""

    def __init__(self, max_epochs, callbacks):
        self.max_epochs, self.callbacks, self.should_stop, self.n_steps = max_epochs, callbacks, False, 0

    def _tell(self, name, *args):
        for one in self.callbacks:
            getattr(one, name, lambda *_: None)(self, *args)

    def fit(self, step, batches):
        self._tell("on_train_start", batches)
        try:
            for _ in range(self.max_epochs):
                for batch in batches:
                    loss = step(batch)
                    self.n_steps += 1
                    self._tell("on_train_batch_end", loss, batch)
                    if self.should_stop:
                        self._tell("on_train_end")
                        return
        except BaseException as error:
            self._tell("on_exception", error)
            raise
        self._tell("on_train_end")


class PeerCallback:
    """A callback for the trainer that runs a Peer, copied from peer/api/python/README.md."""

    def __init__(self, connect, model):
        self.connect, self.model, self.peer = connect, model, None

    def on_train_start(self, trainer, batches):
        self.peer = self.connect(self.model)

    def on_train_batch_end(self, trainer, loss, batch):
        if not self.peer.step(loss, len(batch)):
            trainer.should_stop = True

    def on_train_end(self, trainer):
        self.peer.finish()

    def on_exception(self, trainer, error):
        self.peer.leave()


def fit(rank, connect, rounds_of_data, fails=False):
    import hearsay
    import numpy as np

    model = hearsay.packed({"w": np.zeros(3)})
    callback = PeerCallback(connect, model)
    batches = [np.full(4, rank + 1.0)] * rounds_of_data

    def step(batch):
        if fails and callback.peer.round == 2:
            raise RuntimeError("the step failed")
        model["w"] += 0.2 * (batch.mean() - model["w"])
        return float(np.square(model["w"] - batch.mean()).mean())

    trainer = Trainer(1000, [callback])
    try:
        trainer.fit(step, batches)
    except RuntimeError:
        pass
    return callback.peer, trainer.n_steps, model["w"].copy()


def check_trainer():
    """callbacks of a trainer make the peer, call step(), stop the loop at the end of the run, and leave after an error"""
    import hearsay
    import numpy as np

    for peer, n_steps, w in hearsay.simulate(3, fit, 7, rounds=20, local_steps=2, topology="ring", compress="none"):
        assert peer.exit_code == 0 and peer.round == 20, (peer.exit_code, peer.round, peer.verdict)
        assert n_steps == 40, f"found {n_steps} steps, expected 40: the loop stops when the run is over"
        assert len(peer.history) == 20 and peer.history[-1].loss >= 0, peer.history[-1]
        assert np.allclose(w, 2, atol=0.3), w
    with tempfile.TemporaryDirectory() as directory:
        key = hearsay.keygen(os.path.join(directory, "key"))

        def connect(model):
            return hearsay.Peer(model, key=key, listen="127.0.0.1:0", min_peers=1, rounds=20, timeout=PATIENCE)

        peer, n_steps, _ = fit(0, connect, 7, fails=True)
        assert n_steps == 2 and peer.over and peer.exit_code == 0 and "stopped" in peer.verdict, (n_steps, peer.verdict)


# ---- a notebook kernel ----


class Notebook:
    """A Jupyter kernel. run() returns the output of a cell, and the name of its exception or None."""

    def __init__(self):
        from jupyter_client.manager import KernelManager

        self.manager = KernelManager(kernel_name="python3")
        self.manager.start_kernel()
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=PATIENCE)
        self.group = int(self.run("import os; print(os.getpgid(0))")[0])

    def run(self, code, interrupt_at=None):
        asked, text, error = self.client.execute(code), "", None
        while True:
            try:
                message = self.client.get_iopub_msg(timeout=PATIENCE)
            except queue.Empty:
                sys.exit(f"a cell gave no answer in {PATIENCE} s: {code!r}; it printed {text!r}")
            if message["parent_header"].get("msg_id") != asked:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "stream":
                text += content["text"]
            elif kind == "error":
                error = content["ename"]
            elif kind == "status" and content["execution_state"] == "idle":
                return text, error
            if interrupt_at is not None and interrupt_at in text:
                interrupt_at = None
                self.manager.interrupt_kernel()

    def close(self):
        self.client.stop_channels()
        if self.group != os.getpgid(0):  # Kills the whole process group: after a failed check, ranks of local() may remain.
            os.killpg(self.group, signal.SIGKILL)
        self.manager.shutdown_kernel(now=True)


CELLS = '''
import glob, logging, os, time, hearsay, numpy as np
hearsay_dir = %r
def train(rank, connect, mark=None):
    model = hearsay.packed({"w": np.zeros(3)})
    with connect(model) as peer:
        while not peer.over:
            model["w"] += 0.2 * (rank + 1 - model["w"])
            peer.step(0.0, 1)
            if mark and peer.round > 3:
                open(os.path.join(mark, str(rank)), "w").close()
    return peer.exit_code, peer.round, os.getpid()
'''


TORCH = """
def step(model, optimizer):
    optimizer.zero_grad()
    loss = model(torch.ones(64, 3, 16, 16)).square().mean()
    loss.backward()
    optimizer.step()
    return loss
def net():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(16 * 14 * 14, 4))
torch.set_num_threads(4)
here = net()
step(here, torch.optim.SGD(here.parameters(), 0.01))
_ = torch.ones(1000, 1000) @ torch.ones(1000, 1000)
def train_torch(rank, connect):
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    with connect(model, optimizer) as peer:
        while not peer.over:
            peer.step(step(model, optimizer), 64)
    return peer.exit_code, peer.round
"""


def check_notebook():
    """cells train a peer, start four peers by local(), and are interrupted; the next cell continues"""
    try:
        import ipykernel  # noqa: F401
        import jupyter_client  # noqa: F401
    except ImportError:
        sys.exit(77)
    with tempfile.TemporaryDirectory() as directory:
        notebook = Notebook()
        try:
            in_cells(notebook, directory)
        finally:
            notebook.close()


def in_cells(notebook, directory):
    def cell(code, error=None, **more):
        text, found = notebook.run(code, **more)
        assert found == error, f"found {found}, expected {error}, of {code!r}: {text}"
        return text.strip()

    cell(CELLS % directory)
    said = cell("found = hearsay.local(4, train, rounds=20, topology='ring', compress='none')\n"
                "print([one[:2] for one in found], len({one[2] for one in found} - {os.getpid()}))")
    assert said == "[(0, 20), (0, 20), (0, 20), (0, 20)] 4", said
    said = cell("print([one[:2] for one in hearsay.simulate(3, train, rounds=5, topology='ring')])")
    assert said == "[(0, 5), (0, 5), (0, 5)]", said

    # A peer is interrupted in the middle of a cell; the next cell continues with it.
    cell("model = hearsay.packed({'w': np.zeros(3)})\n"
         "peer = hearsay.Peer(model, key=hearsay.keygen(hearsay_dir + '/key'), listen='127.0.0.1:0', min_peers=1,"
         " rounds=10**9)")
    cell("print('begun', flush=True)\nwhile peer.step(0.0, 1): pass", error="KeyboardInterrupt", interrupt_at="begun")
    said = cell("before = peer.round; peer.wait(); peer.step(); peer.step(); print(peer.round > before, peer.over)")
    assert said == "True False", said
    said = cell("peer.leave(); print(peer.exit_code, peer.verdict)")
    assert said.startswith("0 stopped"), said

    # A second call of local() in the kernel: the processes of the first call have ended, and new ones start.
    cell("import threading\n"
         "def watch():\n"
         "    while len(glob.glob(hearsay_dir + '/[0-9]')) < 3: time.sleep(0.05)\n"
         "    print('all train', flush=True)\n"
         "threading.Thread(target=watch, daemon=True).start()\n"
         "hearsay.local(3, train, hearsay_dir, rounds=10**9, topology='ring')",
         error="KeyboardInterrupt", interrupt_at="all train")
    said = cell("import multiprocessing; print(multiprocessing.active_children())")
    assert said == "[]", said
    said = cell("print([one[:2] for one in hearsay.local(2, train, rounds=5, topology='ring')])")
    assert said == "[(0, 5), (0, 5)]", said

    # local() forks the kernel after PyTorch has started threads in it.
    said, error = notebook.run("import torch")
    if error is None:
        cell(TORCH)
        said = cell("print(hearsay.local(2, train_torch, rounds=5, topology='ring'))")
        assert said == "[(0, 5), (0, 5)]", said


CHECKS = {name[6:]: check for name, check in list(globals().items()) if name.startswith("check_")}

if __name__ == "__main__":
    if sys.argv[1:] == ["--list"]:
        for name, check in CHECKS.items():
            print(name, check.__doc__)
    else:
        CHECKS[sys.argv[1]]()
