"""race_tasks.py -- the tasks of tests/bench/race, its arms, and the command that each host runs.

A task is a model, data, a batch size, a number of peers and a number of local steps, the same for hearsay and PyTorch.
An arm is a way to train a task: hearsay with some flags, PyTorch with a kind of exchange, or either without exchange.
A round of an arm with H local steps counts as H steps, so that every arm makes the same number of steps.
"""
import dataclasses
import os
import shutil
import subprocess
import sys

import chaos_hosts as hosts

HEARSAY, TORCH = "hearsay", "PyTorch"
MASTER_PORT = 29500
ALL = 1000000  # Number of samples of an evaluation, above the size of every test set.
RACE_DDP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "race_ddp.py")


@dataclasses.dataclass(frozen=True)
class Task:
    name: str
    title: str
    job: str  # Name of the job in tests/bench/train_pytorch, which has the optimiser and the learning rates.
    data: str  # Name of the data set's folder in the directory DATA.
    kind: str  # Kind of data, for --data.
    peers: int
    steps: int
    batch: int
    flags: str
    every: int  # Steps between evaluations. Every number of local steps must divide this number.
    target: float  # Accuracy in per cent that the worst peer must reach.
    # If there is no fixed target: by how much the score may be worse than that of DDP at its end, in per cent or,
    # for text, bits.
    less: float = None
    # True: the score is the loss of the final model. The metrics of a peer have no loss on the test set.
    text: bool = False


TASKS = {t.name: t for t in (
    Task("mnist", "LeNet-5 on MNIST", "mnist", "mnist", "mnist", 8, 1170, 64,
         "--model lenet5 --lr 0.05 --weight-decay 1e-4", 30, 98.8),
    Task("cifar10", "ResNet-20 on CIFAR-10 (20,000 images)", "cifar10", "cifar-10", "cifar10", 4, 1170, 64,
         "--model resnet:20 --lr 0.1 --weight-decay 1e-4 --augment crop+flip", 90, None, 0.2),
    Task("gpt", "a transformer of four blocks on Shakespeare", "gpt", "tinyshakespeare/input.txt", "text", 4, 1000, 32,
         "--model gpt:4x128 --optimiser adamw --lr 0.001 --weight-decay 0.1 --clip 1", 1000, None, 0.02, text=True),
)}


@dataclasses.dataclass(frozen=True)
class Arm:
    name: str
    side: str
    flags: str = ""  # Flags of hearsay peer or, for PyTorch, the kind of exchange in race_ddp.py.
    local_steps: int = 1
    alone: bool = False
    needs: str = ""  # Option that hearsay peer must have for this arm.
    by_link: bool = False  # True: the messages, and therefore the curve, depend on the link.


ARMS = {a.name: a for a in (
    Arm("hearsay-alone", HEARSAY, alone=True),
    Arm("default", HEARSAY, by_link=True),  # The choice of the codec depends on the link.
    Arm("default-H10", HEARSAY, local_steps=10, by_link=True),
    # The choice of the codec depends on the drift only, so one curve is valid for all links.
    Arm("auto", HEARSAY, "--bandwidth off"),
    Arm("auto-overlap", HEARSAY, "--overlap 1 --bandwidth off", needs="--overlap"),
    Arm("auto-layer", HEARSAY, "--overlap layer --bandwidth off", needs="layer"),
    Arm("none", HEARSAY, "--compress none"),
    Arm("auto-H10", HEARSAY, "--bandwidth off", local_steps=10),
    Arm("top3-H10", HEARSAY, "--compress topk:0.03+sign", local_steps=10),
    Arm("pytorch-alone", TORCH, "alone", alone=True),
    Arm("ddp", TORCH, "ddp"),
    Arm("ddp-fp16", TORCH, "fp16"),
    Arm("ddp-powersgd", TORCH, "powersgd"),
    Arm("local-sgd-H10", TORCH, "local", local_steps=10),
)}


def custom(text):
    """Makes one more arm of hearsay from NAME=FLAGS on the command line. FLAGS may contain --local-steps N."""
    name, _, flags = text.partition("=")
    words = flags.split()
    local_steps = 1
    if "--local-steps" in words:
        at = words.index("--local-steps")
        local_steps = int(words[at + 1])
        del words[at:at + 2]
    return Arm(name, HEARSAY, " ".join(words), local_steps)


def runs_here(arm):
    """Returns whether the program has the option that the arm needs."""
    return arm.needs in subprocess.run([hosts.HEARSAY, "peer", "--help"], capture_output=True, text=True).stdout


def torch_python():
    """Returns a python3 that has PyTorch with gloo, or None."""
    probe = "import torch.distributed as d; assert d.is_available() and d.is_gloo_available()"
    for python in (sys.executable, shutil.which("python3"), "/usr/bin/python3"):
        if python and subprocess.run([python, "-c", probe], capture_output=True).returncode == 0:
            return python
    return None


def hearsay_command(task, arm, i, n, spec, folder):
    """Returns the command of peer i of n. `spec` has data, steps, evaluate_every, key, seed."""
    warmup = min(100, max(1, task.steps // 10))
    command = [hosts.HEARSAY, "peer", "--listen", f"0.0.0.0:{hosts.PORT}", "--key", spec["key"], "--name", f"peer-{i}",
               "--data", f"{task.kind}:{os.path.join(spec['data'], task.data)}", "--shard", f"{i + 1}/{n}", "--batch",
               str(task.batch), "--rounds", str(task.steps // arm.local_steps), "--local-steps", str(arm.local_steps),
               "--warmup", str(max(1, warmup // arm.local_steps)), "--seed", str(spec["seed"]), "--checkpoint", "off",
               "--evaluate-every", str(spec["evaluate_every"] // arm.local_steps), "--evaluate-samples", str(ALL),
               "--out", os.path.join(folder, f"peer-{i}")] + task.flags.split() + arm.flags.split()
    if arm.alone:
        return command + ["--final-drift", "0"]
    bootstrap = ",".join(f"{hosts.address(k)}:{hosts.PORT}" for k in range(n))
    return command + ["--bootstrap", bootstrap, "--min-peers", str(n)]


def torch_command(task, arm, i, n, spec, folder):
    return [spec["python"], RACE_DDP, spec["data"], task.job, arm.flags, "--rank", str(i), "--peers", str(n), "--steps",
            str(task.steps), "--batch", str(task.batch), "--evaluate-every", str(spec["evaluate_every"]), "--seed",
            str(spec["seed"]), "--master", f"{hosts.address(0)}:{MASTER_PORT}", "--out", os.path.join(folder, f"peer-{i}")]


COMMANDS = {HEARSAY: hearsay_command, TORCH: torch_command}
