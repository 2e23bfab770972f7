#!/usr/bin/python3
"""Compares a model file with the PyTorch module of the same model (tests/pytorch_models.py).

  pytorch_check.py agree FILE LOGITS JSON --model SPEC [--norm KIND] --set KIND:DIR
        checks that load_state_dict(strict=True) accepts the file, and that on the held-out set the module gives the logits
        of LOGITS (float32, [rows][classes]) and the loss and accuracy of JSON
  pytorch_check.py write FILE --model SPEC ...
        writes a module's state_dict as safetensors, after its running statistics have changed
  pytorch_check.py near FILE FILE TOLERANCE
        checks that two files have the same tensors, except for running statistics
  pytorch_check.py trained FIRST LAST --model SPEC ... --recipe NAME
        PyTorch trains the model FIRST for ROUNDS steps. Checks that the result is the model LAST. Each batch is the whole
        training set, so that the order of samples does not matter
  pytorch_check.py flags NAME
        prints a recipe as options of hearsay train

KIND is idx, cifar, rows, table or text, as in tests/e2e/pytorch_sets.py. This script has its own reader and writer of
safetensors files (8 bytes of length, JSON, raw data), so it shares no code with hearsay.
"""
import argparse
import json
import math
import os
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import pytorch_models as models  # noqa: E402
import pytorch_sets as sets  # noqa: E402
import torch  # noqa: E402

CONTEXT = sets.CONTEXT
TOLERANCE = 1e-4  # Tolerance of a logit, relative to the largest logit.
# Tolerances of trained models, relative to the distance from the initial to the final model. TRAINED_SMOOTH: for each tensor of
# a model without ReLUs. TRAINED: for a model with ReLUs as a whole. With ReLUs even PyTorch in float32 and in float64 differ by
# up to 2 %, because a rounding error can switch a ReLU.
TRAINED_SMOOTH, TRAINED = 1e-3, 5e-2
ROUNDS, WARMUP = 20, 5
RECIPES = {
    "sgd": dict(optimiser="sgd", lr=0.02, momentum=0.9, nesterov="false", weight_decay=1e-2),
    "nesterov": dict(optimiser="sgd", lr=0.02, momentum=0.9, nesterov="true", weight_decay=1e-2, label_smoothing=0.1),
    "adam": dict(optimiser="adam", lr=2e-3, momentum=0.9, beta2=0.99, weight_decay=1e-3, clip=1.0),
    "adamw": dict(optimiser="adamw", lr=1e-3, momentum=0.8, beta2=0.999, weight_decay=0.3, clip=0.5),
}
SHAPES = dict(idx=(1, 28, 28), cifar=(3, 32, 32), rows=(sets.FEATURES, 1, 1), table=(6, 1, 1), text=(1, CONTEXT, 1))
CLASSES = dict(idx=10, cifar=10, rows=2, table=3, text=models.BYTES)
DTYPES = {"F32": torch.float32, "I64": torch.int64}


def read(path):
    with open(path, "rb") as f:
        raw = f.read()
    (n,) = struct.unpack_from("<Q", raw)
    tensors = {}
    for name, t in json.loads(raw[8 : 8 + n]).items():
        if name == "__metadata__":
            continue
        begin, end = t["data_offsets"]
        dtype = DTYPES[t["dtype"]]
        data = bytearray(raw[8 + n + begin : 8 + n + end])
        tensors[name] = torch.frombuffer(data, dtype=dtype).view(t["shape"])
    return tensors


def write(path, tensors):
    header, body = {}, b""
    for name, t in tensors.items():
        data = t.detach().contiguous().numpy().tobytes()
        kind = next(k for k, dtype in DTYPES.items() if dtype == t.dtype)
        header[name] = dict(dtype=kind, shape=list(t.shape), data_offsets=[len(body), len(body) + len(data)])
        body += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + body)


def module_for(args):
    kind = args.set.partition(":")[0]
    return models.model(args.model, args.norm, SHAPES[kind], CLASSES[kind], CONTEXT)


def samples(args, held_out=True):
    kind, _, directory = args.set.partition(":")
    return sets.READERS[kind](directory, held_out)


def running(tensors):
    return {k: v for k, v in tensors.items() if "running_" in k}


def agree(args):
    tensors, module = read(args.files[0]), module_for(args)
    module.load_state_dict(tensors, strict=True)
    for name, v in running(tensors).items():
        if bool((v == (1 if name.endswith("var") else 0)).all()):
            return f"{name} is as it was before training"
    x, labels = samples(args)
    with torch.no_grad():
        want = module.eval()(x)
    want = want.reshape(-1, want.shape[-1]).double()
    with open(args.files[1], "rb") as f:
        got = torch.frombuffer(bytearray(f.read()), dtype=torch.float32).double()
    if got.numel() != want.numel():
        return f"{got.numel()} logits, PyTorch has {want.numel()}"
    off = float((got.view_as(want) - want).abs().max() / want.abs().max())
    print(f"# {args.model}: {tuple(want.shape)} logits, furthest off {off:.1e} of the largest")
    if not off <= TOLERANCE:
        return f"logits are off by {off:.3g} of the largest"
    return scored(args.files[2], want, labels.reshape(-1))


def scored(path, logits, labels):
    """Checks that loss and accuracy on the held-out set are those that PyTorch computes."""
    with open(path, encoding="utf-8") as f:
        said = json.load(f)
    loss = float(torch.nn.functional.cross_entropy(logits, labels))
    right = int((logits.argmax(1) == labels).sum())
    if not abs(said["loss"] - loss) <= TOLERANCE * loss:
        return f"loss {said['loss']}, PyTorch has {loss}"
    # The counts may differ by one sample, because two equal logits leave the choice of the class open.
    if not abs(said["accuracy"] * len(labels) - right) <= 1:
        return f"accuracy {said['accuracy']}, PyTorch has {right} of {len(labels)} right"
    return None


def write_module(args):
    torch.manual_seed(args.seed)
    module = module_for(args).train()
    for p in module.parameters():  # Changes all initial values such as 0 and 1, so that mixed-up tensors are detected.
        p.data += 0.02 * torch.randn_like(p)
    x, _ = samples(args)
    with torch.no_grad():
        for _ in range(3):
            module(x)
    write(args.files[0], module.state_dict())


def near(args):
    a, b = (read(path) for path in args.files[:2])
    moved = running(a)
    names = {k for k in a if k not in moved and "num_batches" not in k}
    if names != {k for k in b if k not in moved and "num_batches" not in k}:
        return "they have different tensors"
    for k in sorted(names):
        off = float((a[k] - b[k]).abs().max())
        if not off <= float(args.files[2]):
            return f"{k} differs by {off:.3g}"
    return None


def optimiser_of(recipe, module):
    params = models.groups(module, recipe["weight_decay"])
    if recipe["optimiser"] == "sgd":
        nesterov = recipe["nesterov"] == "true"
        return torch.optim.SGD(params, lr=recipe["lr"], momentum=recipe["momentum"], nesterov=nesterov)
    kind = torch.optim.Adam if recipe["optimiser"] == "adam" else torch.optim.AdamW
    return kind(params, lr=recipe["lr"], betas=(recipe["momentum"], recipe["beta2"]))


def rate(recipe, step):
    if step < WARMUP:
        return recipe["lr"] * (step + 1) / WARMUP
    return recipe["lr"] * (1 + math.cos(math.pi * (step - WARMUP) / (ROUNDS - WARMUP))) / 2


def trained(args):
    recipe, module = RECIPES[args.recipe], module_for(args).double()
    module.load_state_dict(read(args.files[0]))
    x, y = samples(args, held_out=False)
    x = x if models.is_text(args.model) else x.double()
    first = {k: v.clone() for k, v in module.state_dict().items()}
    optimiser = optimiser_of(recipe, module.train())
    for step in range(ROUNDS):
        for group in optimiser.param_groups:
            group["lr"] = rate(recipe, step)
        optimiser.zero_grad()
        z = module(x)
        torch.nn.functional.cross_entropy(z.reshape(-1, z.shape[-1]), y.reshape(-1),
                                          label_smoothing=recipe.get("label_smoothing", 0.0)).backward()
        if "clip" in recipe:
            torch.nn.utils.clip_grad_norm_(module.parameters(), recipe["clip"])
        optimiser.step()
    return compare_ways(args, first, module.state_dict(), read(args.files[1]))


def compare_ways(args, first, last, ours):
    """Checks the distance between hearsay's model `ours` and PyTorch's model `last`, relative to the distance that training
    moved PyTorch's model."""
    names = sorted(k for k in ours if "num_batches" not in k)
    ways = {k: float((last[k] - first[k]).norm()) for k in names}
    offs = {k: float((ours[k].double() - last[k]).norm()) for k in names}
    if models.is_text(args.model):
        parts, tolerance = [(k, offs[k], ways[k]) for k in names], TRAINED_SMOOTH
    else:
        parts, tolerance = [("the model", math.hypot(*offs.values()), math.hypot(*ways.values()))], TRAINED
    for k, off, way in parts:
        if not off <= tolerance * way:
            return f"{k} is {off:.3g} away from PyTorch's, which went {way:.3g}"
    worst = max(off / way for _, off, way in parts)
    print(f"# {args.model}, {args.recipe}: furthest off {worst:.1e} of the way")
    return None


def flags(args):
    words = [f"--{k.replace('_', '-')} {v}" for k, v in RECIPES[args.files[0]].items()]
    print(f"--rounds {ROUNDS} --warmup {WARMUP} --schedule cosine --batch {sets.FEW}", *words)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["agree", "write", "near", "trained", "flags"])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--model")
    parser.add_argument("--norm", default="batch")
    parser.add_argument("--set", default="")
    parser.add_argument("--recipe")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(1)
    does = dict(agree=agree, write=write_module, near=near, trained=trained, flags=flags)
    wrong = does[args.what](args)
    if wrong:
        sys.exit(f"# {args.what} {args.model} {' '.join(args.files)}: {wrong}")


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError, LookupError, RuntimeError, struct.error) as e:
        sys.exit(f"# {' '.join(sys.argv[1:])}: {type(e).__name__}: {e}")
