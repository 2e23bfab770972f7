#!/usr/bin/python3
"""One PyTorch process of tests/bench/race: DDP over gloo, local SGD, or no exchange.

  race_ddp.py DATA JOB EXCHANGE --rank I --peers N --steps S --master ADDRESS:PORT --out DIR ...

EXCHANGE is one of

    alone      no exchange: the time of computing alone
    ddp        DistributedDataParallel with its defaults
    fp16       DDP with the hook that sends 16-bit floats
    powersgd   DDP with PowerSGD of rank 2 (Vogels et al. 2019), error feedback and warm start
    powersgd-one  the same with all gradients in one bucket. With several buckets PowerSGD begins collectives in
               callbacks, in a different order at each process, and gloo ends such processes
    hook:SPEC  DDP with hearsay.ddp_hook(SPEC) of the Python package in peer/api
    local      local SGD: parameters are averaged after every ten steps

Training settings are the ones of tests/bench/train_pytorch. Process I has part I of a permutation of the data, which is
divided into N equal parts. The process appends the monotonic clock to DIR/steps after each step, so that steps before a
kill count, too. Process 0 copies the models that are evaluated, in negligible time, and evaluates the copies after
training: DIR/curve.json. With --trace a line of DIR/steps also has the CPU seconds of the process, the bytes of the
host's loopback and the loss of the batch.
"""
import argparse
import importlib.machinery
import importlib.util
import json
import math
import os
import sys
import time

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager

HERE = os.path.dirname(os.path.abspath(__file__))
LOCAL_STEPS = 10
RANK = 2
EXACT_STEPS = 2  # Number of steps before PowerSGD begins, the least that it accepts.


def load_recipes():
    loader = importlib.machinery.SourceFileLoader("train_pytorch", os.path.join(HERE, "train_pytorch"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("train_pytorch", loader))
    loader.exec_module(module)
    return module


sys.dont_write_bytecode = True
recipes = load_recipes()
models = recipes.models


class Part:
    """The samples of one process: every N-th of a permutation that is the same in all processes."""

    def __init__(self, whole, rank, peers, seed):
        self.whole = whole
        order = np.random.default_rng(seed).permutation(len(whole))
        self.at = order[rank::peers][:len(whole) // peers]

    def __len__(self):
        return len(self.at)

    def batch(self, at, rng):
        return self.whole.batch(self.at[at], rng)


def distributed(module, exchange):
    """Returns the module for forward and backward, and a function to call after each step."""
    if exchange == "alone":
        return module, lambda: None
    if exchange == "local":
        averager = PeriodicModelAverager(period=LOCAL_STEPS, warmup_steps=0)
        averager.step = 1  # The averager would average once before ten steps are done, if its counter began at 0.
        return module, lambda: averager.average_parameters(module.parameters())
    if exchange == "powersgd-one":
        dist._DEFAULT_FIRST_BUCKET_BYTES = 1 << 30
    ddp = torch.nn.parallel.DistributedDataParallel(module)
    if exchange == "fp16":
        ddp.register_comm_hook(None, default_hooks.fp16_compress_hook)
    if exchange in ("powersgd", "powersgd-one"):
        state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=RANK, start_powerSGD_iter=EXACT_STEPS)
        ddp.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    if exchange.startswith("hook:"):
        import hearsay
        ddp.register_comm_hook(None, hearsay.ddp_hook(exchange[len("hook:"):]))
    return ddp, lambda: None


def copy_of(module):
    return {name: value.clone() for name, value in module.state_dict().items()}


def train(job, args, train_set, shape, classes, log):
    """Trains. Returns the model, and copies of it by step, which only process 0 makes."""
    torch.manual_seed(args.seed)
    rng = np.random.default_rng((args.seed, args.rank))
    module = models.init(job["model"], models.model(job["model"], shape=shape, classes=classes, context=recipes.CONTEXT))
    images = isinstance(train_set.whole, recipes.Images) and shape[0] > 1
    if images:
        module = module.to(memory_format=torch.channels_last)
    net, after_step = distributed(module, args.exchange)
    optimiser = recipes.optimiser_of(job, module)
    order = recipes.batches(len(train_set), args.batch, rng)
    kept = {}
    log()
    for step in range(args.steps):
        for group in optimiser.param_groups:
            group["lr"] = recipes.rate(job, step, args.steps)
        x, y = train_set.batch(next(order), rng)
        optimiser.zero_grad(set_to_none=True)
        loss = models.mean_loss(net(recipes.as_images(x, images)), y)
        loss.backward()
        if job.get("clip"):
            torch.nn.utils.clip_grad_norm_(module.parameters(), job["clip"])
        optimiser.step()
        after_step()
        log(loss)
        if args.rank == 0 and args.evaluate_every and (step + 1) % args.evaluate_every == 0:
            kept[step + 1] = copy_of(module)
    return module, images, kept


def evaluate(module, images, kept, test):
    """Yields (step, loss in nats, share of right answers) for each copy of the model."""
    for step, values in kept.items():
        module.load_state_dict(values)
        yield (step, *recipes.evaluate(module, test, images))


def carried():
    """Returns the number of bytes that the loopback of this host has sent."""
    with open("/proc/net/dev") as f:
        return next(int(line.split(":")[1].split()[8]) for line in f if line.strip().startswith("lo:"))


def exchange_named(name):
    if name in ("alone", "ddp", "fp16", "powersgd", "powersgd-one", "local") or name.startswith("hook:"):
        return name
    raise argparse.ArgumentTypeError(f"{name}: expected alone, ddp, fp16, powersgd, powersgd-one, local or hook:SPEC")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("job", choices=list(recipes.JOBS))
    parser.add_argument("exchange", metavar="EXCHANGE", type=exchange_named)
    for name in ("rank", "peers", "steps", "batch", "evaluate-every", "seed"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--trace", action="store_true")
    parser.add_argument("--master", required=True)
    parser.add_argument("--out", required=True)
    return parser.parse_args()


def main():
    args = arguments()
    torch.set_num_threads(1)
    os.makedirs(args.out, exist_ok=True)
    job = dict(recipes.JOBS[args.job])
    job["warmup"] = min(job["warmup"], max(1, args.steps // 10))
    whole, test, shape, classes = recipes.READERS[job["data"]](args.data)
    if args.exchange != "alone":
        dist.init_process_group("gloo", init_method=f"tcp://{args.master}", rank=args.rank, world_size=args.peers)
    with open(os.path.join(args.out, "steps"), "w", buffering=1) as steps:
        def log(loss=math.nan):
            used = f" {time.process_time():.6f} {carried()} {float(loss):.6f}" if args.trace else ""
            steps.write(f"{time.monotonic():.6f}{used}\n")
        module, images, kept = train(job, args, Part(whole, args.rank, args.peers, args.seed), shape, classes, log)
    curve = list(evaluate(module, images, kept, test))
    with open(os.path.join(args.out, "curve.json"), "w") as f:
        json.dump(curve, f)
    os._exit(0)  # Ends without clean-up, because gloo's threads may wait for processes that have ended.


if __name__ == "__main__":
    main()
