#!/usr/bin/env python3
"""Logistic regression in numpy, without PyTorch: several peers on this machine, each with its own rows.

    python3 numpy_logreg.py [peers=4] [NAME=VALUE ...]
"""
import sys

import hearsay
import numpy as np

FEATURES, CLASSES = 20, 4


def rows(n, seed):
    """Returns n points of four clusters, and their labels."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(0).standard_normal((CLASSES, FEATURES))
    y = rng.integers(0, CLASSES, n)
    return (centres[y] + rng.standard_normal((n, FEATURES))).astype(np.float32), y


def softmax(z):
    e = np.exp(z - z.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def train(rank, connect):
    model = hearsay.packed({"weight": np.zeros((FEATURES, CLASSES)), "bias": np.zeros(CLASSES)})
    test_x, test_y = rows(2000, 1)

    def evaluate(model):
        p = softmax(test_x @ model["weight"] + model["bias"])
        right = p.argmax(1) == test_y
        return {"loss": -np.log(p[np.arange(len(p)), test_y]).mean(), "accuracy": right.mean(), "samples": len(p)}

    with connect(model, evaluate=evaluate) as peer:
        for x, y in peer.shard(rows(6000, 2), batch_size=50):
            g = softmax(x @ model["weight"] + model["bias"])
            loss = -np.log(g[np.arange(len(g)), y]).mean()
            g[np.arange(len(g)), y] -= 1
            # The array is changed in place, because the library reads this memory.
            model["weight"] -= 0.1 * x.T @ g / len(x)
            model["bias"] -= 0.1 * g.mean(0)
            peer.step(loss, len(x))
    return f"{peer.verdict}; accuracy {peer.accuracy:.3f}, {peer.figures().bytes_copied} bytes copied"


if __name__ == "__main__":
    options = {"rounds": 100, "local-steps": 2, "compress": "topk:0.2", "topology": "ring"}
    options.update(word.partition("=")[::2] for word in sys.argv[1:])
    for one in hearsay.local(int(options.pop("peers", 3)), train, **options):
        print(one)
