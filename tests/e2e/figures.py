#!/usr/bin/env python3
"""Prints values from the output files of runs. Has its own readers, so that it shares no code with the program.

  figures.py json FILE PATH        a value of the JSON object at the end of FILE ("peers.0.accuracy")
  figures.py last FILE KEY         a value in the last complete line of a metrics.jsonl
  figures.py best FILE KEY         the last value of KEY that is a number
  figures.py first FILE KEY        a value in the first line of the last start
  figures.py lines FILE            number of lines; fails unless all are JSON objects and rounds ascend within a start
  figures.py starts FILE           number of starts, each with a line of its own before its first round
  figures.py drift MODEL MODEL...  consensus distance of safetensors models, absolute and relative, and number of trained
                                   parameters, then the same of the running statistics (nan nan 0 without any)
"""
import array
import json
import math
import struct
import sys


def closing_object(path):
    """Returns the JSON object at the end of a file, which may have other text before it."""
    lines = open(path, encoding="utf-8").read().splitlines()
    for i in range(len(lines) - 1, -1, -1):
        if lines[i].startswith("{"):
            return json.loads("\n".join(lines[i:]))
    raise ValueError("no JSON object at its end")


def look_up(value, path):
    for key in path.split("."):
        value = value[int(key)] if isinstance(value, list) else value[key]
    return value


def starts(path):
    """Returns a list with the lines of each start of the process in a metrics.jsonl. Omits an incomplete last line."""
    runs = []
    for text in open(path, encoding="utf-8").read().split("\n")[:-1]:
        line = json.loads(text)
        if line.get("start"):
            runs.append([])
        else:
            runs[-1].append(line)
    return runs


def metrics(path):
    return [line for run in starts(path) for line in run]


def read_model(path):
    """Reads a safetensors file as {name: floats}, and checks every byte of its layout."""
    raw = open(path, "rb").read()
    (n,) = struct.unpack_from("<Q", raw)
    header = json.loads(raw[8 : 8 + n])
    body = raw[8 + n :]
    header.pop("__metadata__", None)
    tensors, covered = {}, 0
    for name, t in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, end = t["data_offsets"]
        if t["dtype"] != "F32":
            continue
        if begin != covered or end - begin != 4 * math.prod(t["shape"]):
            raise ValueError(f"{path}: {name}: offsets {begin}..{end} do not fit shape {t['shape']}")
        covered = end
        tensors[name] = array.array("f", body[begin:end])
    if covered != len(body):
        raise ValueError(f"{path}: {len(body)} bytes of data, {covered} described")
    return tensors


def distance(models, names):
    flat = [[v for name in names for v in m[name]] for m in models]
    n = len(flat)
    if not names:
        return math.nan, math.nan, 0
    xi2 = mean2 = 0.0
    for column in zip(*flat):
        mean = math.fsum(column) / n
        xi2 += sum((v - mean) ** 2 for v in column) / n
        mean2 += mean * mean
    return math.sqrt(xi2), math.sqrt(xi2 / mean2), len(flat[0])


def drift(paths):
    models = [read_model(p) for p in paths]
    names = sorted(models[0])
    if any(sorted(m) != names for m in models):
        raise ValueError("the models have different tensors")
    statistics = [name for name in names if "running_" in name]
    print(*distance(models, [name for name in names if name not in statistics]), *distance(models, statistics))


def main():
    tool, path, rest = sys.argv[1], sys.argv[2], sys.argv[3:]
    if tool == "drift":
        return drift([path] + rest)
    if tool == "json":
        value = look_up(closing_object(path), rest[0])
        print(len(value) if isinstance(value, (list, dict)) else value)
        return None
    rows = metrics(path)
    if tool == "lines":
        for run in starts(path):
            rounds = [row["round"] for row in run]
            if rounds != sorted(rounds):
                raise ValueError(f"{path}: rounds fall")
        print(len(rows))
    elif tool == "starts":
        print(len(starts(path)))
    elif tool == "first":
        print(starts(path)[-1][0][rest[0]])
    elif tool == "last":
        print(rows[-1][rest[0]])
    elif tool == "best":
        print([row[rest[0]] for row in rows if isinstance(row.get(rest[0]), (int, float))][-1])
    else:
        sys.exit(__doc__)
    return None


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError, LookupError, struct.error) as e:
        sys.exit(f"# figures {' '.join(sys.argv[1:])}: {type(e).__name__}: {e}")
