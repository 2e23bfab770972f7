#!/usr/bin/env python3
"""Writes small data sets that are learnt in a few steps: rows.py DIR [SEED].

  DIR/table.csv            three classes, four columns, a header; 300 rows
  DIR/sparse.svm, .svm.t   labels -1 and +1, 20 features; 300 and 100 rows
  DIR/text.txt             sentences with few different words, about 24 kB
"""
import os
import random
import sys


def table(path, rng):
    with open(path, "w") as f:
        f.write("a,b,c,d,class\n")
        for i in range(300):
            k = rng.randrange(3)
            x = [rng.gauss(2.0 if j == k else 0.0, 0.5) for j in range(4)]
            f.write(",".join("%.4f" % v for v in x) + ",%d\n" % k)


def sparse(path, n, rng):
    with open(path, "w") as f:
        for i in range(n):
            y = rng.choice((-1, 1))
            where = sorted(rng.sample(range(1, 11) if y < 0 else range(8, 21), 4)) + [21]
            f.write("%+d " % y + " ".join("%d:1" % k for k in where) + "\n")


def text(path, rng):
    who = ["the cat", "the dog", "a bird", "my friend"]
    does = ["sees", "likes", "finds"]
    what = ["a tree", "the sea", "some bread"]
    with open(path, "w") as f:
        for _ in range(1000):
            f.write("%s %s %s.\n" % (rng.choice(who), rng.choice(does), rng.choice(what)))


def main():
    directory = sys.argv[1]
    rng = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    os.makedirs(directory, exist_ok=True)
    table(os.path.join(directory, "table.csv"), rng)
    sparse(os.path.join(directory, "sparse.svm"), 300, rng)
    sparse(os.path.join(directory, "sparse.svm.t"), 100, rng)
    text(os.path.join(directory, "text.txt"), rng)


main()
