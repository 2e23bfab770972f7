#!/usr/bin/env python3
"""Unit tests of hearsay.lab.run, drawing, report and events, on directories that the tests make.

  lab_units.py          runs all functions test_*, each in its own empty directory; prints those that fail
"""
import json
import math
import os
import re
import shutil
import sys
import tempfile
import traceback
import xml.etree.ElementTree

import numpy as np

import hearsay.lab
from hearsay.lab import drawing, events, feed, graph, output, page, report, run

ROW = ('{"phase": "training", "round": 1, "loss": 0.5, "time_s": 8, "compute_s": 4, "wait_s": 2, "mix_s": 1, "bytes_sent": 7, '
       '"relative_drift": 0.25, "drift_round": 1}\n')


def put(name, text):
    os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
    with open(name, "wb") as f:
        f.write(text if isinstance(text, bytes) else text.encode())


def start(round_, at='"2026-11-22T13:33:02Z"'):
    return f'{{"start": true, "at": {at}, "from_round": {round_}}}\n'


def row(round_, more=""):
    return f'{{"phase": "training", "round": {round_}{more}}}\n'


def peer(text, **limits):
    """Writes a metrics.jsonl with this text, and returns the peer that hearsay.lab reads from it."""
    put("one/metrics.jsonl", text)
    return hearsay.lab.load("one", run.Limits(**limits)).peers[0]


def refused(why, call, *arguments, **more):
    try:
        call(*arguments, **more)
    except hearsay.lab.InputError as error:
        assert why in str(error) and "\n" not in str(error), f"{why!r} is not in {error}"
        return
    raise AssertionError(f"accepted, expected: {why}")


# ---- Reading metrics.jsonl ----


def test_rows():
    p = peer(start(0) + row(1, ', "loss": 2.5, "accuracy": null, "rung": "qsgd:4", "bytes_sent": 10, "time_s": 0.5, "new": []')
             + row(2, ', "loss": 1.5, "settle_rounds": 3, "rung": null'))
    assert len(p) == 2 and len(p.starts) == 1 and p.starts[0].at_s == 1795354382
    assert p.columns["loss"].tolist() == [2.5, 1.5] and np.isnan(p.columns["accuracy"]).all() and np.isnan(p.columns["gamma"]).all()
    assert p.step().tolist() == [1, 5]
    assert p.columns["rung"].tolist() == ["qsgd:4", ""] and p.columns["phase"].tolist() == ["training"] * 2
    assert math.isnan(p.sent()[1])
    assert len(peer("")) == 0


def test_a_later_start_replaces_rounds_and_keeps_their_cost():
    p = peer(start(0) + row(1, ', "time_s": 1, "bytes_sent": 10, "bytes_received": 1')
             + row(2, ', "time_s": 2, "bytes_sent": 20, "bytes_received": 2, "loss": 7')
             + row(3, ', "time_s": 3, "bytes_sent": 30, "bytes_received": 3')
             + start(1) + row(2, ', "time_s": 0.5, "bytes_sent": 5, "bytes_received": 4, "loss": 8'))
    assert len(p) == 2 and p.columns["start"].tolist() == [0, 1] and p.columns["loss"][1] == 8
    assert p.columns["bytes_sent"][1] == 5 and p.sent().tolist() == [10, 35]
    assert p.received()[1] == 7 and p.seconds()[1] == 3.5


def test_lines_of_train():
    p = peer('{"start": true, "at": null}\n{"round": 9, "loss": 1, "accuracy": 0.5, "test_accuracy": 0.25, "test_loss": 2, "seconds": 4}\n')
    assert (p.columns["accuracy"][0], p.columns["test_loss"][0], p.columns["time_s"][0], p.starts[0].at_s) == (0.25, 2, 4, -1)
    assert math.isnan(p.columns["bytes_sent"][0])


def test_torn_at_each_byte():
    text = (start(0) + row(1, ', "loss": 1') + row(2, ', "loss": 2')).encode()
    for n in range(len(text)):
        assert len(peer(text[:n])) == max(0, text[:n].count(b"\n") - 1)


def test_refused_lines():
    for text, why in (
            ("{\n", "line 1: found no JSON"), (start(0) + "\n", "line 2: found no JSON"),
            (start(0) + row(1, ', "loss": NaN'), "line 2: found no JSON"), (row(1, ', "loss": Infinity'), "line 1: found no JSON"),
            (row(1, ', "loss": 1e999'), "line 1: loss: found inf"), ("[1]\n", "line 1: found a list, expected an object"),
            ('"x"\n', "line 1: found a text"), (row(1, ', "loss": "2"'), "line 1: loss: found a text, expected a number or null"),
            (row(1, ', "loss": {}'), "line 1: loss: found an object"), (row(1.5), "line 1: round: found 1.5, expected a whole number"),
            (row(-1), "line 1: round: found -1"), (row("null"), "line 1: round: found none"),
            ('{"phase": "x"}\n', "line 1: round: found none"), (row(9007199254740993), "line 1: round: found 9007199254740993"),
            (row(10**30), "line 1: round: found a larger number"), (row("1" * 5000), "line 1: "),
            (row(1, f', "loss": {10**400}'), "line 1: loss: found a larger number"),
            (row(1, ', "time_s": -1'), "line 1: time_s: found -1, expected a number >= 0"),
            (row(1, ', "bytes_sent": true'), "bytes_sent: found a truth value"),
            (row(1, ', "round": 2'), "line 1: found no JSON"),
            (row(1, ', "rung": 5'), "line 1: rung: found a number, expected a text or null"),
            (row(1, r', "rung": "\ud800"'), "line 1: rung: found half a character"), (row(1, r', "rung": "\u0000"'), "line 1: rung: found a NUL"),
            ('{"start": true, "at": 5}\n', "line 1: at: found a number"), (start(0, '"yesterday"'), "line 1: at: expected a time"),
            (start(0, '"2026-13-22T13:33:02Z"'), "line 1: at: expected a time"), (start(-1), "line 1: from_round: found -1"),
            (b'{"a": "\0"}\n', "line 1: found no JSON"), (b"\xff\xfe\n", "line 1: found no JSON"), ("[" * 5000 + "\n", "line 1: found no JSON")):
        refused(why, peer, text)


def test_limits():
    long = " " * (64 * 1024)
    refused("line 1: too long, expected 65535 bytes at most", peer, long)
    refused("line 1: too long", peer, long + "\n")
    assert len(peer(('{"round": 1}' + long)[:64 * 1024 - 1] + "\n")) == 1
    refused("line 2: too many lines, expected 1 at most", peer, row(1) + row(2), lines=1)
    refused("too many starts", peer, start(0) * 3, starts=2)
    refused("rung: found a text of 64 bytes, expected 63 at most", peer, row(1, ', "rung": "%s"' % ("x" * 64)))
    refused("line 255: rung: more than 255 different texts", peer,
            "".join(f'{{"phase": "p", "round": {i}, "rung": "r{i}"}}\n' for i in range(1, 300)))
    put("many/peer-0/metrics.jsonl", ROW)
    put("many/peer-1/metrics.jsonl", ROW)
    refused("found 2 peers, expected 1 at most", hearsay.lab.load, "many", run.Limits(peers=1))
    refused("line 1: too many lines", hearsay.lab.load_all, ["many", "many"], run.Limits(lines=2))


# ---- Reading directories ----


def test_several_peers():
    put("d/peer-10/metrics.jsonl", ROW)
    put("d/peer-2/metrics.jsonl", ROW)
    put("d/peer-2/summary.json", '{"accuracy": 0.5}')
    put("d/other/metrics.jsonl", "none of ours\n")
    put("d/old.1/metrics.jsonl", "nor this\n")
    put("d/run.txt", "command=local\n--peers=2\nlr=0.02\ntopology=ring\n")
    put("d/summary.json", json.dumps({
        "n_peers": 2, "accuracy_min": 0.25, "accuracy_max": 0.75, "relative_drift": 0.125, "bytes_sent": 5, "bytes_sent_in_all": 99,
        "seconds": 3, "exit_code": 0, "verdict": {"text": "<b>", "rounds_skipped": 4},
        "peers": [{"name": "peer-10", "accuracy": 0.75}, {"name": "peer-2", "accuracy": 0.9}]}))
    r = hearsay.lab.load("d")
    assert r.several and r.label == "d" and [p.name for p in r.peers] == ["peer-2", "peer-10"]
    assert (r.verdict, r.command, r.finished, r.exit_code) == ("<b>", "local", True, 0)
    assert [p.figure("accuracy") for p in r.peers] == [0.5, 0.75]  # The summary in a peer's own directory takes precedence.
    assert r.settings["lr"] == "0.02" and r.summary["seconds"] == 3
    f = r.final
    assert (f.accuracy.low, f.accuracy.high, f.exact, f.sent, f.skipped, f.seconds) == (0.25, 0.75, 0.125, 99, 4, 3)
    assert all(map(math.isnan, (f.estimated, f.wall_s, f.received)))
    table = r.metrics()
    assert table["peer"].tolist() == ["peer-2", "peer-10"] and table["start"].tolist() == [0, 0] and table["loss"].tolist() == [0.5, 0.5]


def test_a_run_without_summary_has_the_figures_of_its_peers():
    put("d/a/metrics.jsonl", ROW)
    put("d/b/metrics.jsonl", ROW)
    put("d/b/summary.json", '{"bytes_sent": 11, "accuracy": 0.5, "relative_drift": 0.75, "drift_round": 1, "exit_code": 0}')
    put("d/c/notes.txt", "x")
    r = hearsay.lab.load("d/")
    f = r.final
    assert r.label == "d" and len(r.peers) == 2 and not r.finished and r.exit_code is None
    assert (f.sent, f.accuracy.low, f.accuracy.high, f.estimated, f.rounds, f.seconds) == (18, 0.5, 0.5, 0.5, 1, 8)
    assert all(map(math.isnan, (f.exact, f.exit_code, f.received)))
    t = r.peers[0].times
    assert (t.compute, t.wait, t.mix, t.rest) == (4, 2, 1, 1)
    put("d/b/summary.json", '{"relative_drift": 0.75, "drift_round": 8}')
    assert hearsay.lab.load("d").final.estimated == 0.75  # An estimate of an older round does not count in the mean.


def test_one_peer_or_train():
    put("d/metrics.jsonl", start(0, "null") + '{"round": 5, "loss": 1, "seconds": 2}\n')
    put("d/summary.json", '{"round": 5, "accuracy": 0.9, "test_accuracy": 0.5, "test_loss": 2, "seconds": 3, "exit_code": 0}')
    r = hearsay.lab.load("d")
    assert not r.several and len(r.peers) == 1
    f = r.final
    assert (f.accuracy.low, f.rounds, f.seconds, f.loss.low) == (0.5, 5, 3, 1) and math.isnan(f.sent)


def test_natural_order():
    names = ["a", "peer-0", "peer-2", "peer-10", "peer-10b", "peer-11", "peer-99999999999999999999998", "peer-99999999999999999999999"]
    for i, a in enumerate(names):
        for k, b in enumerate(names):
            assert np.sign(run.natural_order(a, b)) == np.sign(i - k), (a, b)


def test_labels_are_unique():
    for name in ("x/lr=1/seed-1", "x/lr=2/seed-1", "y/lr=2/seed-1", "z"):
        put(f"{name}/metrics.jsonl", ROW)
    runs = hearsay.lab.load_all(["x/lr=1/seed-1", "x/lr=2/seed-1", "y/lr=2/seed-1", "z"])
    assert [r.label for r in runs] == ["lr=1-seed-1", "lr=2-seed-1", "lr=2-seed-1-2", "z"]


def test_curve():
    more = ', "accuracy": %s, "bytes_sent": %d, "time_s": %d'
    put("d/peer-0/metrics.jsonl", start(0) + row(1, more % (0.5, 10, 1)) + row(2, more % ("null", 20, 2)) + row(3, more % (0.75, 30, 3)))
    put("d/peer-1/metrics.jsonl", start(0) + row(1, more % (0.25, 5, 2)) + row(2, more % (0.5, 6, 3)) + row(3, more % (1, 7, 4)))
    c = hearsay.lab.load("d").curve()
    assert (c.round.tolist(), c.sent.tolist(), c.seconds.tolist(), c.accuracy.tolist()) == ([1, 3], [15, 37], [2, 4], [0.25, 0.75])
    assert c.at("round", 2) == 0.5 and c.at("sent", 15) == 0.25 and math.isnan(c.at("seconds", 1)) and math.isnan(c.at("seconds", 5))


def test_refused_files():
    os.mkdir("d")
    refused("found no metrics.jsonl", hearsay.lab.load, "d")
    refused("d/none: cannot read: No such file", hearsay.lab.load, "d/none")
    refused("cannot read", hearsay.lab.load, "d\0")
    put("d/peer-0/metrics.jsonl", ROW)
    for text, why in (('{"accuracy_min": "high"}', "d/summary.json: accuracy_min: found a text, expected a number >= 0, or null"),
                      ('{"verdict": {"text": 5}}', "d/summary.json: text: found a number"),
                      ('{"verdict": {"rounds_skipped": 0.5}}', "d/summary.json: rounds_skipped: found 0.5"),
                      ('{"peers": [{"name": "peer-0", "test_loss": []}]}', "d/summary.json: test_loss: found a list"),
                      ("not JSON", "d/summary.json: found no JSON")):
        put("d/summary.json", text)
        refused(why, hearsay.lab.load, "d")
    put("d/summary.json", '{"verdict": 7, "peers": 7}')
    hearsay.lab.load("d")
    put("d/run.txt", "a=1\0")
    refused("d/run.txt: found a NUL", hearsay.lab.load, "d")
    put("d/run.txt", "x" * 20000)
    refused("d/run.txt: found a longer file", hearsay.lab.load, "d")
    os.remove("d/run.txt")
    put("d/run.txt/x", "a directory")
    refused("d/run.txt: found another kind of file, expected a regular file", hearsay.lab.load, "d")


def test_peers_of_different_runs_are_refused():
    put("d/a/metrics.jsonl", ROW)
    put("d/a/run.txt", "command=peer\n--shard=1/2\nlr=0.1\n")
    put("d/b/metrics.jsonl", ROW)
    put("d/b/run.txt", "command=peer\n--shard=2/2\nlr=0.1\n")
    hearsay.lab.load("d")
    put("d/b/run.txt", "command=peer\n--shard=2/2\nlr=0.2\n")
    refused("d/b: found a peer of another run than the directory before it (lr=0.1 there, 0.2 here)", hearsay.lab.load, "d")


def test_links_and_pipes_are_refused():
    put("d/peer-0/metrics.jsonl", ROW)
    os.symlink("/etc", "d/elsewhere")  # This symbolic link is ignored, because its name is not peer-N.
    hearsay.lab.load("d")
    for name, to, why in (("peer-1", "peer-0", "d/peer-1: found a symbolic link, which is not followed, expected a directory"),
                          ("summary.json", "/etc/passwd", "d/summary.json: found a symbolic link"),
                          ("metrics.jsonl", "peer-0/metrics.jsonl", "d/metrics.jsonl: found a symbolic link")):
        os.symlink(to, f"d/{name}")
        refused(why, hearsay.lab.load, "d")
        os.remove(f"d/{name}")
    os.mkfifo("d/run.txt", 0o600)
    refused("d/run.txt: found another kind of file", hearsay.lab.load, "d")


# ---- Writing CSV, figures and pages ----


def test_csv_fields():
    for text, field in (("a", "a"), ("=a,b", "\"'=a,b\""), ("-1.5", "-1.5"), ("-x", "'-x"), ("@", "'@"), ('a"b', '"a""b"'), ("", ""), ("1\n2", '"1\n2"')):
        assert report.csv_field(text) == field.encode(), text
    assert report.csv_field("\udcff") == b"\xff"
    for x, text in ((0.1, "0.1"), (100.0, "100"), (1e15, "1e+15"), (123456789012345.0, "123456789012345"), (1 / 3, "0.3333333333333333"), (0.1 + 0.2, "0.30000000000000004"),
                    (5e-324, "5e-324"), (0.0, "0"), (-2.5, "-2.5"), (float("nan"), "")):
        assert report.number_text(x) == text and (x != x or float(text) == x), (x, report.number_text(x))


def test_texts_of_strangers():
    assert page.escape("<a b='c'>&\"\x00\x7f\x85\udcff\u00fc") == "&lt;a b=&#39;c&#39;&gt;&amp;&quot;????\u00fc"
    assert report.latex_text("50%_$\\{x}\n") == r"50\%\_\$\textbackslash{}\{x\}?"
    assert drawing.literal("$x$\n") == r"\$x\$?"


def test_points_of_a_drift_are_there_once():
    more = ', "relative_drift": %s, "drift_round": %d, "local_steps": %d, "loss": 1'
    p = peer(row(1, more % (0.5, 0, 1)) + row(2, more % (0.5, 0, 1)) + row(3, more % (0.25, 3, 1)) + row(4, more % ("null", 3, 0)))
    xs, ys = drawing.points(p, "relative_drift", drawing.ROUND)
    assert xs.tolist() == [0, 3] and ys.tolist() == [0.5, 0.25]
    assert drawing.points(p, "loss", drawing.ROUND)[0].tolist() == [1, 2, 3]  # Rows of the consensus phase have no loss.


def test_band_against_a_plain_reference():
    random = np.random.default_rng(1)
    for i in range(5):
        rounds = np.sort(random.integers(1, 30, 25))
        put(f"d/peer-{i}/metrics.jsonl", "".join(row(r, f', "loss": {random.integers(9)}, "time_s": {random.integers(99)}') for r in rounds))
    r = hearsay.lab.load("d")
    xs, low, middle, high = drawing.band(r, "loss", drawing.SECONDS)
    values = {}
    for p in r.peers:
        newest = {s: (x, y) for s, x, y in zip(p.step(), p.seconds(), p.columns["loss"])}
        for s, point in newest.items():
            values.setdefault(s, []).append(point)
    for k, s in enumerate(sorted(values)):
        x, y = (sorted(column) for column in zip(*values[s]))
        assert (xs[k], low[k], middle[k], high[k]) == (x[(len(x) - 1) // 2], y[0], y[(len(y) - 1) // 2], y[-1])
    assert len(xs) == len(values)


def test_moving_average_against_a_plain_reference():
    random = np.random.default_rng(3)
    for n in (1, 2, 5, 50):
        rounds, ys = np.sort(random.integers(1, 60, 40)).astype(float), random.normal(size=40)
        mean = drawing.moving_average(rounds, ys, n)
        for i in range(40):
            assert math.isclose(mean[i], np.mean([y for r, y in zip(rounds[:i + 1], ys) if r > rounds[i] - n] if n > 1 else ys[i]), abs_tol=1e-12), (n, i)
    assert len(drawing.moving_average(np.zeros(0), np.zeros(0), 5)) == 0


def test_several_runs_have_a_line_and_a_band_each():
    for name in ("a", "b"):
        for i in range(3):
            put(f"{name}/peer-{i}/metrics.jsonl", "".join(row(r, f', "loss": {i + r % 2}, "test_loss": {i}, "local_steps": 1') for r in range(1, 9)))
    put("t/metrics.jsonl", row(1, ', "loss": 1') + row(2, ', "loss": 2'))
    runs = hearsay.lab.load_all(["a", "b", "t"])
    plot = next(one for one in drawing.FIGURES if (one.column, one.axis) == ("loss", drawing.ROUND))

    def drawn(runs, smooth=1):
        _, axes = drawing.figure()
        drawing.curves(axes, plot, runs, smooth=smooth)
        return axes

    axes = drawn(runs)
    assert (len(axes.lines), len(axes.collections)) == (3, 2), "one line per run, and a band where there are several peers"
    assert axes.lines[0].get_ydata().tolist() == [2, 1] * 4, "the median of the peers"
    assert axes.collections[0].get_paths()[0].get_extents().ymax == 3 and axes.collections[0].get_paths()[0].get_extents().ymin == 0
    assert drawn(runs, 2).lines[0].get_ydata().tolist() == [2] + [1.5] * 7 and "over 2 rounds" in drawn(runs, 2).get_ylabel()
    axes = drawn(runs[:1], 2)
    assert (len(axes.lines), len(axes.collections)) == (3, 0), "a single run of few peers has one line per peer"
    assert axes.lines[2].get_ydata().tolist() == [3] + [2.5] * 7
    for axis in ("round", "seconds", "bytes"):
        assert any((one.column, one.axis) == ("test_loss", axis) for one in drawing.FIGURES)


def test_columns_of_latex():
    put("a/peer-0/metrics.jsonl", row(4, ', "loss": 1, "accuracy": 0.5, "bytes_sent": 1000'))
    put("a/peer-1/metrics.jsonl", row(4, ', "loss": 3, "accuracy": 0.75, "bytes_sent": 1000'))
    put("a/peer-0/summary.json", '{"accuracy": 0.5}')
    put("a/peer-1/summary.json", '{"accuracy": 0.75}')
    runs = hearsay.lab.load_all(["a"])
    assert report.default_columns(runs) == ["peers", "rounds", "accuracy", "bytes_sent"], report.default_columns(runs)
    assert "\na & 2 & 4 & $62.50 \\pm 17.68$ & 2.00 kB \\\\\n" in report.latex(runs), report.latex(runs)
    assert "\na & $2.0000 \\pm 1.4142$ & -- \\\\\n" in report.latex(runs, ["loss", "seconds"]), report.latex(runs, ["loss", "seconds"])
    refused("--columns: found 'x', expected names of this list: peers, accuracy, test_loss", report.latex, runs, ["peers", "x"])
    refused("--columns: found peers twice", report.latex, runs, ["peers", "peers"])
    assert "n_peers" not in report.latex_columns() and len(report.latex_columns()) == len(page.COLUMNS) + 4
    put("b/metrics.jsonl", row(4, ', "loss": 2'))
    assert report.default_columns(hearsay.lab.load_all(["b"])) == ["peers", "rounds", "loss"]


def test_directories_of_experiments():
    for name in ("o/x/lr-1/seed-1", "o/x/lr-1/seed-10", "o/x/lr-1/seed-2", "o/x/lr-1/choose-seed-1", "o/y%2Fz/lr-2/seed-1", "o/old.1/seed-1"):
        put(f"{name}/peer-0/metrics.jsonl", ROW)
    for name in ("o/.lock", "o/evaluation.json", "o/compare.html", "o/x/lr-1/seed-1.log"):
        put(name, "x")
    os.makedirs("o/x/lr-1/seed-3")
    os.symlink("seed-1", "o/x/lr-1/seed-4")
    said = []
    runs = hearsay.lab.load_all(["o"], say=said.append)
    assert [r.label for r in runs] == ["x, seed 1", "x, seed 2", "x, seed 10", "y%2Fz, seed 1"], [r.label for r in runs]
    assert said == ["skipped 1 path without results of a run: o/x/lr-1/seed-3"], said
    put("o/x/lr-3/seed-1/summary.json", '{"round": 1}')
    assert [r.label for r in hearsay.lab.load_all(["o"])][:3] == ["x, lr-1, seed 1", "x, seed 2", "x, seed 10"]
    assert [r.label for r in hearsay.lab.load_all(["o/y%2Fz", "o/x/lr-1/seed-1", "o/x/lr-1/seed-1.log"])] == ["y%2Fz, seed 1", "seed-1"]
    put("s/seed-1/metrics.jsonl", ROW)  # The directory of a sweep of `train` over seeds only, without KEY=VALUE.
    put("s/.lock", "1")
    assert [r.label for r in hearsay.lab.load_all(["s"])] == ["s, seed 1"]
    os.makedirs("e/seed-1")
    refused("found no results in any run", hearsay.lab.load_all, ["e"])


def test_thinning_keeps_the_extremes():
    random = np.random.default_rng(2)
    for n in (1, 9, 10, 11, 500, 5000):
        xs, ys = np.arange(n, dtype=float), random.normal(size=n)
        x, y = drawing.thin(xs, ys, 10)
        assert len(x) <= max(10, 0) and (n > 10 or len(x) == n) and (np.diff(x) > 0).all() and (ys[x.astype(int)] == y).all()
        assert x[0] == 0 and x[-1] == n - 1 and y.min() == ys.min() and y.max() == ys.max()
        x, low, _, high = drawing.thin_band(xs, ys - 1, ys, ys + 1, 10)
        assert len(x) == min(n, 10) and low.min() == ys.min() - 1 and high.max() == ys.max() + 1 and (np.diff(x) > 0).all()


def test_graphs():
    put("d/peer-0/metrics.jsonl", ROW)

    def why(text):
        put("d/run.txt", text)
        try:
            return str(graph.edges_of(hearsay.lab.load("d")))
        except graph.NoGraph as error:
            return "no: " + str(error)

    assert why("command=local\n--peers=4\ntopology=ring\nseed=1\n") == "(4, [(0, 1), (0, 3), (1, 2), (2, 3)])"
    assert why("command=train\n") == "no: "
    assert "topology and a seed" in why("command=local\n")
    assert "300 peers" in why("--peers=300\ntopology=ring\nseed=1\n")
    assert "edges" in why("--peers=100\ntopology=complete\nseed=1\n")
    for spec in ("edges:/etc/passwd", "--help", "nonsense;x", "edges:FILE"):
        assert "unknown" in why(f"--peers=4\ntopology={spec}\nseed=1\n"), spec
    assert "exit code 2" in why("--peers=4\ntopology=nonsense\nseed=1\n")
    at = drawing.layout(4, [(0, 1), (1, 2), (2, 3), (0, 3)])
    sides = [np.linalg.norm(at[i] - at[(i + 1) % 4]) for i in range(4)]
    assert np.ptp(sides) < 0.01 and np.isfinite(drawing.layout(5, [(0, 1)])).all() and len(drawing.layout(1, [])) == 1


def test_pictures_are_the_same_bytes_again():
    put("d/metrics.jsonl", row(1, ', "loss": 1') + row(2, ', "loss": 0.5'))
    runs = hearsay.lab.load_all(["d", "d"])
    for kind in drawing.FORMATS:
        assert report.figure(runs, "x." + kind, "loss", "round") == report.figure(runs, "x." + kind, "loss", "round")
        assert b"hearsay-lab" in report.figure(runs, "x." + kind, "loss", "round")
    refused("no run has values", report.figure, runs, "x.png", "accuracy", "round")
    refused("expected .png, .svg or .pdf", report.figure, runs, "x.jpg", "loss", "round")
    assert page.page(runs) == page.page(runs)


def test_labels_cover_nothing():
    rng = np.random.default_rng(7)
    xs, ys = 10 ** rng.uniform(1, 4, 30), rng.uniform(0, 1, 30)
    fig, axes = drawing.figure(9, 5)
    drawing.log_axis(axes, "x", xs.min(), xs.max())
    axes.plot(xs, ys, "o", label="points")
    drawing.key(axes, "upper left")
    drawing.label_points(axes, xs, ys, [f"point:{i}" for i in range(30)], ["#000000"] * 30)
    fig.draw_without_rendering()
    boxes = [note.get_window_extent() for note in axes.texts] + [axes.get_legend().get_window_extent()]
    area = axes.get_window_extent()
    for i, box in enumerate(boxes):
        assert area.x0 <= box.x0 and box.x1 <= area.x1 and area.y0 <= box.y0 and box.y1 <= area.y1, i
        assert not any(box.overlaps(other) for other in boxes[:i]), i
        assert i == 30 or not any(box.contains(*at) for at in axes.transData.transform(np.stack([xs, ys], axis=1))), i
    stairs = drawing.frontier(np.array([1.0, 2, 4]), np.array([5.0, 6, 8]))
    assert [list(part) for part in stairs] == [[1, 2, 2, 4, 4], [5, 5, 6, 6, 8]]


def test_a_file_has_a_light_and_a_dark_mode():
    def drawn():
        fig, axes = drawing.figure()
        axes.plot([1, 2], [1, 2], color=drawing.PAPER.series[0], label="$x$ & y")
        drawing.key(axes, "outside", title="lines")
        return drawing.file_svg(fig, "a < b & c")
    text = drawn()
    assert text == drawn()
    root = xml.etree.ElementTree.fromstring(text)
    assert root[0].text == "a < b & c" and root[1].text.startswith("@media (prefers-color-scheme:dark)")
    assert f"stroke: {drawing.LIGHT[0]}" in text
    assert f'[style*="stroke: {drawing.LIGHT[0]}"]{{stroke:{drawing.DARK[0]} !important}}' in root[1].text
    assert f'[style*="fill: #ffffff"]{{fill:{drawing.NIGHT.ground} !important}}' in root[1].text
    assert any(e.text == "$x$ & y" for e in root.iter() if e.tag.endswith("text"))


def test_outputs():
    put("mine", "notes")
    refused("mine exists, and hearsay-lab did not create it; --force", output.check, "mine", b"mark", False)
    output.check("mine", b"mark", True)
    output.check("new", b"mark", False)
    refused("is a directory", output.check, ".", b"mark", True)
    refused("is not a directory", output.check, "none/new", b"mark", True)
    put("ours", b"x mark y")
    output.check("ours", b"mark", False)
    put("d/metrics.jsonl", ROW)
    hearsay.lab.load("d")
    refused("is an input", output.check, "d/metrics.jsonl", b"mark", True)
    os.symlink("ours", "link")
    output.write("link", b"new text")
    assert os.path.islink("link") and open("ours", "rb").read() == b"new text"
    new = output.Replacing("ours")
    new.file.write(b"half")
    new.close()
    assert open("ours", "rb").read() == b"new text" and sorted(os.listdir(".")) == ["d", "link", "mine", "ours"]
    os.chmod("ours", 0o600)
    output.write("ours", b"2")
    assert os.stat("ours").st_mode & 0o777 == 0o600


def test_crc32c():
    """Checks the test vectors of RFC 3720, appendix B.4, and the check value of the catalogue of parametrised CRC algorithms."""
    for data, crc in ((bytes(32), 0x8A9136AA), (b"\xff" * 32, 0x62A8AB43), (bytes(range(32)), 0x46DD794E), (bytes(range(31, -1, -1)), 0x113FDB5C),
                      (b"123456789", 0xE3069283), (b"", 0)):
        assert events.crc32c(data) == crc


def test_follow_sends_what_replay_sends():
    text = start(0) + row(1, ', "loss": 3, "bytes_sent": 10') + row(2, ', "loss": 2, "bytes_sent": 20') + start(1) + row(2, ', "loss": 1, "bytes_sent": 5')

    class Calls:
        def __init__(self):
            self.calls = []

        def on_round(self, name, step, figures):
            self.calls.append((name, step, figures["loss"], figures["bytes_sent"]))

        def restart(self, name, step):
            self.calls.append((name, step, "restart"))

    calls = Calls()
    tail = feed.Tail("p", "grows")
    assert not tail.poll(calls)
    for i, byte in enumerate(text.encode()):
        with open("grows", "ab") as f:
            f.write(bytes([byte]))
        if i % 7 == 0:
            tail.poll(calls)
    tail.poll(calls)
    assert calls.calls == [("p", 1, 3, 10), ("p", 2, 2, 20), ("p", 2, "restart"), ("p", 2, 1, 25)], calls.calls
    put("grows.new", row(1, ', "loss": 9, "bytes_sent": 1'))
    os.replace("grows.new", "grows")  # A new metrics.jsonl replaces the old one, because the run was started again.
    tail.poll(calls)
    assert calls.calls[4:] == [("p", 0, "restart"), ("p", 1, 9, 1)], calls.calls[4:]
    put("stopped/metrics.jsonl", row(1, ', "loss": 1'))
    calls.calls.clear()
    assert feed.follow("stopped", calls, 0.01, idle_s=0.05) is False and calls.calls[0][:3] == ("stopped", 1, 1)
    with open("grows", "ab") as f:
        f.write(b"x" * 70000)
    refused("grows: line 2: too long", tail.poll, calls)
    tail.close()


def main():
    failed = 0
    home = os.getcwd()
    for name, function in sorted(globals().items()):
        if not name.startswith("test_") or not re.search(sys.argv[1] if len(sys.argv) > 1 else "", name):
            continue
        directory = tempfile.mkdtemp(dir=home)
        os.chdir(directory)
        output._inputs.clear()  # Forgets the inodes of earlier inputs, because new files may get the same inodes.
        try:
            function()
        except BaseException:
            failed += 1
            print(f"# {name} failed:")
            traceback.print_exc(file=sys.stdout)
        finally:
            os.chdir(home)
            shutil.rmtree(directory)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
