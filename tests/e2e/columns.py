"""Helper of columns.sh: writes tables with columns in different orders, and checks model files.

  columns.py draw SEED                   writes the tables to the current directory
  columns.py named MODEL NAMES LABEL     checks the column names in the metadata (NAMES: the first names)
  columns.py answers MODEL TABLE CSV     computes the labels of TABLE's rows, with columns matched by name, and compares
                                         them with the predictions in CSV
  columns.py forget MODEL OUT            writes the same model without names, as older versions wrote it
"""
import csv
import json
import random
import re
import struct
import sys


def draw(seed):
    r = random.Random(seed)
    rows = []
    for _ in range(2000):
        a, b, d, e = r.gauss(0, 1), r.gauss(5, 3), r.gauss(100, 20), r.gauss(0, 1)
        word = r.choice(["red", "green", "blue"])
        y = 2 * a - 0.1 * (b - 5) + (word == "red") + r.gauss(0, 0.2) > 0.3
        rows.append({'a,"b"': "%.6g" % a, "Größe": "%.6g" % b, "d": "%.6g" % d, "word": word,
                     "e": "%.6g" % e, "label": int(y)})
    order = ['a,"b"', "Größe", "d", "word", "label"]
    turned = ["d", "word", 'a,"b"', "Größe", "label"]

    def write(path, names, part, rename=None, header=True, encoding="utf-8", end="", words=None):
        with open(path, "w", encoding=encoding, newline="") as f:
            w = csv.writer(f, lineterminator=end + "\n")
            if header:
                w.writerow([(rename or {}).get(n, n) for n in names])
            for row in part:
                w.writerow([words[row[n]] if words and n == "word" else row[n] for n in names])

    train, test = rows[:1200], rows[1200:]
    first = ["label", "word", "d", "Größe", 'a,"b"']
    write("train.csv", order, train)
    write("test.csv", order, test)
    write("turned.csv", turned, test)
    write("label_first.csv", first, test)
    write("extra.csv", ['a,"b"', "Größe", "e", "d", "word", "label"], test)
    write("trailing.csv", turned, test, end=",", rename={"d": " d "})
    write("latin1.csv", turned, test, encoding="latin-1")
    write("bare.csv", turned[:-1], test)
    write("plain.csv", order, test, header=False)
    write("unit.csv", turned, test, rename={"d": "d [K]"})
    write("case.csv", turned, test, rename={"d": "D"})
    write("twice.csv", turned, test, rename={"label": "d"})
    write("unseen.csv", turned, test, words={"red": "rot", "green": "grün", "blue": "blau"})
    write("own0.csv", order, train[:600])
    write("own1.csv", order, train[600:])
    write("own1_turned.csv", turned, train[600:])
    write("own1_first.csv", first, train[600:])
    write("own1_extra.csv", ["e"] + turned, train[600:])


def load(path):
    with open(path, "rb") as f:
        n, = struct.unpack("<Q", f.read(8))
        return json.loads(f.read(n)), f.read()


def named(path, first, label):
    meta = load(path)[0]["__metadata__"]
    assert ",".join(json.loads(meta["columns"])).startswith(first), meta["columns"]
    assert meta["label"] == label


def answers(path, table, labels):
    header, data = load(path)
    meta = header.pop("__metadata__")
    tensor = {k: struct.unpack_from("<%df" % ((t["data_offsets"][1] - t["data_offsets"][0]) // 4), data, t["data_offsets"][0])
              for k, t in header.items()}
    weight, = (t for k, t in tensor.items() if k.endswith("weight"))
    bias, = (t for k, t in tensor.items() if k.endswith("bias"))
    words = re.search(r"standard:(\S+)", meta["run"]).group(1).split(",")
    names = json.loads(meta["columns"])
    n = len(weight) // len(bias)
    rows = list(csv.DictReader(open(table, encoding="utf-8")))
    got = [row["label"] for row in csv.DictReader(open(labels))]
    assert len(got) == len(rows)
    # A model file may assign the 3 categories to inputs in any order. One of the 6 orders must be right for all rows.
    import itertools
    best = 0
    for order in itertools.permutations(["red", "green", "blue"]):
        right = 0
        for row, label in zip(rows, got):
            x = []
            for name, word in zip(names, words):
                if word.startswith("="):
                    x += [float(row[name] == c) for c in order]
                else:
                    mean, _, scale = word.partition("~")
                    x.append((float(row[name]) - float(mean or 0)) / float(scale or 1))
            assert len(x) == n
            logit = [bias[c] + sum(w * v for w, v in zip(weight[c * n:], x)) for c in range(len(bias))]
            right += str(logit.index(max(logit))) == label
        best = max(best, right)
    assert best == len(rows), (best, len(rows))


def forget(path, out):
    header, data = load(path)
    meta = header["__metadata__"]
    del meta["columns"], meta["label"]
    meta["run"] = re.sub(r"/columns-[0-9a-f]{16}(=[A-Za-z0-9_-]+)?", "", meta["run"])
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(out, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


if __name__ == "__main__":
    {"draw": lambda s: draw(int(s)), "named": named, "answers": answers, "forget": forget}[sys.argv[1]](*sys.argv[2:])
