#!/usr/bin/env python3
"""Compares hearsay.load() with the output of the program for the same model.

  python_load.py sets
        writes table.csv, rows.csv: columns of very different ranges, missing values, categories of two and of 100 values,
        named labels; wild.svm, wild.t: sparse rows whose columns differ by a factor of 10,000
  python_load.py agree FILE JSON LOGITS MODEL SET PATH
        applies model and transform to the raw data in PATH: must give exactly the accuracy in JSON, and nearly the LOGITS
  python_load.py refusals FILE
        files and inputs that do not fit are refused
"""
import csv
import json
import os
import random
import struct
import sys

import numpy as np

sys.dont_write_bytecode = True
import hearsay  # noqa: E402

try:
    import torch
except ImportError:
    torch = None


def sets():
    r = random.Random(3)
    words = ["w%d" % i for i in range(100)]
    for name, n in (("table.csv", 400), ("rows.csv", 150)):
        with open(name, "w", newline="", encoding="ascii") as f:
            out = csv.writer(f)
            out.writerow(["size", "price", "same", "two", "many", "kind"])
            for i in range(n):
                c = r.randrange(3)
                size = "" if r.random() < 0.1 else "%.3f" % (1000 * c + r.gauss(0, 900))
                two = "?" if r.random() < 0.05 else ["left", "right"][r.random() < 0.3 + 0.2 * c]
                out.writerow([size, "%.6g" % (1e-3 * (c + r.gauss(0, 1))), "7", two, r.choice(words), ["red", "green", "blue, light"][c]])
    for name, n in (("wild.svm", 300), ("wild.t", 100)):
        with open(name, "w", encoding="ascii") as f:
            for i in range(n):
                c = r.randrange(2)
                v = [r.gauss(c, 1) * 10 ** (k % 5) for k in range(8)]
                f.write("%+d %s\n" % (2 * c - 1, " ".join("%d:%.5g" % (k + 1, v[k]) for k in range(8) if r.random() < 0.8 or i < 2)))


# ---- Readers of raw data, independent of hearsay. ----

def raw(kind, path, loaded):
    if kind == "idx":
        with open(os.path.join(path, "t10k-images-idx3-ubyte"), "rb") as f:
            x = np.frombuffer(f.read()[16:], np.uint8).reshape(-1, 28, 28)
        with open(os.path.join(path, "t10k-labels-idx1-ubyte"), "rb") as f:
            return x, np.frombuffer(f.read()[8:], np.uint8)
    if kind == "cifar":
        with open(os.path.join(path, "test_batch.bin"), "rb") as f:
            both = np.frombuffer(f.read(), np.uint8).reshape(-1, 3073)
        return both[:, 1:], both[:, 0]
    classes = loaded.metadata["classes"]
    if kind == "csv":
        with open(path, newline="", encoding="ascii") as f:
            rows = list(csv.reader(f))[1:]
        return [row[:-1] for row in rows], np.array([classes.index(row[-1]) for row in rows])
    with open(path, encoding="ascii") as f:
        lines = [line.split() for line in f]
    x = np.zeros((len(lines), loaded.metadata["input"]["shape"][0]))
    for i, line in enumerate(lines):
        for entry in line[1:]:
            x[i, int(entry.split(":")[0]) - 1] = float(entry.split(":")[1])
    return x, np.array([classes.index("%+d" % int(line[0])) for line in lines])


def logits(model, loaded, x, classes):
    if model == "logreg":
        return x.reshape(len(x), -1) @ loaded.tensors["fc1.weight"].T + loaded.tensors["fc1.bias"]
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    import pytorch_models
    module = pytorch_models.model(model, shape=tuple(loaded.metadata["input"]["shape"]), classes=classes)
    module.load_state_dict(loaded.tensors)
    module.eval()
    with torch.no_grad():
        return module(x).numpy()


def agree(path, report, answers, model, kind, data):
    frame = "numpy" if model == "logreg" else "torch"
    loaded = hearsay.load(path, framework=frame)
    tensors, transform, metadata = loaded
    values, labels = raw(kind, data, loaded)
    got = logits(model, loaded, transform(values), len(metadata["classes"]))
    with open(report, encoding="utf-8") as f:
        j = json.load(f)
    assert j["samples"] == len(labels) and j["data"] == metadata["data"], j
    accuracy = float((got.argmax(axis=1) == labels).mean())
    assert float("%.12g" % accuracy) == j["accuracy"], (accuracy, j["accuracy"])
    theirs = np.fromfile(answers, "<f4").reshape(got.shape)
    assert np.abs(got - theirs).max() <= 1e-4 * np.abs(theirs).max(), np.abs(got - theirs).max()
    # Checks that the test can fail: without normalisation, with pixels from 0 to 1, the model must give other results.
    if kind == "cifar":
        assert metadata["input"]["names"][3] == "cat"
        images = values.reshape(-1, 3, 32, 32)
        for same in (images, np.moveaxis(images, 1, -1), images[:, None]):
            assert np.array_equal(np.asarray(transform(same)).reshape(got.shape[0], 3, 32, 32), np.asarray(transform(values)))
    if kind == "csv":
        one = transform(values[0])
        assert one.ndim == 1 and np.array_equal(one, transform(values)[0])
        for i, cell in ((0, "25,3"), (0, "1_000"), (0, "inf"), (0, "0x10"), (0, "\u0661"), (0, b"\xff"), (0, []), (3, 1.0), (3, True), (4, []), (4, 0.5)):
            refused(f"{cell!r} in column {i + 1}, row 1", transform, [[*values[0][:i], cell, *values[0][i + 1:]]])
        for i, cells in ((0, ("25.5", 25.5, " +25.5e0 ", b"25.5", "255E-1")), (0, (None, float("nan"), "NA", "")), (3, (None, "")), (4, (7, "7", b"7"))):
            same = [transform([*values[0][:i], cell, *values[0][i + 1:]]) for cell in cells]
            assert all(np.array_equal(one, same[0]) for one in same), (i, cells)
    print("accuracy %s of %d" % (accuracy, len(labels)))


def refused(pattern, call, *args, **keys):
    try:
        call(*args, **keys)
    except ValueError as e:
        assert pattern in str(e), (pattern, str(e))
        return
    raise AssertionError("not refused: " + pattern)


def refusals(path):
    with open(path, "rb") as f:
        good = f.read()
    (n,) = struct.unpack("<Q", good[:8])

    def put(name, header, data):
        text = json.dumps(header).encode()
        with open(name, "wb") as f:
            f.write(struct.pack("<Q", len(text)) + text + data)
        return name

    def one(dtype, shape, offsets, **more):
        return dict({"w": dict(dtype=dtype, shape=shape, data_offsets=offsets)}, **more)

    for cut in (0, 5, 8, 100, 8 + n, len(good) - 1):
        with open("cut", "wb") as f:
            f.write(good[:cut])
        refused("cut: ", hearsay.load, "cut")
    os.mkfifo("pipe")
    refused("pipe: found another kind of file", hearsay.load, "pipe")
    refused("dtype of w: found 'F4'", hearsay.load, put("bad", one("F4", [2], [0, 1]), bytes(1)))
    refused("shape of w", hearsay.load, put("bad", one("F32", [-1], [0, 4]), bytes(4)))
    refused("data_offsets of w: found 8 bytes, expected 4", hearsay.load, put("bad", one("F32", [1], [0, 8]), bytes(8)))
    refused("data_offsets of w", hearsay.load, put("bad", one("F32", [1], [8, 4]), bytes(8)))
    refused("__metadata__", hearsay.load, put("bad", one("F32", [1], [0, 4], __metadata__={"a": 1}), bytes(4)))
    refused("metadata \"input\"", hearsay.load, put("bad", one("F32", [1], [0, 4], __metadata__={"input": "{"}), bytes(4)))
    refused("framework", hearsay.load, path, framework="jax")
    foreign = hearsay.load(put("foreign", one("F16", [2], [0, 4]), b"\x00\x3c\x00\xc0"), framework="numpy")
    assert foreign.metadata == {} and foreign.tensors["w"].tolist() == [1, -2]
    refused("the metadata has no \"input\"", foreign.transform, [[1]])
    bf16 = hearsay.load(put("bf16", one("BF16", [2], [0, 4]), b"\x80\x3f\x00\xc0"), framework="numpy")
    assert bf16.tensors["w"].tolist() == [1, -2]
    if torch is not None:
        t = hearsay.load("bf16").tensors["w"]
        assert t.dtype == torch.bfloat16 and t.tolist() == [1, -2]
    transform = hearsay.load(path, framework="numpy").transform
    refused("expected whole numbers from 0 to 255", transform, np.zeros((2, 28, 28), np.float32))
    refused("expected whole numbers from 0 to 255", transform, np.full((2, 28, 28), 256))
    refused("found shape (2, 27, 28)", transform, np.zeros((2, 27, 28), np.uint8))


if __name__ == "__main__":
    dict(sets=sets, agree=agree, refusals=refusals)[sys.argv[1]](*sys.argv[2:])
