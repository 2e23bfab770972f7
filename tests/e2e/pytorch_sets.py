#!/usr/bin/python3
"""Writes small data sets: pytorch_sets.py DIR [SEED], and reads them for PyTorch.

  cifar/     CIFAR-10's binary batches: 96 and 40 images, patterns with noise
  rows/      train and test, libsvm text with 40 features, labels -1 and +1
  table/     train.csv and test.csv, 7 columns, labels 0 to 2 in the last column
  text/      train.txt and test.txt
  few/       cifar/ and text/ again, with 16 training samples, so that one batch is the whole set

tests/e2e/idx.py writes the images in MNIST's format.
"""
import os
import random
import struct
import sys

import torch

MEAN, STD = {1: (0.1307,), 3: (0.4914, 0.4822, 0.4465)}, {1: (0.3081,), 3: (0.2470, 0.2435, 0.2616)}
FEATURES, CONTEXT, FEW = 40, 16, 16


def cifar(directory, rng, n_train=96):
    patterns = [rng.randbytes(3072) for _ in range(10)]
    for name, n in (("data_batch_1.bin", n_train), ("test_batch.bin", 40)):
        with open(os.path.join(directory, name), "wb") as f:
            for i in range(n):
                noise = rng.randbytes(3072)
                f.write(bytes([i % 10]) + bytes((p + q) // 2 for p, q in zip(patterns[i % 10], noise)))


def rows(directory, rng):
    weight = [rng.gauss(0, 1) for _ in range(FEATURES)]
    for name, n in (("set", 200), ("set.t", 50)):
        with open(os.path.join(directory, name), "w", encoding="ascii") as f:
            for i in range(n):
                columns = sorted(rng.sample(range(FEATURES), 9))
                if i == 0:  # Ensures that both files contain all classes.
                    columns = range(FEATURES)
                values = [(c, round(rng.uniform(0.1, 1), 4)) for c in columns]
                label = "+1" if sum(weight[c] * v for c, v in values) > 0 else "-1"
                f.write(label + "".join(f" {c + 1}:{v}" for c, v in values) + "\n")


def table(directory, rng):
    for name, n in (("train.csv", 200), ("test.csv", 50)):
        with open(os.path.join(directory, name), "w", encoding="ascii") as f:
            f.write("a,b,c,d,e,f,kind\n")
            for i in range(n):
                values = [rng.gauss(i % 3, 1) for _ in range(6)]
                f.write(",".join(f"{v:.4f}" for v in values) + f",{i % 3}\n")


def text(directory, rng, n_train=4000):
    words = ["gossip", "peer", "is", "a", "the", "said", "and", "then", "nobody"]
    for name, n in (("train.txt", n_train), ("test.txt", 600)):
        with open(os.path.join(directory, name), "w", encoding="ascii") as f:
            f.write(" ".join(rng.choice(words) for _ in range(n))[:n])


# ---- Readers that return (inputs, labels) for PyTorch. ----


def read_idx(directory, held_out):
    stem = os.path.join(directory, "t10k" if held_out else "train")
    with open(stem + "-images-idx3-ubyte", "rb") as f:
        n, h, w = struct.unpack(">III", f.read(16)[4:])
        pixels = torch.frombuffer(bytearray(f.read()), dtype=torch.uint8).view(n, 1, h, w)
    with open(stem + "-labels-idx1-ubyte", "rb") as f:
        labels = list(f.read()[8:])
    return normalised(pixels, 1), torch.tensor(labels)


def read_cifar(directory, held_out):
    with open(os.path.join(directory, "test_batch.bin" if held_out else "data_batch_1.bin"), "rb") as f:
        both = torch.frombuffer(bytearray(f.read()), dtype=torch.uint8).view(-1, 3073)
    return normalised(both[:, 1:].reshape(-1, 3, 32, 32), 3), both[:, 0].long()


def normalised(pixels, channels):
    mean, std = (torch.tensor(v, dtype=torch.float64).view(1, -1, 1, 1) for v in (MEAN[channels], STD[channels]))
    return ((pixels.double() / 255 - mean) / std).float()


def read_rows(directory, held_out):
    with open(os.path.join(directory, "set.t" if held_out else "set"), encoding="ascii") as f:
        lines = f.read().split("\n")[:-1]
    x = torch.zeros(len(lines), FEATURES)
    for i, line in enumerate(lines):
        for entry in line.split()[1:]:
            column, value = entry.split(":")
            x[i, int(column) - 1] = float(value)
    return x, torch.tensor([int(line.startswith("+1")) for line in lines])


def read_table(directory, held_out):
    with open(os.path.join(directory, "test.csv" if held_out else "train.csv"), encoding="ascii") as f:
        rows = [line.split(",") for line in f.read().split("\n")[1:-1]]
    return torch.tensor([[float(v) for v in row[:-1]] for row in rows]), torch.tensor([int(row[-1]) for row in rows])


def read_text(directory, held_out):
    with open(os.path.join(directory, "test.txt" if held_out else "train.txt"), "rb") as f:
        ids = torch.tensor(list(f.read()))
    n = (len(ids) - 1) // CONTEXT
    return ids[: n * CONTEXT].view(n, CONTEXT), ids[1 : n * CONTEXT + 1].view(n, CONTEXT)


READERS = dict(idx=read_idx, cifar=read_cifar, rows=read_rows, table=read_table, text=read_text)


def main():
    directory, seed = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1
    for make in (cifar, rows, table, text):
        part = os.path.join(directory, make.__name__)
        os.makedirs(part, exist_ok=True)
        make(part, random.Random(f"{seed} {make.__name__}"))
    for make, n in ((cifar, FEW), (text, FEW * CONTEXT + 1)):
        part = os.path.join(directory, "few", make.__name__)
        os.makedirs(part, exist_ok=True)
        make(part, random.Random(f"{seed} few {make.__name__}"), n)


if __name__ == "__main__":
    main()
