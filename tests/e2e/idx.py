#!/usr/bin/env python3
"""Writes a small data set in MNIST's format: idx.py DIR N_TRAIN N_TEST [SEED].

There are ten classes. An image is the random pattern of its class plus noise. A model learns the classes in a few
steps.
"""
import os
import random
import struct
import sys


def write(directory, stem, n, patterns, rng):
    labels = bytes(i % 10 for i in range(n))
    with open(os.path.join(directory, stem + "-labels-idx1-ubyte"), "wb") as f:
        f.write(struct.pack(">II", 0x801, n) + labels)
    with open(os.path.join(directory, stem + "-images-idx3-ubyte"), "wb") as f:
        f.write(struct.pack(">IIII", 0x803, n, 28, 28))
        for label in labels:
            noise = rng.randbytes(784)
            f.write(bytes((3 * p + q) // 4 for p, q in zip(patterns[label], noise)))


def main():
    directory, n_train, n_test = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    rng = random.Random(int(sys.argv[4]) if len(sys.argv) > 4 else 1)
    os.makedirs(directory, exist_ok=True)
    patterns = [rng.randbytes(784) for _ in range(10)]
    write(directory, "train", n_train, patterns, rng)
    write(directory, "t10k", n_test, patterns, rng)


main()
