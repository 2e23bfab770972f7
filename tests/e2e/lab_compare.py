"""tests/e2e/lab_compare.py -- tests parts of `hearsay-lab compare`: settings files, statistics, choice of the learning rate.

    lab_compare.py settings|statistics DIR    unit tests without the program; DIR must be empty
    lab_compare.py figures DIR                checks the output of a comparison: again.out, and the files in its --out DIR
    lab_compare.py check FILE                 checks that the program accepts all arms of FILE, with built-in data
"""
import json
import math
import os
import sys

import numpy as np

from hearsay.lab import InputError, comparison, compare, program, runs, settings, statistics
from hearsay.lab.comparison import APART, DONE, FAILED, LEFT, ArmResult, Result, Trial
from hearsay.lab.run import Curve
from hearsay.lab.runs import Job
from hearsay.lab.settings import Budget

FLAGS = ["peers", "rounds", "epochs", "lr", "batch", "compress", "mixer", "data", "topology", "evaluate-every", "seed", "out",
         "fresh", "json", "check", "config", "error-feedback", "scenario", "model"]


def read(text, *sets):
    return settings.read("a.toml", text, sets, FLAGS)


def refused(expected, text, *sets):
    try:
        read(text, *sets)
    except InputError as error:
        assert expected in str(error), f"{str(error)!r} has no {expected!r}"
        return
    raise AssertionError(f"not refused: {text!r} {sets}")


def arms_of_sections():
    made = read('peers = 8\nlr = [0.010, 0.3]\nseeds = 3\nbudget = ["bytes", "seconds:20"]\nrounds = 40\n[choco]\ncompress = '
                '["topk:0.01", "qsgd:4"]\nbatch = [4, 8]\n["exact, 10"]\nmixer = "average"\ncompress = "none"\nrounds = 10\n')
    assert [arm.name for arm in made.arms] == [
        "choco,compress=topk:0.01,batch=4", "choco,compress=topk:0.01,batch=8", "choco,compress=qsgd:4,batch=4",
        "choco,compress=qsgd:4,batch=8", "exact, 10"], made.arms
    assert (made.command, made.seed, made.n_seeds, made.n_rates) == ("sim", 1, 3, 2)
    assert made.budgets == (Budget("bytes"), Budget("seconds", 20.0))
    assert made.arms[0].values == {"peers": "8", "rounds": "40", "compress": "topk:0.01", "batch": "4"}
    assert made.arms[4].values["rounds"] == "10", "a section wins over the top"
    assert made.arms[0].rates == ("0.010", "0.3") and made.arms[0].rate_directory(0) == "lr-0.010", "numbers keep their text"
    assert made.arms[0].is_edge(0) and made.arms[0].is_edge(1) and not read("lr = [1, 2, 3]").arms[0].is_edge(1)
    assert read("lr = 1").arms[0].name == "run" and not read("lr = 1").arms[0].is_edge(0)


def sets_win():
    made = read('epochs = 3\n[a]\nrounds = 7\n[b]\nbatch = 2\n', "batch=4,5", 'compress="topk:0.1,scope=layer"', "data=mnist:a,b=c")
    assert [arm.name for arm in made.arms] == ["a,batch=4", "a,batch=5", "b,batch=4", "b,batch=5"]
    assert made.arms[0].values == {"rounds": "7", "batch": "4", "compress": "topk:0.1,scope=layer", "data": "mnist:a,b=c"}
    assert made.arms[2].values["epochs"] == "3", "rounds of another section hides nothing here"
    assert read("seeds = 2\nrounds = 3", "epochs=2").arms[0].values == {"epochs": "2"}, "rounds and epochs replace each other"
    assert read("seeds = 2", "seeds=5").n_seeds == 5


def flags_of_runs():
    arm = read('data = "mnist:d"\nrounds = 400\nerror-feedback = true\nlr = [0.1, 0.2]\ncompress = "topk:0.1,scope=layer"').arms[0]
    assert arm.flags(1, 7, "out", False) == ["--data=mnist:d", "--rounds=400", "--error-feedback=true",
                                             "--compress=topk:0.1,scope=layer", "--evaluate-every=20", "--lr=0.2", "--seed=7",
                                             "--out=out"]
    tune = arm.flags(0, 7, "out", True)
    assert "--data=mnist:d,validate=0.1" in tune and "--data=mnist:d" not in tune, "lr is never chosen on the test set"
    assert "--data=glyphs,validate=0.1" in read("lr = 1").arms[0].flags(0, 1, "o", True)
    assert read("rounds = 3").arms[0].flags(0, 1, "o", False) == ["--rounds=3", "--evaluate-every=1", "--seed=1", "--out=o"]


def names_of_directories():
    assert settings.directory_name("a/b%.c") == "a%2Fb%25.c" and settings.directory_name(".x") == "%2Ex"
    assert settings.directory_name("evaluation.json") == "evaluation%2Ejson"
    assert settings.directory_name("compare.html") == "compare%2Ehtml" and settings.directory_name("lr-0.1") == "lr-0.1"


def refusals():
    for expected, text, *sets in (
            ("a.toml line 2: found the key 'rouns', which is no flag of hearsay sim, did you mean rounds?", "\nrouns = 3"),
            ("--set: found the key 'x', which is no flag of hearsay sim", "peers = 2", "x=1"),
            ("a.toml line 3: seeds: found in the section [a], expected above the first section", "peers = 2\n[a]\nseeds = 2"),
            ("a.toml line 1: out: each run has its own directory", 'out = "x"'),
            ("a.toml line 1: fresh: finished runs are kept", "fresh = true"),
            ("a.toml line 1: trace: parallel runs would write to one file", 'trace = "t"'),
            ("a.toml line 1: check: ", "check = true"),
            ("--set: config: this file has the settings", "peers = 2", "config=x"),
            ("a.toml line 1: command: found 'train', expected \"sim\" or \"local\"", 'command = "train"'),
            ("a.toml line 1: seeds: found '0', expected a whole number from 1 to 1000", "seeds = 0"),
            ("--set: seeds: found 'x', expected a whole number", "peers = 2", "seeds=x"),
            ("a.toml line 1: seed: found 2 values", "seed = [1, 2]"),
            ("a.toml line 1: budget: found 'hours', expected bytes, seconds, bytes:N or seconds:X", 'budget = "hours"'),
            ("budget: found 'seconds:-1'", 'budget = "seconds:-1"\nrounds = 3'),
            ("budget: found 'bytes:nan'", 'budget = "bytes:nan"\nrounds = 3'),
            ("a.toml line 1: budget: found neither rounds nor evaluate-every in the arm 'a'", 'budget = "bytes"\n[a]\npeers = 2'),
            ("a.toml line 1: batch: found '4.0' twice, expected it once", "batch = [4, 4.0]"),
            ("a.toml line 1: batch: found no value", "batch = []"),
            ("a.toml line 1: model: found no value", 'model = ""'),
            ("a.toml line 1: batch: found a list in a list", "batch = [[1], [2]]"),
            ("a.toml line 1: batch: found a date or time", "batch = 2026-01-01"),
            ("a.toml line 1: found a section in the section [a], expected settings. Put a name with a dot in quotes",
             "[a.b]\nbatch = 1"),
            ("a.toml line 1: batch: found a table", "batch = [{x = 1}]"),
            ("a.toml line 1: model: found a control character", 'model = "a\\nb"'),
            ("model: found a control character", 'model = "a\\u0000b"'),
            ("found a control character", '["a\\u001b[2J"]\nbatch = 1'),
            ("lr: found 2 values for the arm 'b' and 1 for 'a', expected the same number for each arm",
             "[a]\nlr = 1\n[b]\nlr = [1, 2]"),
            ("found two arms of the name 'a,batch=1'", '[a]\nbatch = [1, 2]\n["a,batch=1"]\nbatch = 1'),
            ("expected at most 128", "batch = " + str(list(range(1, 14))) + "\npeers = " + str(list(range(1, 14)))),
            ("batch: found 65 values, expected at most 64", "batch = " + str(list(range(1, 66)))),
            ("found an arm whose name is too long for a directory", f'["{"x" * 256}"]\nbatch = 1'),
            ("expected at most 10000",
             "seeds = 1000\nbatch = " + str(list(range(1, 12)))),
            ("a.toml: found no settings, expected the settings of at least one arm", "# nothing\n"),
            ("--set: batch: found no value between two commas or at an end", "peers = 2", "batch=1,,2"),
            ("--set: found 'batch', expected KEY=VALUE", "peers = 2", "batch"),
            ("--set: batch is set twice", "peers = 2", "batch=1", "batch=2"),
            ('--set: compress: found no " at the end', "peers = 2", 'compress="a'),
            ("a.toml line 2: found 'peers = 3', expected TOML", "peers = 2\npeers = 3"),
            ("a.toml", "peers = " + "9" * 5000),
            ("a.toml", "x = " + "[" * 5000)):
        refused(expected, text, *sets)


def older_files():
    refused('a.toml line 2: found \'model = lenet5\', expected TOML: model = "lenet5"', "seeds = 2\nmodel = lenet5\n")
    refused('expected TOML: lr = [0.1, 0.2]', "lr = 0.1, 0.2\n")
    refused('expected TOML: ["choco, 10 steps"]', "lr = 0.1\n[choco, 10 steps]\n")
    assert settings.as_toml("compress = topk:0.01, none  # two") == 'compress = ["topk:0.01", "none"]  # two'
    assert settings.as_toml("data = libsvm:a,test=b") == 'data = "libsvm:a,test=b"'
    assert settings.as_toml("x = 007") == 'x = "007"' and settings.as_toml("x = 1e-4") == "x = 1e-4"
    assert settings.as_toml("[a b]") == '["a b"]' and settings.as_toml("[a-b]") == "[a-b]"


def hostile_files(directory):
    def refused_file(expected, path):
        try:
            settings.read_text(path)
        except InputError as error:
            assert expected in str(error), error
            return
        raise AssertionError(path)

    fifo, large, binary = (os.path.join(directory, name) for name in ("fifo", "large", "binary"))
    os.mkfifo(fifo)
    with open(large, "wb") as f:
        f.write(b"#" * 32768)
    with open(binary, "wb") as f:
        f.write(b'x = "\xff"')
    refused_file("expected a regular file", fifo)
    refused_file("expected a regular file", directory)
    refused_file("expected a regular file", "/dev/zero")
    refused_file("expected at most 32767 bytes", large)
    refused_file("byte 5 is not UTF-8", binary)
    refused_file("cannot open", os.path.join(directory, "none"))


def statistics_by_hand():
    random = np.random.default_rng(1)
    for n in (2, 3, 17):
        x = (1e6 + random.standard_normal(n)).tolist()
        one = statistics.spread(x)
        assert math.isclose(one.mean, np.mean(x), rel_tol=1e-15) and math.isclose(one.deviation, np.std(x, ddof=1), rel_tol=1e-9)
        assert (one.n, one.least, one.most) == (n, min(x), max(x))
    assert math.isnan(statistics.spread([]).mean) and math.isnan(statistics.spread([1.0]).deviation)
    assert math.isnan(statistics.spread([1.0, math.nan]).mean) and math.isnan(statistics.spread([1.0, math.inf]).mean)
    # Quantiles of Student's t distribution at 5 % for 1, 4 and 30 degrees of freedom, and p(t = 2, 10 degrees) = 0.0734, from
    # printed tables.
    for freedom, t in ((1, 12.7062), (4, 2.77645), (30, 2.04227)):
        assert abs(statistics.t_quantile(freedom) - t) < 1e-4 and abs(statistics.t_p_value(t, freedom) - 0.05) < 1e-5
    assert abs(statistics.t_p_value(2.0, 10) - 0.07339) < 1e-5 and statistics.t_p_value(0.0, 3) == 1.0
    # Computed by hand: the differences 1, 2, 3 have mean 2, standard deviation 1 and standard error 1 / sqrt(3). With 2 degrees
    # of freedom t = 3.464 and p = 0.0742.
    d = statistics.paired([11.0, 22.0, 33.0], [10.0, 20.0, 30.0])
    assert (d.n, d.mean, d.kind) == (3, 2.0, statistics.SAME) and abs(d.p - 0.07418) < 1e-5, d
    assert abs(d.low - (2 - 4.30265 / 3 ** 0.5)) < 1e-4 and abs(d.high - (2 + 4.30265 / 3 ** 0.5)) < 1e-4, d
    # Results differ by 10 between seeds, but only by 0.1 between the two arms for each seed. Only a paired test detects a
    # difference that is so much smaller than the seed noise.
    d = statistics.paired([10.1, 20.11, 30.1, 40.12], [10.0, 20.0, 30.0, 40.0])
    assert d.kind == statistics.DIFFERENT and d.p < 0.01, d
    assert statistics.paired([1.0], [2.0]).kind == statistics.paired([], []).kind == statistics.UNKNOWN
    assert statistics.paired([1.0, 2.0], [2.0, 3.0]).kind == statistics.UNKNOWN, "two equal differences show no noise"
    assert statistics.paired([1.0, 2.0, 5.0], [2.0, 3.0, 6.0]).kind == statistics.DIFFERENT
    d = statistics.paired([0.5, 0.25], [0.5, 0.25])
    assert (d.mean, d.p, d.kind) == (0.0, 1.0, statistics.SAME)
    d = statistics.paired([1.0, math.nan, 3.0, 5.0], [0.0, 1.0, math.inf, 1.0])
    assert (d.n, d.mean) == (2, 2.5), "pairs without a finite value do not count"
    try:
        from scipy import stats
    except ImportError:
        return
    for n in (2, 3, 5, 10, 40):
        for _ in range(100):
            x = random.standard_normal(n)
            y = x + 0.3 * random.standard_normal(n) + 0.2
            d, p = statistics.paired(x.tolist(), y.tolist()), stats.ttest_rel(x, y).pvalue
            assert math.isclose(d.p, p, rel_tol=1e-9) and (d.kind == statistics.DIFFERENT) == (p < 0.05), (d, p)


def trial(accuracy, loss=0.5, state=DONE, curve=None):
    return Trial(state, {DONE: 0, APART: 3, FAILED: 1, LEFT: None}[state], {"accuracy": accuracy, "test_loss": loss}, "", curve)


def choices():
    choose = compare.choose
    assert choose([trial(0.8), trial(0.9), trial(0.85)]) == 1
    assert choose([trial(0.9, 0.5), trial(0.9, 0.4), trial(0.9, 0.4)]) == 1, "of equals the least loss, then the first"
    assert choose([trial(0.9, state=APART), trial(0.5)]) == 1 and choose([trial(math.nan), trial(0.5)]) == 1
    assert choose([trial(0.9), trial(0.8, state=LEFT)]) is None and choose([trial(0.9), trial(0.8, state=FAILED)]) is None
    assert choose([trial(0.9, state=APART)]) is None


def budgets_and_best():
    def curve(*stops):
        return Curve(*[np.array(column, dtype=float) for column in zip(*stops)])

    one = curve((1, 100, 1, 0.1), (2, 200, 2, 0.5), (3, 300, 3, 0.7))
    two = curve((1, 150, 1, 0.3), (2, 250, 4, 0.6))
    late = curve((9, 900, 9, 0.9), (10, 1000, 10, 0.9))
    result = Result([ArmResult("a", "1", [trial(0.9, curve=one), trial(0.8, curve=one)]),
                     ArmResult("b", "1", [trial(0.95, curve=two), trial(0.99, state=FAILED)]),
                     ArmResult("late", "1", [trial(0.7, curve=late), trial(0.7, curve=late)])], 5,
                    [Budget("bytes"), Budget("seconds", 2.5)])
    assert result.budgets[0].most == 250 and result.budgets[1].most == 2.5, "the least that all trials reached"
    first, last = result.arms[0].at, result.arms[2].at
    assert math.isclose(first["accuracy_at_budget_1"].mean, 0.6) and math.isclose(first["accuracy_at_budget_2"].mean, 0.6)
    assert math.isnan(last["accuracy_at_budget_1"].mean), "not evaluated before the budget"
    assert result.unknown("accuracy_at_budget_1") == 1
    assert result.best("accuracy").name == "a", "an arm of which a seed failed is not the best one"
    assert result.arms[1].at["accuracy"].n == 1 and result.missing() == ["excluded from the means: b, seed 6: failed"]
    assert "unknown for 1 of 3 arms" in result.best_lines("accuracy_at_budget_1")[0]
    d = result.difference(result.arms[1], "accuracy")
    assert d.n == 1 and d.kind == statistics.UNKNOWN, "the failed seed has no pair"
    single = Result([ArmResult("a", None, [trial(0.9)]), ArmResult("b", None, [trial(math.nan, state=LEFT)])], 1)
    assert single.best_lines("accuracy") == ["best accuracy: a, 90.00 %; unknown for 1 of 2 arms (one seed: noise unknown)"]
    assert single.missing() == ["not done: 1 of 2 runs"]
    pairs = Result([ArmResult(name, None, [trial(x + shift) for x in (0.5, 0.6, 0.8)])
                    for name, shift in (("low", -0.01), ("same", 0.0), ("best", 0.0))], 1)
    assert pairs.best("accuracy").name == "same" and [arm.name for arm in pairs.ties("accuracy")] == ["best"]
    assert pairs.best_lines("accuracy")[1:] == [
        "  low: -1.00 points (95 % interval -1.00 to -1.00), p < 0.001, 3 paired seeds", "  best: equal on all 3 seeds"], pairs.best_lines("accuracy")
    assert single.counts() == {"n_left": 1, "n_done": 1, "n_apart": 0, "n_failed": 0}
    rows = Result([ArmResult("=a,\"b", "0.1", [Trial(FAILED, 1, verdict="-x")])], 1).csv().split("\r\n")
    assert rows[0].startswith(comparison.CSV_MARK + ",accuracy,") and rows[1].startswith('"\'=a,""b",0.1,1,failed,1,,,'), rows
    assert rows[1].endswith(",'-x"), rows
    latex = Result([ArmResult("a_b & 5%", "0.1", [trial(0.5), trial(0.7)])], 1).latex()
    assert "a\\_b \\& 5\\% & 2 & 0.1 & $60.00 \\pm 14.14$ & best & -- & --" in latex and "INCOMPLETE" not in latex, latex
    latex = Result([ArmResult("a", "0.1", [trial(0.5), trial(0.7)], True), ArmResult("b", "0.2", [trial(0.4), Trial()])], 1, simulated=False).latex()
    assert "% INCOMPLETE: 1 runs are not done" in latex and "b & 1 of 2 & 0.2 & $40.00$ & $-10.00$ &" in latex, latex
    assert "a & 2 & 0.1$^*$ &" in latex and "& seconds \\\\" in latex, latex


def figures(directory):
    """Checks that JSON, CSV and page of a comparison agree with the summaries of its runs."""
    import csv
    import statistics as plain
    with open("again.out") as f:
        j = json.load(f)
    assert [a["arm"] for a in j["arms"]] == ["choco,compress=topk:0.3", "choco,compress=qsgd:4", "exact"], j
    assert j["n_done"] == 6 and j["n_apart"] == j["n_failed"] == j["n_left"] == 0 and not j["interrupted"]

    def close(a, b):
        return abs(a - b) < 1e-9 * max(1, abs(b))

    for a in j["arms"]:
        tried = a["choices"]
        assert [t["lr"] for t in tried] == ["0.001", "0.05"] and a["lr_at_edge"]
        for t in tried:
            text = open(t["out"] + "/run.txt").read()
            assert "data=mnist:digits,validate=0.1" in text and "choose-seed-1" in t["out"], text
        assert a["lr"] == max(tried, key=lambda t: (t["accuracy"], -t["test_loss"]))["lr"], a
        ends = [json.load(open(r["out"] + "/summary.json")) for r in a["runs"]]
        assert [r["seed"] for r in a["runs"]] == [1, 2] and all("/lr-" + a["lr"] + "/" in r["out"] for r in a["runs"])
        assert "validate" not in open(a["runs"][0]["out"] + "/run.txt").read()
        x = [e["accuracy_min"] for e in ends]
        assert close(a["accuracy"]["mean"], plain.mean(x)) and close(a["accuracy"]["deviation"], plain.stdev(x))
        assert close(a["bytes_sent"]["mean"], plain.mean(e["bytes_sent"] for e in ends))
        assert close(a["seconds"]["mean"], plain.mean(e["simulated_s"] for e in ends))
        assert close(a["relative_drift"]["most"], max(e["relative_drift"] for e in ends))
        assert a["accuracy_at_budget_1"]["mean"] is not None
    best = j["best"][0]
    means = {a["arm"]: a["accuracy"]["mean"] for a in j["arms"]}
    assert means[best["arm"]] == max(means.values()) and j["best"][1]["bytes"] > 0
    rows = list(csv.DictReader(open(directory + "/compare.csv")))
    assert len(rows) == 6 and all(r["state"] == "done" for r in rows)
    page = open(directory + "/compare.html").read()
    assert "<!-- made by hearsay-lab compare -->" in page and "<script" not in page and page.count("<svg") == 4
    for a in j["arms"]:
        assert f'data-figure="bytes_sent" data-value="{a["bytes_sent"]["mean"]:.15g}' in page, a["bytes_sent"]


def check(path):
    """Checks that the program accepts all arms of a file."""
    sets = ["batch=8"] + (["peers=8"] if path.endswith("many.toml") else [])
    hearsay = program.find()
    asked = settings.read(path, settings.read_text(path), sets, program.flags(hearsay, "sim"))
    jobs = [Job(arm.name, arm.flags(0, 1, "none/" + arm.directory, False), "none/" + arm.directory, "", arm.name)
            for arm in asked.arms]
    with runs.Signals() as signals:
        runs.Runner(signals, hearsay, asked.command, 2).check(jobs)
    assert len(jobs) > 1 and not os.path.exists("none"), "a check writes nothing"


if __name__ == "__main__":
    what, where = sys.argv[1:]
    if what == "figures":
        figures(where)
    elif what == "check":
        check(where)
    elif what == "statistics":
        for test in (statistics_by_hand, choices, budgets_and_best):
            test()
    else:
        for test in (arms_of_sections, sets_win, flags_of_runs, names_of_directories, refusals, older_files):
            test()
        hostile_files(where)
