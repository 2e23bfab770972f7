"""Runs one command with each value of one or more flags, and with several seeds.

  hearsay-lab sweep lr=0.01,0.03,0.1 --seeds 3 --out sweep -- local --peers 4 --model logreg
  hearsay-lab sweep lr=0.01,0.1 momentum=0,0.9 -- train --model lenet5 --data mnist:DIR

Several flags make a grid. Each run gives the same result as its command line, called by hand:

    OUT/lr=0.01,momentum=0/seed-1        its --out
    OUT/lr=0.01,momentum=0/seed-1.log    its stderr

The same command again continues an unfinished sweep and keeps finished runs. Exit code: 0 all runs ended with consensus, 1 a run
failed, 2 bad usage or input, 3 a run ended without consensus or diverged, 130 Ctrl-C (the results so far are printed).
"""
import argparse
import os
from typing import Any, Dict, List, Sequence

from . import comparison, program, runs, settings
from .cli import InputError
from .compare import (add_common_arguments, check_outputs, exit_code, jobs_of, make_log_directories, print_result,
                      warn_of_environment, write_outputs)
from .comparison import DONE, LEFT, STATES, ArmResult, Result, Trial
from .output import shown
from .runs import Job
from .settings import Arm, Setting

NAME = "sweep"
HELP = "run one command with each value of one or more flags, and with several seeds"

AXES, VALUES, RUNS = 8, 256, 10000  # Largest numbers of axes, of values of an axis, and of runs.
COMMANDS = ("local", "sim", "train")
# Flags that are not allowed in the command line of the runs, with the reason.
OURS = {"out": "each run has its own directory in --out of hearsay-lab sweep",
        "json": "it is a flag of hearsay-lab sweep: give it before the --",
        "print-config": "it prints the settings of one run", "check": "all runs are checked before the first one starts",
        "help": "see hearsay COMMAND --help"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `hearsay-lab sweep`."""
    parser.usage = "hearsay-lab sweep [options] KEY=VALUE,... [KEY=VALUE,...] -- local|sim|train [flags of the runs]"
    parser.add_argument("words", metavar="KEY=VALUE,...", nargs="*",
                        help="values of the flag --KEY. After these and all options, write -- and the command line of the runs")
    parser.add_argument("--seeds", metavar="N", default="1", help="number of seeds per setting; the first is the --seed of the runs (default 1)")
    add_common_arguments(parser, "hearsay-sweep", "the runs")


def _axes(words: Sequence[str], command: str, flags: Sequence[str], given: Sequence[str]) -> List[Setting]:
    axes: List[Setting] = []
    for word in words:
        key, value = settings.split_pair(word, "sweep")
        if key == "seed":
            raise InputError("sweep: seed: --seeds N takes N seeds")
        if key in OURS:
            raise InputError(f"sweep: {key}: {OURS[key]}")
        settings.check_key(key, "sweep", command, flags)
        if any(axis.key == key for axis in axes):
            raise InputError(f"sweep: found the key {key} twice, expected it once")
        if key in given:
            raise InputError(f"sweep: found {key}=... and the flag --{key} after the --, expected one of them")
        values = settings.check_values(settings.split_values(value, key, "sweep"), "sweep", key, VALUES)
        axes.append(Setting(key, values, "sweep"))
    if len(axes) > AXES:
        raise InputError(f"sweep: found {len(axes)} keys, expected at most {AXES}")
    return axes


def _escaped(text: str) -> str:
    """A value for the name of a directory: "/" becomes %2F and "%" becomes %25."""
    return text.replace("%", "%25").replace("/", "%2F")


def _cells(axes: Sequence[Setting]) -> List[Arm]:
    """The settings of the grid. The last key changes fastest."""
    arms: List[Arm] = [Arm("", "", {})]
    for axis in axes:
        arms = [Arm("", "", {**arm.values, axis.key: value}) for arm in arms for value in axis.values]
    named = []
    for arm in arms:
        name = ",".join(f"{key}={_escaped(value)}" for key, value in arm.values.items())
        if len(name.encode()) > settings.NAME_BYTES:
            raise InputError(f"sweep: found a setting that is too long for the name of a directory ({shown(name[:80])}...), "
                             f"expected at most {settings.NAME_BYTES} bytes")
        named.append(Arm(name, name, arm.values))
    return named


class CommandLine:
    """The command line after the --, split into command, flags and the value of --seed. The flags do not include --seed."""

    def __init__(self, words: Sequence[str]) -> None:
        if not words or words[0] not in COMMANDS:
            found = repr(shown(words[0])) if words else "nothing"
            raise InputError(f"sweep: found {found} after the --, expected local, sim or train, and its flags")
        self.command = words[0]
        self.seed = 1
        self.rest: List[str] = []
        self.given: List[str] = []  # Names of the flags in `rest`.
        waiting = list(words[1:])
        while waiting:
            word = waiting.pop(0)
            name, equals, value = word.partition("=")
            name = name[2:] if name.startswith("--") else ""
            if name == "seed":
                if not equals and not waiting:
                    raise InputError("sweep: --seed: found no value")
                self.seed = settings.whole(value if equals else waiting.pop(0), 0, 1 << 53, "sweep: --seed")
                continue
            if name in OURS:
                raise InputError(f"sweep: --{name} after the --: {OURS[name]}")
            if name:
                self.given.append(name)
            self.rest.append(word)


class _Sweep:
    def __init__(self, arguments: argparse.Namespace, line: CommandLine, axes: Sequence[Setting], n_seeds: int) -> None:
        self.out, self.line, self.axes, self.n_seeds = arguments.out, line, axes, n_seeds
        self.cells = _cells(axes)
        if len(self.cells) * n_seeds > RUNS:
            raise InputError(f"sweep: found {len(self.cells) * n_seeds} runs, expected at most {RUNS}")
        self.arms = [ArmResult(cell.name or "as given", None, [Trial() for _ in range(n_seeds)]) for cell in self.cells]

    def path(self, cell: Arm) -> str:
        """The directory of the runs of a setting."""
        return os.path.join(self.out, cell.directory) if cell.directory else str(self.out)

    def job(self, cell: Arm, seed: int) -> Job:
        """The job of a setting and a seed (from 0)."""
        out = os.path.join(self.path(cell), f"seed-{self.line.seed + seed}")
        flags = [f"--{key}={value}" for key, value in cell.values.items()]
        return Job(cell.name, [*self.line.rest, *flags, f"--seed={self.line.seed + seed}", f"--out={out}"], out, out + ".log",
                   cell.name)

    def do(self, runner: runs.Runner, progress: runs.Progress) -> None:
        """Run all jobs: first all settings with the first seed, then with the next, so that each setting has a result early."""
        jobs = [self.job(cell, seed) for seed in range(self.n_seeds) for cell in self.cells]
        place = {job.directory: (i % len(self.cells), i // len(self.cells)) for i, job in enumerate(jobs)}

        def ended(job: Job) -> None:
            (i, seed), trial = place[job.directory], comparison.take(job)
            self.arms[i].trials[seed] = trial
            if trial.state == LEFT:
                return
            name = ", ".join(part for part in (shown(job.name), f"seed {self.line.seed + seed}") if part)
            what = comparison.state_text(trial)
            if trial.state == DONE:
                what = f"accuracy {comparison.percent(trial.figure('accuracy'))}, {trial.figure('seconds'):.1f} s"
            progress.ended(f"{name}: {what}", job.finished, trial.state != DONE)

        runner.check(jobs)
        if runner.signals.asked:
            return
        lock = runs.Lock(self.out)
        runner.guard = lock.check
        try:
            make_log_directories(jobs)
            for job in jobs:
                if job.finished:
                    ended(job)
            runner.run(jobs, ended, progress.draw)
            lock.check()
        finally:
            progress.clear()
            lock.close()

    def table(self, result: Result) -> str:
        """The table that is printed to stdout."""
        has_peers = self.line.command != "train"
        heads = ["setting", "seeds", "accuracy", "worst", "best"] + (["drift", "sent"] if has_peers else []) + ["sim. s" if result.simulated else "seconds"]
        rows = [heads]
        for arm in result.arms:
            at = arm.at
            rows.append([arm.name, f"{arm.count(DONE)} of {self.n_seeds}",
                         comparison.percent_spread(at["accuracy"]), comparison.percent(at["accuracy"].least),
                         comparison.percent(at["accuracy"].most)]
                        + ([comparison.number(at["relative_drift"].most, ".2e"), comparison.size(at["bytes_sent"].mean)]
                           if has_peers else []) + [comparison.number(at["seconds"].mean, ".1f")])
        n = result.counts()
        others = "".join(f", {n[f'n_{state}']} {comparison.STATE_TEXT[state]}" for state in STATES
                         if state != DONE and n[f"n_{state}"] > 0)
        return "\n".join([comparison.table(rows, [7, 9, 17, 9, 9] + ([9, 10] if has_peers else []) + [8]), "",
                          *result.best_lines("accuracy"), *([comparison.NOISE_NOTE] if self.n_seeds > 1 else []),
                          "the best setting was chosen by test accuracy: for a paper, choose with hearsay-lab compare",
                          *result.missing(),
                          f"runs: {n['n_done']} of {len(result.arms) * self.n_seeds} done{others}", f"runs in {shown(self.out)}"])

    def json(self, result: Result, code: int, interrupted: bool) -> Dict[str, Any]:
        """The object that --json prints. README.md in this folder lists its fields."""
        measures = ("accuracy", "relative_drift", "bytes_sent", "seconds")
        listed: List[Dict[str, Any]] = []
        for cell, arm in zip(self.cells, result.arms):
            at = arm.at
            figures = {"accuracy_mean": at["accuracy"].mean, "accuracy_deviation": at["accuracy"].deviation,
                       "accuracy_worst": at["accuracy"].least, "accuracy_best": at["accuracy"].most,
                       "relative_drift_worst": at["relative_drift"].most, "bytes_sent_mean": at["bytes_sent"].mean,
                       "seconds_mean": at["seconds"].mean}
            listed.append({"setting": cell.name, "values": dict(cell.values), "out": comparison.json_text(self.path(cell)),
                           **{name: comparison.json_number(x) for name, x in figures.items()},
                           **{f"n_{state}": arm.count(state) for state in STATES},
                           "runs": [{"seed": self.line.seed + i, **comparison.trial_object(trial, measures),
                                     "out": comparison.json_text(self.job(cell, i).directory)} for i, trial in enumerate(arm.trials)]})
        best = result.best("accuracy")
        return {"sweep": {axis.key: list(axis.values) for axis in self.axes},
                "seeds": [self.line.seed + i for i in range(self.n_seeds)], "settings": listed,
                "best": None if best is None else self.cells[self.arms.index(best)].name, "ties": [arm.name for arm in result.ties("accuracy")],
                "differences": comparison.differences_object(result, "accuracy"),
                "n_runs": len(self.arms) * self.n_seeds, "interrupted": interrupted, "exit_code": code,
                "out": comparison.json_text(self.out),
                **result.counts()}


def run(arguments: argparse.Namespace) -> int:
    """Run the command, and return its exit code."""
    if "=" in (arguments.csv or "") and not arguments.words:
        raise InputError(f"--csv: found {shown(arguments.csv)}, expected a file; to print CSV write --csv - before KEY=VALUE,...")
    line = CommandLine(arguments.behind)
    path = program.find(arguments.hearsay)
    n_seeds = settings.whole(arguments.seeds, 1, 1000, "--seeds")
    one = _Sweep(arguments, line, _axes(arguments.words, line.command, program.flags(path, line.command), line.given), n_seeds)
    jobs = jobs_of(arguments, line.command)
    check_outputs(arguments, {})
    progress = runs.Progress(NAME, len(one.arms) * n_seeds)
    warn_of_environment(progress)
    with runs.Signals() as signals:
        one.do(runs.Runner(signals, path, line.command, jobs), progress)
        result = Result(one.arms, line.seed, simulated=line.command == "sim")
        code = exit_code(result, bool(signals.asked))
    print_result(arguments, result, one.table(result), one.json(result, code, bool(signals.asked)))
    write_outputs(result, {}, arguments)
    return code
