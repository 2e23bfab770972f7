"""Compares configurations ("arms") over several seeds, and tests whether their differences are more than seed noise.

FILE is TOML: settings of all arms, then a [section] per arm. A list makes one arm per value. A list for lr has candidates:
for each arm, the best one is chosen on validation data. peer/api/python/hearsay/lab/README.md describes the file.

    OUT/ARM/lr-X/choose-seed-N   one run per value of lr, trained on 90 % of the training samples, evaluated on the other 10 %
    OUT/ARM/lr-X/seed-N          with the chosen lr: seeds N, N + 1, ...
    OUT/ARM/lr-X/seed-N.log      stderr of that run
    OUT/compare.html, OUT/compare.csv

The same command again continues an unfinished comparison and keeps finished runs. Exit code: 0 all runs ended with consensus,
1 a run failed, 2 bad usage or input, 3 a run ended without consensus or diverged, 130 Ctrl-C (the results so far are printed).
"""
import argparse
import dataclasses
import json
import os
import stat
import sys
from typing import Any, Dict, List, Optional, Sequence

from . import comparison, output, program, runs, settings
from .cli import InputError
from .comparison import APART, DONE, FAILED, LEFT, ArmResult, Result, Trial
from .output import shown
from .runs import Job

NAME = "compare"
_EVALUATION = "evaluation.json"
HELP = 'compare several configurations ("arms") from one TOML file, each with several seeds'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `hearsay-lab compare`."""
    parser.add_argument("file", metavar="FILE", help="TOML file of settings, with a [section] per arm")
    parser.add_argument("--set", metavar="KEY=VALUE,...", action="append", default=[], dest="sets",
                        help="a setting for all arms that overrides the file; may be given several times")
    add_common_arguments(parser, "hearsay-compare", "runs, compare.html and compare.csv")


def add_common_arguments(parser: argparse.ArgumentParser, out: str, files: str) -> None:
    """Add the flags that compare and sweep have in common. `out`: default of --out. `files`: content of --out, for the help."""
    parser.add_argument("--out", metavar="DIR", default=out, help=f"directory for {files} (default {out})")
    parser.add_argument("--jobs", "-j", metavar="N", help="runs at a time (default: the number of processors for `sim`, otherwise 1)")
    parser.add_argument("--json", action="store_true", help="print one JSON object to stdout instead of the table")
    parser.add_argument("--csv", metavar="FILE", nargs="?", const="-",
                        help="also write one line of CSV per run to FILE; - prints these lines instead of the table")
    parser.add_argument("--latex", metavar="FILE", help="also write the table of means to FILE, as a LaTeX tabular; - prints it instead of "
                                                          "the table")
    parser.add_argument("--force", action="store_true", help="overwrite the FILE of --csv or --latex even if hearsay-lab did not create it")
    parser.add_argument("--hearsay", metavar="PATH", help="path of the program hearsay (default: $HEARSAY, else the one on PATH, "
                                                          "else the build of this checkout)")


# ---- Functions that compare and sweep share. ----


def jobs_of(arguments: argparse.Namespace, command: str) -> int:
    """The number of parallel runs: --jobs, or its default for the command."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if arguments.jobs is None:
        return cores if command == "sim" else 1
    return settings.whole(arguments.jobs, 1, 256, "--jobs")


def check_outputs(arguments: argparse.Namespace, names: Dict[str, bytes]) -> None:
    """Refuses outputs that would overwrite files of other programs or files of the runs. `names`: files that are written to
    --out, each with the mark that a file of this kind contains."""
    stdout = [flag for flag, is_used in (("--json", arguments.json), ("--csv -", arguments.csv == "-"),
                                         ("--latex -", arguments.latex == "-")) if is_used]
    if len(stdout) > 1:
        raise InputError(f"{' and '.join(stdout)}: found {len(stdout)} outputs for stdout, expected one")
    files = [(flag, path, mark) for flag, path, mark in (("--csv", arguments.csv, comparison.CSV_MARK), (
        "--latex", arguments.latex, comparison.LATEX_MARK)) if path not in (None, "-")]
    for flag, path, _ in files:
        parts = os.path.relpath(os.path.realpath(path), os.path.realpath(arguments.out)).split(os.sep)
        if parts[0] != os.pardir and (len(parts) > 1 or parts[0] in (*names, ".lock", _EVALUATION)):
            raise InputError(f"{flag} {shown(path)}: found a file of the runs in --out, expected another path")
    if len(files) > 1 and os.path.realpath(files[0][1]) == os.path.realpath(files[1][1]):
        raise InputError(f"--csv and --latex: found {shown(files[0][1])} for both, expected different files")
    for name, mark in names.items():
        path = os.path.join(arguments.out, name)
        if os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):
            raise InputError(f"{shown(path)} exists, and is not a regular file; use another --out")
        if os.path.lexists(path):
            output.check(path, mark, False, "use another --out")
    for _, path, text in files:
        output.check(path, text.encode(), arguments.force)


def warn_of_environment(progress: runs.Progress) -> None:
    """Warn about settings in the environment: runs do not get them, so that only file and command line decide the result."""
    names = program.ignored()
    if names:
        progress.say(f"warning: ignoring {', '.join(map(shown, names))} from the environment: runs get settings from file and command "
                     "line only")


def make_log_directories(jobs: Sequence[Job]) -> None:
    """Make the directories of the log files. InputError: a directory cannot be made, or a log is no regular file."""
    for directory in sorted({os.path.dirname(job.log) for job in jobs}):
        try:
            runs.make_directory(directory)
        except OSError as error:
            raise InputError(f"--out: cannot make the directory {shown(directory)}: {error.strerror}") from error
    for job in jobs:
        if os.path.lexists(job.log) and not stat.S_ISREG(os.lstat(job.log).st_mode):
            raise InputError(f"--out: {shown(job.log)}: found another kind of file, expected a regular file for the log of a run")


def exit_code(result: Result, interrupted: bool, choices: Sequence[Trial] = (), apart: bool = False) -> int:
    """The exit code of the command. `choices`: trials of the runs by which lr was chosen. `apart`: in some arm, none of these
    runs reached consensus."""
    n = result.counts()
    if interrupted and n["n_left"] > 0:
        return runs.INTERRUPTED
    if n["n_failed"] > 0 or any(trial.state == FAILED for trial in choices):
        return comparison.FAILURE
    if n["n_apart"] > 0 or apart:
        return comparison.NO_CONSENSUS
    return comparison.FAILURE if n["n_left"] > 0 else comparison.SUCCESS


def write_outputs(result: Result, files: Dict[str, bytes], arguments: argparse.Namespace) -> None:
    """Write `files` to the directory --out, and the outputs of --csv and --latex."""
    for name, data in files.items():
        output.write(os.path.join(arguments.out, name), data)
    if arguments.csv not in (None, "-"):
        output.write(arguments.csv, result.csv().encode())
    if arguments.latex not in (None, "-"):
        output.write(arguments.latex, result.latex().encode())


def print_result(arguments: argparse.Namespace, result: Result, table: str, fields: Dict[str, Any]) -> None:
    """Print the JSON object, CSV or LaTeX if the flags ask for it on stdout, otherwise the table."""
    if arguments.json:
        text = json.dumps(fields, separators=(",", ":")) + "\n"
    else:
        text = result.csv() if arguments.csv == "-" else result.latex() if arguments.latex == "-" else table + "\n"
    sys.stdout.write(text)


# ---- Running the comparison. ----


@dataclasses.dataclass(frozen=True)
class _Place:
    """Identifies a run of the comparison by arm, learning rate and seed."""

    arm: int  # Index of the arm.
    rate: int  # Index of the learning rate.
    seed: int  # Index of the seed, from 0.


class _Compare:
    def __init__(self, arguments: argparse.Namespace, asked: settings.Comparison, runner: runs.Runner,
                 progress: runs.Progress) -> None:
        self.arguments, self.asked, self.runner, self.progress = arguments, asked, runner, progress
        self.tune = [[Trial() for _ in range(asked.n_rates)] for _ in asked.arms]
        self.trial = [[Trial() for _ in range(asked.n_seeds)] for _ in asked.arms]
        self.choice: List[Optional[int]] = [None if asked.n_rates > 1 else 0 for _ in asked.arms]
        self.places: Dict[str, _Place] = {}  # Arm, learning rate and seed of each run, by the directory of the run.

    def path(self, place: _Place, choosing: bool) -> str:
        """The directory of a run. `choosing`: the run belongs to the runs by which lr is chosen."""
        arm = self.asked.arms[place.arm]
        name = f"{'choose-' if choosing else ''}seed-{self.asked.seed + place.seed}"
        return os.path.join(self.arguments.out, arm.directory, arm.rate_directory(place.rate), name)

    def job(self, place: _Place, choosing: bool) -> Job:
        """The job (process) for a run. `choosing`: the run belongs to the runs by which lr is chosen."""
        arm, out = self.asked.arms[place.arm], self.path(place, choosing)
        rate = arm.rate(place.rate)
        self.places[out] = place
        return Job(arm.name + (f", lr {rate}" if rate is not None else ""),
                   arm.flags(place.rate, self.asked.seed + place.seed, out, choosing), out, out + ".log",
                   f"{place.arm} {place.rate} {choosing}")

    def do(self, jobs: Sequence[Job], choosing: bool) -> None:
        """Check and run the jobs, and store a Trial with the outcome of each."""

        def ended(job: Job) -> None:
            place, trial = self.places[job.directory], comparison.take(job)
            (self.tune[place.arm] if choosing else self.trial[place.arm])[place.rate if choosing else place.seed] = trial
            if trial.state == LEFT:
                return
            name = f"{shown(job.name)}, {'to choose lr, ' if choosing else ''}seed {self.asked.seed + place.seed}"
            what = f"accuracy {comparison.percent(trial.figure('accuracy'))}" if trial.state == DONE else \
                comparison.state_text(trial)
            self.progress.ended(f"{name}: {what}", job.finished, trial.state != DONE)

        self.runner.check(jobs)
        if self.runner.signals.asked:
            return
        self.runner.guard()
        make_log_directories(jobs)
        for job in jobs:
            if job.finished:
                ended(job)
        self.runner.run(jobs, ended, self.progress.draw)

    def check_arms(self) -> None:
        """Check all arms with their first learning rate. InputError: a setting is wrong, and no run has started yet."""
        self.runner.check([self.job(_Place(arm, 0, 0), False) for arm in range(len(self.asked.arms))])

    def check_evaluation(self) -> None:
        """InputError if earlier runs in --out have evaluation settings that differ from the settings file.

        Curves and budgets of such runs would not be comparable.

        A run does not record these settings, because they do not change the model. OUT/evaluation.json records them.
        """
        path = os.path.join(self.arguments.out, _EVALUATION)
        now = {arm.directory: {key: arm.values.get(key) for key in ("evaluate-every", "evaluate-samples")} for arm in self.asked.arms}
        former: Dict[str, Any] = {}
        if os.path.lexists(path):
            try:
                former = json.loads(settings.read_text(path))
            except ValueError as error:
                raise InputError(f"{shown(path)}: {error}") from error
            if not isinstance(former, dict):
                raise InputError(f"{shown(path)}: found another JSON value, expected an object")
        for arm in self.asked.arms:
            then = former.get(arm.directory)
            if then is None or not os.path.isdir(os.path.join(self.arguments.out, arm.directory)):
                continue
            for key, value in now[arm.directory].items():
                found = then.get(key) if isinstance(then, dict) else then
                if found != value:
                    raise InputError(f"{key}: the runs of {shown(arm.name)} in {shown(self.arguments.out)} have "
                                     f"{found or 'the default'}, and {self.runner.source} has {value or 'the default'}; use another --out")
        output.write(path, (json.dumps({**former, **now}, indent=1) + "\n").encode())

    def run_all(self) -> None:
        """Run the jobs that choose a learning rate for each arm, then the jobs that are compared."""
        arms, rates = range(len(self.asked.arms)), range(self.asked.n_rates)
        if len(rates) > 1:
            self.do([self.job(_Place(arm, rate, 0), True) for rate in rates for arm in arms], True)
            self.choice = [choose(trials) for trials in self.tune]
        if not self.runner.signals.asked:
            chosen = [(arm, rate) for arm, rate in enumerate(self.choice) if rate is not None]
            self.do([self.job(_Place(arm, rate, seed), False) for seed in range(self.asked.n_seeds) for arm, rate in chosen],
                    False)

    def result(self) -> Result:
        """The results of all arms."""
        arms = []
        for arm, choice, trials in zip(self.asked.arms, self.choice, self.trial):
            rate = None if choice is None else arm.rate(choice) or "default"
            arms.append(ArmResult(arm.name, rate, trials, choice is not None and arm.is_edge(choice)))
        return Result(arms, self.asked.seed, self.asked.budgets, self.asked.command == "sim")

    def code(self, result: Result) -> int:
        """The exit code of the command, from the states of all runs."""
        choices = [trial for trials in self.tune for trial in trials] if self.asked.n_rates > 1 else []
        apart = self.asked.n_rates > 1 and any(all(trial.state == APART for trial in trials) for trials in self.tune)
        return exit_code(result, bool(self.runner.signals.asked), choices, apart)

    def table(self, result: Result) -> str:
        """The table that is printed to stdout."""
        heads = ["arm", "seeds", "lr", "accuracy", "test loss", "drift", "rounds", "sent",
                 "sim. s" if result.simulated else "seconds"]
        rows = [heads + [result.words(m)[len("accuracy "):] for m in result.budget_measures]]
        for arm in result.arms:
            at = arm.at
            rows.append([arm.name, f"{arm.count(DONE)} of {result.n_seeds}", (arm.rate or "") + (" *" if arm.is_edge else ""),
                         comparison.percent_spread(at["accuracy"]), comparison.number(at["test_loss"].mean, ".4f"),
                         comparison.number(at["relative_drift"].most, ".2e"), comparison.number(at["rounds"].mean, ".0f"),
                         comparison.size(at["bytes_sent"].mean), comparison.number(at["seconds"].mean, ".2f")]
                        + [comparison.percent_spread(at[m]) for m in result.budget_measures])
        lines = [comparison.table(rows, [3, 9, 9, 17, 9, 9, 7, 10, 9] + [17] * len(result.budgets)), ""]
        if any(arm.is_edge for arm in result.arms):
            lines.append("*: the smallest or the largest lr that was tried; a better value may lie outside")
        lines += [line for m in result.ranked for line in result.best_lines(m)]
        lines += [comparison.NOISE_NOTE] if result.n_seeds > 1 else []
        lines += [f"run to choose lr: {arm.name}, lr {arm.rate(i)}: {comparison.state_text(trial)}"
                  for arm, trials in zip(self.asked.arms, self.tune) for i, trial in enumerate(trials)
                  if self.asked.n_rates > 1 and trial.state != DONE]
        return "\n".join(lines + result.missing() + [f"runs in {shown(self.arguments.out)}"])

    def json(self, result: Result, code: int) -> Dict[str, Any]:
        """The object that --json prints. README.md in this folder lists its fields."""
        asked = self.asked
        arms: List[Dict[str, Any]] = []
        for i, (arm, one) in enumerate(zip(asked.arms, result.arms)):
            choices: List[Dict[str, Any]] = []
            for k, trial in enumerate(self.tune[i] if asked.n_rates > 1 else []):
                choices.append({**comparison.trial_object(trial, comparison.MEASURES), "lr": arm.rate(k),
                                "out": comparison.json_text(self.path(_Place(i, k, 0), True))})
            choice = self.choice[i]
            listed: List[Dict[str, Any]] = []
            for s, trial in enumerate(one.trials):
                listed.append({**comparison.trial_object(trial, result.measures), "seed": asked.seed + s})
                if choice is not None:
                    listed[-1]["out"] = comparison.json_text(self.path(_Place(i, choice, s), False))
            figures: Dict[str, Any] = {f"n_{state}": one.count(state) for state in comparison.STATES}
            figures.update((m, comparison.spread_object(one.at[m])) for m in result.measures)
            arms.append({"arm": arm.name, "values": dict(arm.values), "lr": one.rate, "lr_at_edge": one.is_edge,
                         "choices": choices, **figures, "runs": listed})
        best: List[Dict[str, Any]] = []
        for m in result.ranked:
            first, budget = result.best(m), result.budget(m)
            best.append({"by": m, "arm": first.name if first else None, "ties": [arm.name for arm in result.ties(m)],
                         "differences": comparison.differences_object(result, m),
                         "n_unknown": result.unknown(m)})
            if budget is not None:
                best[-1]["bytes" if budget.axis == "bytes" else "budget_seconds"] = budget.most or None
        return {"command": asked.command, "seed": asked.seed, "seeds": asked.n_seeds, "arms": arms, "best": best,
                **result.counts(), "interrupted": bool(self.runner.signals.asked), "exit_code": code,
                "out": comparison.json_text(self.arguments.out)}


def choose(trials: Sequence[Trial]) -> Optional[int]:
    """The index of the learning rate with the highest accuracy on validation data. Equal accuracy: the lowest loss, then the first.

    None: a run is not done or has failed, or no run ended with consensus.
    """
    if any(trial.state in (LEFT, FAILED) for trial in trials):
        return None
    found: Optional[int] = None
    for i, trial in enumerate(trials):
        accuracy, loss = trial.figure("accuracy"), trial.figure("test_loss")
        if trial.state != DONE or accuracy != accuracy:
            continue
        if found is None or accuracy > trials[found].figure("accuracy") or (
                accuracy == trials[found].figure("accuracy") and loss < trials[found].figure("test_loss")):
            found = i
    return found


def run(arguments: argparse.Namespace) -> int:
    """Run the command, and return its exit code."""
    text = settings.read_text(arguments.file)
    path = program.find(arguments.hearsay)
    command = settings.command_of(arguments.file, text, arguments.sets)
    asked = settings.read(arguments.file, text, arguments.sets, program.flags(path, command))
    jobs = jobs_of(arguments, command)
    if command == "local" and jobs > 1:
        raise InputError(f"--jobs: found {jobs} with command = \"local\", expected 1: parallel runs would share the "
                         "processors, and their seconds would be wrong")
    check_outputs(arguments, {"compare.html": comparison.PAGE_MARK, "compare.csv": comparison.CSV_MARK.encode()})
    total = len(asked.arms) * (asked.n_seeds + (asked.n_rates if asked.n_rates > 1 else 0))
    progress = runs.Progress(NAME, total)
    warn_of_environment(progress)
    with runs.Signals() as signals:
        one = _Compare(arguments, asked, runs.Runner(signals, path, command, jobs, shown(arguments.file)), progress)
        one.check_arms()
        if signals.asked:
            return runs.INTERRUPTED
        from . import comparison_page, drawing  # Imported here because matplotlib is slow to import, and other commands do not need it.

        drawing.need_matplotlib()
        failure: Optional[OSError] = None
        lock = runs.Lock(arguments.out)
        one.runner.guard = lock.check
        try:
            one.check_evaluation()
            one.run_all()
            progress.clear()
            result = one.result()
            code = one.code(result)
            lock.check()
            try:
                page = comparison_page.page(result, os.path.basename(arguments.file), asked.n_rates > 1)
                write_outputs(result, {"compare.html": page.encode(), "compare.csv": result.csv().encode()}, arguments)
            except OSError as error:  # A file could not be written. The table is still printed.
                failure = error
        finally:
            progress.clear()
            lock.close()
    print_result(arguments, result, one.table(result), one.json(result, code))
    if failure is not None:
        raise failure
    return code
