#!/usr/bin/env python3
"""Writes synthetic tables with properties of real data that make learning difficult: tables.py DIR [MUSHROOMS].

  DIR/cover/      like covtype: 20,000 rows of 54 columns, ten of them numbers from tens to thousands,
                  44 of them 0 or 1; seven classes with shares of 3 to 40 %
  DIR/own/N.csv   the rows of cover/train.csv, divided among four files mostly by the first column, so
                  that means differ
  DIR/gaps/       6,000 rows: numbers, categories, a tenth of the cells missing, three classes
  DIR/near/       4,000 rows of three columns whose spread is small compared with their values: a
                  timestamp, a coordinate, a price in cents; two classes
  DIR/mushrooms/  with MUSHROOMS, a directory of the mushroom data set in libsvm format: converted back to
                  its original letters, with the label in the first column, and ? for an unknown stalk root

Each directory except own has train.csv and test.csv.
"""
import math
import os
import random
import sys

# Mean and standard deviation of the ten numeric columns, as in the data set covtype.
NUMBERS = ((2959, 280), (156, 112), (14, 7.5), (269, 212), (46, 58), (2350, 1559), (212, 27), (223, 20),
           (143, 38), (1980, 1324))
CLASSES = 7

# Categories of the 22 attributes of the mushroom data set, in the order of its description.
LETTERS = ("bcxfks", "fgys", "nbcgrpuewy", "tf", "alcyfmnps", "adfn", "cwd", "bn", "knbhgropuewy", "et",
           "bcuezr?", "fyks", "fyks", "nbcgopewy", "nbcgopewy", "pu", "nowy", "not", "ceflnpsz",
           "knbhrouwy", "acnsvy", "glmpuwd")


def draw(rng, scores):
    """Draws a class with probabilities proportional to the exponentials of the scores."""
    return max(range(len(scores)), key=lambda k: scores[k] - math.log(-math.log(rng.random())))


def cover_row(rng, tables):
    weights, wild, soils, bias = tables
    z = [rng.gauss(0, 1) for _ in NUMBERS]
    area = draw(rng, [z[0] * a + z[5] * b for a, b in wild])
    soil = draw(rng, [2 * z[0] * a + b for a, b, _ in soils])
    scores = [bias[k] + sum(w * v for w, v in zip(weights[k], z)) + soils[soil][2][k]
              + 1.5 * math.sin(2 * z[0] + k) + weights[k][1] * z[3] * z[1] for k in range(CLASSES)]
    row = [str(round(m + d * v)) for (m, d), v in zip(NUMBERS, z)]
    row += ["1" if i == area else "0" for i in range(4)]
    row += ["1" if i == soil else "0" for i in range(40)]
    return z[0], row + [str(1 + draw(rng, scores))]


def both(directory, name):
    os.makedirs(os.path.join(directory, name), exist_ok=True)
    return [open(os.path.join(directory, name, part), "w") for part in ("train.csv", "test.csv")]


def cover(directory, n):
    rng = random.Random(1)
    weights = [[rng.gauss(0, 1.2 if i == 0 else 0.6) for i in range(len(NUMBERS))] for _ in range(CLASSES)]
    wild = [(rng.gauss(0, 1), rng.gauss(0, 1)) for _ in range(4)]
    soils = [(rng.gauss(0, 1), rng.gauss(0, 1), [rng.gauss(0, 1) for _ in range(CLASSES)]) for _ in range(40)]
    bias = [2, 2.5, 0, -2, -1, 0, 0]
    os.makedirs(os.path.join(directory, "own"), exist_ok=True)
    own = [open(os.path.join(directory, "own", "%d.csv" % i), "w") for i in range(4)]
    files = both(directory, "cover")
    for i in range(n):
        height, row = cover_row(rng, (weights, wild, soils, bias))
        files[i % 5 == 0].write(",".join(row) + "\n")
        if i % 5 != 0:
            own[min(3, max(0, int(2 + height + rng.gauss(0, 0.5))))].write(",".join(row) + "\n")
    for f in own + files:
        f.close()


def gaps(directory, n):
    rng = random.Random(2)
    towns = {"Ulm": 0, "Bonn": 1.5, "Kiel": -1.5, "Jena": 0.7}
    empty = ("", "?", "NA", "nan")
    files = both(directory, "gaps")
    files[0].write("town,height,income,share,class\n")
    for i in range(n):
        town = rng.choice(sorted(towns))
        z = [rng.gauss(0, 1) for _ in range(3)]
        scores = [2 * z[0] + towns[town], 2 * z[1] - towns[town], 2 * z[2]]
        row = [town, "%.2f" % (1.7 + 0.1 * z[0]), "%d" % (40000 + 12000 * z[1]), "%.5f" % (0.01 * z[2])]
        row = [rng.choice(empty) if rng.random() < 0.1 else cell for cell in row]
        answer = ("low", "middle", "high")[draw(rng, [3 * s for s in scores])]
        files[i % 5 == 0].write(",".join(row) + ",%s\n" % answer)
    for f in files:
        f.close()


def near(directory, n):
    rng = random.Random(3)
    files = both(directory, "near")
    for i in range(n):
        z = [rng.gauss(0, 1) for _ in range(3)]
        row = ["%.3f" % (1.6e9 + 20 * z[0]), "%.9f" % (52.52 + 1e-6 * z[1]), "%d" % (123456789012 + 90 * z[2])]
        files[i % 5 == 0].write(",".join(row) + ",%d\n" % (z[0] - z[1] + z[2] + 0.1 * rng.gauss(0, 1) > 0))
    for f in files:
        f.close()


def mushrooms(directory, source):
    """Converts libsvm rows to letters. Entry k of a row is the category of attribute k. Category numbers continue from one
    attribute to the next."""
    begin = [1 + sum(len(s) for s in LETTERS[:k]) for k in range(len(LETTERS))]
    for out, name in zip(both(directory, "mushrooms"), ("agaricus.txt.train", "agaricus.txt.test")):
        with open(os.path.join(source, name)) as f, out:
            for line in f:
                label, *entries = line.split()
                cells = [LETTERS[k][int(e.split(":")[0]) - begin[k]] for k, e in enumerate(entries)]
                out.write(",".join(["ep"[int(label)]] + cells) + "\n")


def main():
    directory = sys.argv[1]
    os.makedirs(directory, exist_ok=True)
    cover(directory, 20000)
    gaps(directory, 6000)
    near(directory, 4000)
    if len(sys.argv) > 2:
        mushrooms(directory, sys.argv[2])


main()
