#!/usr/bin/python3
"""Makes tests/golden/nn_*.h: the results of PyTorch for the models of nn/.

  tests/golden/make_nn.py [--tries N] [NAME ...]

The modules of tests/pytorch_models.py are run in double precision, so that only hearsay has rounding errors. Parameters
and inputs are computed from a hash of a tensor's name and an element's index. tests/unit/nn_golden.c computes the same
hash as key() and unit() here.

If a ReLU or max-pool decides differently in float32 and in double, whole gradients differ. With half a million
decisions, one of them is always close to a tie. Of --tries salts of the hash, the script therefore uses the one whose
closest decision is farthest from a tie, and prints it. The script also prints the errors of PyTorch's own float32
results in units of the test's tolerances, which are at least ten times these errors.
"""
import argparse
import math
import os
import sys

import numpy as np
import torch
import torch.nn.functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(HERE, ".."))
import pytorch_models as models  # noqa: E402

CONTEXT = 16
ALL_OF = 32  # A tensor of at most this number of values is listed completely.
SPREAD = 16  # For a longer tensor, this number of values is listed, evenly spaced.
# Name of a case -> (spec of the model, norm, number of samples, shape of a sample: channels, height, width).
CASES = {
    "lenet5": ("lenet5", "batch", 3, (1, 28, 28)),
    "lenet5_group": ("lenet5:bn", "group", 3, (1, 28, 28)),
    "vgg11": ("vgg11", "batch", 4, (3, 32, 32)),
    "vgg11_bn": ("vgg11:bn", "batch", 4, (3, 32, 32)),
    "resnet20": ("resnet:20", "batch", 4, (3, 32, 32)),
    "resnet20_group": ("resnet:20", "group", 3, (3, 32, 32)),
    "lstm": ("lstm:2x32", "batch", 3, (1, CONTEXT, 1)),
    "gpt": ("gpt:2x64", "batch", 4, (1, CONTEXT, 1)),
}
# The tolerances of tests/unit/nn_golden.h.
TOLERANCE_LOSS, TOLERANCE_LOGIT, TOLERANCE, FLOOR = 1e-5, 1e-4, 1e-4, 1e-6


def key(name, salt):
    """Returns the FNV-1a hash of the name. The salt changes the start value of the hash."""
    h = 2166136261 ^ salt
    for byte in name.encode():
        h = (h ^ byte) * 16777619 & 0xFFFFFFFF
    return h


def bits(k, n):
    """Returns n pseudo-random words: a counter through the finaliser of MurmurHash3."""
    x = np.uint32(k) + np.arange(n, dtype=np.uint32) * np.uint32(0x9E3779B1)
    x = (x ^ x >> 16) * np.uint32(0x85EBCA6B)
    x = (x ^ x >> 13) * np.uint32(0xC2B2AE35)
    return x ^ x >> 16


def unit(k, n):
    """Returns n floats in [-1, 1), without rounding."""
    return (bits(k, n) >> 8).astype(np.float32) * np.float32(2**-23) - np.float32(1)


def centre_and_scale(name, shape):
    """Returns centre and half-width of the range of a parameter's values, so that activations keep their size from
    layer to layer."""
    part = name.split(".")[-1]
    if part == "running_mean":
        return 0.0, 0.25
    if part == "running_var":
        return 1.0, 0.5
    if part.startswith("bias"):
        return 0.0, 0.125
    if len(shape) == 1:  # Only weights of normalisation layers have one dimension.
        return 1.0, 0.25
    if "wte" in name or "wpe" in name or "encoder" in name:
        return 0.0, 1.0
    return 0.0, float(np.float32(math.sqrt(6 / math.prod(shape[1:]))))


class Case:
    def __init__(self, name, salt, dtype):
        self.name, self.salt = name, salt
        self.spec, self.norm, self.n, self.shape = CASES[name]
        self.text = models.is_text(self.spec)
        self.classes = models.BYTES if self.text else 10
        self.module = models.model(self.spec, self.norm, self.shape, self.classes, CONTEXT).to(dtype)
        self.tensors = {k: v for k, v in self.module.state_dict().items() if "num_batches" not in k}
        with torch.no_grad():
            for k, v in self.tensors.items():
                centre, scale = (np.float32(c) for c in centre_and_scale(k, v.shape))
                v.copy_(torch.from_numpy(centre + scale * unit(key(k, salt), v.numel())).view(v.shape))
        self.input(dtype)

    def input(self, dtype):
        rows = self.n * (CONTEXT if self.text else 1)
        k = key("labels", self.salt)
        self.labels = torch.from_numpy((bits(k, rows) >> 8).astype(np.int64) % self.classes)
        k, count = key("input", self.salt), self.n * math.prod(self.shape)
        if self.text:
            self.x = torch.from_numpy((bits(k, count) >> 24).astype(np.int64)).view(self.n, CONTEXT)
        else:
            self.x = torch.from_numpy(unit(k, count)).to(dtype).view(self.n, *self.shape)

    def run(self):
        """Returns the loss, the logits in training and in evaluation, and every gradient."""
        m = self.module
        before = {k: v.clone() for k, v in self.tensors.items() if "running" in k}
        with torch.no_grad():
            tested = m.eval()(self.x).reshape(len(self.labels), -1)
        logits = m.train()(self.x).reshape(len(self.labels), -1)
        loss = F.cross_entropy(logits, self.labels)
        loss.backward()
        grads = {}
        parameters = dict(m.named_parameters())
        for k, v in self.tensors.items():
            # For running statistics, the gradient is their distance from the statistics of the batch.
            grads[k] = (before[k] - v) / 0.1 if k in before else parameters[k].grad
        flat = {k: g.detach().double().numpy().ravel() for k, g in grads.items()}
        return dict(loss=float(loss), logits=logits.detach().double().numpy(), tested=tested.double().numpy(),
                    grads=flat)


def margin(case):
    """The smallest difference of values that a ReLU or max-pool compares, relative to the rms of its input."""
    closest = [math.inf]
    relu, pool = F.relu, F.max_pool2d

    def note(distance, z):
        if distance.numel():
            closest[0] = min(closest[0], float(distance.min() / z.square().mean().sqrt()))

    def watched_relu(z, inplace=False):
        note(z.abs(), z)
        return relu(z)

    def watched_pool(z, *args, **kw):
        windows = z.unfold(2, 2, 2).unfold(3, 2, 2).flatten(4)
        top = windows.topk(2, dim=4).values
        note((top[..., 0] - top[..., 1])[top[..., 0] > 0], z)
        return pool(z, *args, **kw)

    F.relu, F.max_pool2d = watched_relu, watched_pool
    try:
        with torch.no_grad():
            case.module.train()(case.x)
    finally:
        F.relu, F.max_pool2d = relu, pool
    return closest[0]


def clearest_salt(name, tries):
    if models.is_text(CASES[name][0]):
        return 1, math.inf
    margins = [(margin(Case(name, salt, torch.float64)), salt) for salt in range(1, tries + 1)]
    best = max(margins)
    return best[1], best[0]


def spread(n, count):
    """Returns the indices of the listed values of a tensor with n values."""
    return np.arange(n) if n <= ALL_OF else np.arange(count) * n // count


def dot(v, salt):
    return float(v @ unit(key("dot", salt), len(v)).astype(np.float64))


def dots(logits, salt):
    return np.array([dot(row, salt) for row in logits])


def worst_of_float32(name, salt, ref):
    """Returns the errors of PyTorch's float32 results relative to float64, in units of the test's tolerances."""
    got = Case(name, salt, torch.float32).run()
    largest = np.abs(ref["logits"]).max()
    worst = dict(loss=abs(got["loss"] / ref["loss"] - 1) / TOLERANCE_LOSS,
                 logits=np.abs(got["logits"] - ref["logits"]).max() / largest / TOLERANCE_LOGIT, value=0, whole=0)
    steepest = max(np.linalg.norm(g) for g in ref["grads"].values())
    for k, g in ref["grads"].items():
        norm, at = np.linalg.norm(g), spread(len(g), SPREAD)
        off = np.abs(got["grads"][k] - g)[at].max()
        rms = norm / math.sqrt(len(g))
        worst["value"] = max(worst["value"], off / (5 * TOLERANCE * rms + FLOOR * steepest))
        off = max(abs(np.linalg.norm(got["grads"][k]) - norm), abs(dot(got["grads"][k] - g, salt)))
        worst["whole"] = max(worst["whole"], off / (TOLERANCE * norm + FLOOR * steepest))
    return ", ".join(f"{k} {v:.3f}" for k, v in worst.items())


def real(v, digits=7):
    """Returns a number as a C constant."""
    word = f"{v:.{digits}g}"
    return word if set(word) & set(".e") else word + ".0"


def listed(values, indent="        "):
    lines, line = [], indent
    for w in (real(v) for v in values):
        if len(line) + len(w) + 2 > 116:
            lines.append(line.rstrip())
            line = indent
        line += w + ", "
    return "\n".join(lines + [line.rstrip()])


def header(case, ref, closest):
    salt, tag = case.salt, case.name
    guard = f"TESTS_GOLDEN_NN_{tag.upper()}_H"
    out = [
        f"/* tests/golden/nn_{tag}.h -- what PyTorch computes for {case.spec}"
        + (f", {case.norm} norm" if case.spec.startswith("resnet") else "") + ".",
        " *",
        " * Written by tests/golden/make_nn.py; tests/unit/nn_golden.h defines the format."
        + ("" if closest == math.inf else f"\n * At each ReLU and max-pool, compared values differ by at least {closest:.1e} of the rms of its input."),
        " */",
        f"#ifndef {guard}", f"#define {guard}", "", '#include "tests/unit/nn_golden.h"', "",
        f"static const struct golden_tensor {tag}_tensors[] = {{",
    ]
    for k, g in ref["grads"].items():
        shape = list(case.tensors[k].shape)
        centre, scale = (float(np.float32(c)) for c in centre_and_scale(k, shape))
        norm = float(np.linalg.norm(g))
        dims = ", ".join(str(d) for d in shape)
        out.append(f'    {{"{k}", {len(shape)}, {{{dims}}}, {real(centre)}f, {real(scale, 9)}f, {real(norm, 9)}, '
                   f"{real(dot(g, salt), 9)}, (const double[]){{")
        out.append(listed(g[spread(len(g), SPREAD)]).rstrip(",") + "}},")
    out += ["};", ""]
    for word in ("logits", "tested"):
        if word == "tested" and np.array_equal(ref["logits"], ref["tested"]):
            continue
        z = ref[word]
        out.append(f"static const double {tag}_{word}[] = {{")
        out.append(listed(dots(z, salt) if case.text else z.ravel(), "    "))
        out += ["};", ""]
    tested = "logits" if np.array_equal(ref["logits"], ref["tested"]) else "tested"
    c, h, w = case.shape
    norm = {"batch": "MODEL_BATCH_NORM", "group": "MODEL_GROUP_NORM"}[case.norm]
    out += [
        f"static const struct golden_model {tag}_golden = {{",
        f'    .name = "{tag}",', f'    .spec = "{case.spec}",', f"    .norm = {norm},",
        f"    .data = {{{'DATA_TEXT' if case.text else 'DATA_IMAGES'}, {c}, {h}, {w}, {case.classes}}},",
        f"    .n = {case.n},", f"    .salt = {salt},", f"    .loss = {ref['loss']:.12g},",
        f"    .largest = {np.abs(ref['logits']).max():.9g},", f"    .logits = {tag}_logits,",
        f"    .tested = {tag}_{tested},", f"    .tensors = {tag}_tensors,",
        f"    .n_tensors = {len(ref['grads'])},", "};", "", "#endif", "",
    ]
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--tries", type=int, default=300)
    args = parser.parse_args()
    torch.set_num_threads(1)
    for name in args.names or CASES:
        salt, closest = clearest_salt(name, args.tries)
        case = Case(name, salt, torch.float64)
        ref = case.run()
        print(f"{name}: salt {salt}, closest decision {closest:.1e}; of float32: {worst_of_float32(name, salt, ref)}",
              flush=True)
        with open(os.path.join(HERE, f"nn_{name}.h"), "w", encoding="ascii") as f:
            f.write(header(case, ref, closest))


if __name__ == "__main__":
    main()
