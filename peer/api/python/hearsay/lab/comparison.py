"""hearsay.lab.comparison: results of a comparison of arms (configurations): means over seeds, the best arm, and the difference of
each other arm to the best.

    runs (hearsay.lab.load)  ->  Trial  ->  Spread of the trials of an arm  ->  table, JSON, CSV, LaTeX, HTML page

A mean includes only trials whose run ended with consensus. The output names all other trials.
"""
import csv
import dataclasses
import io
import math
from typing import Any, Dict, List, Optional, Sequence, Tuple

from . import run, runs, settings, statistics
from .cli import InputError
from .output import shown
from .report import latex_spread, latex_text
from .run import Curve
from .settings import Budget
from .statistics import NAN, Difference, Spread

LEFT, DONE, APART, FAILED = "left", "done", "apart", "failed"
STATES = (LEFT, DONE, APART, FAILED)
STATE_TEXT = {LEFT: "not done", DONE: "done", APART: "without consensus or diverged", FAILED: "failed"}
SUCCESS, FAILURE, NO_CONSENSUS = 0, 1, 3  # Exit codes of a comparison, and of its runs.

# Measures of a trial. Trials of a comparison with budgets also have accuracy_at_budget_1 and so on.
MEASURES = ("accuracy",  # Accuracy of the worst peer on the whole test set.
            "test_loss",  # Loss of the worst peer on the whole test set.
            "loss",  # Training loss of the worst peer at the end.
            "relative_drift",  # Relative consensus distance of the final models.
            "rounds",  # Rounds, including the consensus phase.
            "bytes_sent",  # Bytes sent by all peers.
            "seconds")  # Duration of the run in seconds. For `sim`: in simulated time.


@dataclasses.dataclass
class Trial:
    """The outcome of one run."""

    state: str = LEFT
    exit_code: Optional[int] = None  # Exit code of the run. None: not done.
    at: Dict[str, float] = dataclasses.field(default_factory=dict)  # Value of each measure. Missing: unknown.
    verdict: str = ""  # Verdict of the run, or the reason for its failure.
    curve: Optional[Curve] = None
    # Curve of the consensus distance: step counters, and the median of the peers' estimates at
    # each.
    drift: Tuple[Sequence[float], Sequence[float]] = ((), ())

    def figure(self, measure: str) -> float:
        """The value of a measure. NaN: unknown."""
        return self.at.get(measure, NAN)


def _curve_axis(axis: str) -> str:
    return "sent" if axis == "bytes" else axis


def _drift_curve(one: run.Run) -> Tuple[Sequence[float], Sequence[float]]:
    """Step counters, and the median of the peers' relative consensus distance at each."""
    by_step: Dict[float, List[float]] = {}
    for peer in one.peers:
        rows = zip(peer.step().tolist(), peer.columns["relative_drift"].tolist())
        for step, x in {step: x for step, x in rows if math.isfinite(x)}.items():  # If a step has several rows, the last one is used.
            by_step.setdefault(step, []).append(x)
    steps = sorted(by_step)
    return steps, [sorted(by_step[step])[(len(by_step[step]) - 1) // 2] for step in steps]


def take(job: runs.Job) -> Trial:
    """Reads the outcome of a run from the files in its directory."""
    code = 0 if job.finished else job.code
    if code == runs.INTERRUPTED or code is None:
        return Trial()
    if code not in (SUCCESS, NO_CONSENSUS):
        return Trial(FAILED, code, verdict=runs.reason(job))
    try:
        one = run.load(job.directory)
        if one.summary.get("finished") is not True:
            return Trial(FAILED, FAILURE, verdict="found no summary.json of a finished run")
        final = one.final
    except InputError as error:
        return Trial(FAILED, FAILURE, verdict=shown(str(error)))
    ended = FAILURE if one.exit_code is None else one.exit_code
    settle = final.settle_rounds if math.isfinite(final.settle_rounds) else 0.0
    figures = (final.accuracy.low, final.test_loss.high, final.loss.high, final.exact, final.rounds + settle, final.sent,
               final.seconds)
    diverged = one.summary.get("diverged")  # The summary of `train` has the field `diverged` instead of a verdict.
    verdict = one.verdict or (diverged if isinstance(diverged, str) else "")
    return Trial(DONE if ended == SUCCESS else APART if ended == NO_CONSENSUS else FAILED, ended, dict(zip(MEASURES, figures)),
                 shown(verdict), one.curve(), _drift_curve(one))


@dataclasses.dataclass
class ArmResult:
    """The trials of one arm, one per seed, and the spread of each measure."""

    name: str
    rate: Optional[str]  # Learning rate, "default" if none is given. None: no candidate could be chosen.
    trials: List[Trial]
    is_edge: bool = False  # `rate` is the smallest or the largest candidate.
    at: Dict[str, Spread] = dataclasses.field(default_factory=dict)  # Spread of each measure.

    def count(self, state: str) -> int:
        """The number of trials in a state."""
        return sum(trial.state == state for trial in self.trials)


class Result:
    """The results of all arms of a comparison or sweep."""

    def __init__(self, arms: List[ArmResult], seed: int, budgets: Sequence[Budget] = (), simulated: bool = True) -> None:
        self.arms, self.seed, self.simulated = arms, seed, simulated
        self.n_seeds = len(arms[0].trials)
        self.budgets = [one if one.most else Budget(one.axis, self._least(one.axis)) for one in budgets]
        for arm in arms:
            for trial in arm.trials:
                for i, budget in enumerate(self.budgets, 1):
                    x = budget.most
                    trial.at[f"accuracy_at_budget_{i}"] = (
                        trial.curve.at(_curve_axis(budget.axis), x) if trial.curve is not None and x is not None else NAN)
            done = [trial for trial in arm.trials if trial.state == DONE]
            arm.at = {m: statistics.spread([trial.figure(m) for trial in done]) for m in self.measures}

    def _least(self, axis: str) -> float:
        """The smallest total of bytes or seconds (`axis`) of all trials that are done. 0: no trial has a curve."""
        ends = [float(getattr(trial.curve, _curve_axis(axis))[-1]) for arm in self.arms for trial in arm.trials
                if trial.state == DONE and trial.curve is not None and len(trial.curve.round) > 0]
        return min(ends, default=0.0)

    @property
    def measures(self) -> List[str]:
        """All measures, including the accuracy at each budget."""
        return list(MEASURES) + self.budget_measures

    @property
    def budget_measures(self) -> List[str]:
        """The names of the measures "accuracy at budget"."""
        return [f"accuracy_at_budget_{i + 1}" for i in range(len(self.budgets))]

    @property
    def ranked(self) -> List[str]:
        """The measures for which the best arm is named."""
        return ["accuracy"] + self.budget_measures

    def budget(self, measure: str) -> Optional[Budget]:
        """The budget (bytes or seconds) of a measure such as accuracy_at_budget_1. None: the measure has no budget."""
        return self.budgets[int(measure.rsplit("_", 1)[1]) - 1] if measure in self.budget_measures else None

    def words(self, measure: str) -> str:
        """The text for a measure of accuracy, for example "accuracy at 1.2 MB"."""
        budget = self.budget(measure)
        if budget is None:
            return "accuracy"
        if not budget.most:
            return "accuracy at the budget (unknown: no run is done)"
        return f"accuracy at {budget.most * 1e-6:.4g} MB" if budget.axis == "bytes" else f"accuracy at {budget.most:.4g} s"

    def best(self, measure: str) -> Optional[ArmResult]:
        """The arm with the highest mean among the arms in which all trials are done. None: no such arm."""
        found: Optional[ArmResult] = None
        for arm in self.arms:
            if arm.count(DONE) == self.n_seeds and arm.at[measure].mean > (found.at[measure].mean if found else -math.inf):
                found = arm
        return found

    def difference(self, arm: ArmResult, measure: str) -> Difference:
        """The paired difference of an arm to the best arm, over the seeds that both have done."""
        best = self.best(measure)
        if best is None:
            return Difference(0)
        mine, others = ([trial.figure(measure) if trial.state == DONE else NAN for trial in one.trials] for one in (arm, best))
        return statistics.paired(mine, others)

    def ties(self, measure: str) -> List[ArmResult]:
        """The arms whose difference to the best arm is not more than seed noise."""
        best = self.best(measure)
        return [arm for arm in self.arms if best is not None and arm is not best
                and self.difference(arm, measure).kind == statistics.SAME]

    def difference_text(self, arm: ArmResult, measure: str) -> str:
        """A text such as "-0.22 points (95 % interval -0.32 to -0.12), p = 0.005, 5 paired seeds"."""
        d = self.difference(arm, measure)
        seeds = f"{d.n} paired seed{'' if d.n == 1 else 's'}"
        if not math.isfinite(d.mean):
            return "unknown: no seed is done for both arms"
        if d.kind == statistics.UNKNOWN:
            return f"{100 * d.mean:+.2f} points, {seeds}: noise unknown"
        if not d.low < d.high and d.kind == statistics.SAME:
            return f"equal on all {d.n} seeds"
        p = "p < 0.001" if d.p < 0.001 else f"p = {d.p:.2g}"
        text = f"{100 * d.mean:+.2f} points (95 % interval {100 * d.low:+.2f} to {100 * d.high:+.2f}), {p}, {seeds}"
        return text + (": no difference beyond seed noise" if d.kind == statistics.SAME else "")

    def unknown(self, measure: str) -> int:
        """The number of arms without a value of a measure. 0 if no best arm is known."""
        return sum(not math.isfinite(arm.at[measure].mean) for arm in self.arms) if self.best(measure) is not None else 0

    def best_lines(self, measure: str) -> List[str]:
        """One line for the best arm by a measure, and one for the difference of each other arm."""
        best = self.best(measure)
        lines = [f"best {self.words(measure)}: {f'{best.name}, ' if best is not None else ''}{self.best_note(measure)}"]
        for arm in self.arms:
            if best is not None and arm is not best and math.isfinite(arm.at[measure].mean):
                lines.append(f"  {arm.name}: {self.difference_text(arm, measure)}")
        return lines

    def best_note(self, measure: str) -> str:
        """The value of the best arm, and for how many arms the measure is unknown."""
        best = self.best(measure)
        if best is None:
            return "unknown: no arm has a value for all of its seeds"
        text, unknown = percent_spread(best.at[measure]), self.unknown(measure)
        if unknown:
            text += f"; unknown for {unknown} of {len(self.arms)} arms"
            text += ": first evaluated after the budget, or ended before the budget" if self.budget(measure) is not None else ""
        return text if math.isfinite(best.at[measure].deviation) else text + " (one seed: noise unknown)"

    def missing(self) -> List[str]:
        """One line per trial that is excluded from the means, and one with the number of trials that are not done."""
        lines = [f"excluded from the means: {arm.name}, seed {self.seed + i}: {state_text(trial)}"
                 for arm in self.arms for i, trial in enumerate(arm.trials) if trial.state not in (DONE, LEFT)]
        left = self.counts()["n_left"]
        return lines + ([f"not done: {left} of {len(self.arms) * self.n_seeds} runs"] if left else [])

    def counts(self) -> Dict[str, int]:
        """Numbers of trials of all arms by state: not done (n_left), done (n_done), without consensus (n_apart), failed
        (n_failed)."""
        return {f"n_{state}": sum(arm.count(state) for arm in self.arms) for state in STATES}

    def csv(self) -> str:
        """A line with the names of the columns, then one line per trial."""
        out = io.StringIO()
        rows = csv.writer(out, lineterminator="\r\n")
        rows.writerow(CSV_MARK.split(",") + self.measures + ["verdict"])
        for arm in self.arms:
            for i, trial in enumerate(arm.trials):
                rows.writerow([_cell(arm.name), _cell(arm.rate or ""), self.seed + i, trial.state,
                               "" if trial.exit_code is None else trial.exit_code]
                              + [_csv_number(x) for x in map(trial.figure, self.measures)]
                              + [_cell(trial.verdict)])
        return out.getvalue()

    def latex(self) -> str:
        """A LaTeX tabular that needs no package. Comments in it name the test and the number of missing runs."""
        has_rates = any(arm.rate is not None for arm in self.arms)
        heads = ["arm", "seeds"] + (["lr"] if has_rates else [])
        heads += [latex_text(self.words(m)) + " (\\%)" for m in self.ranked] + ["points to the best arm [95 \\% interval]"]
        heads += ["MB sent by all peers", "simulated s" if self.simulated else "seconds"]
        lines = [LATEX_MARK, "% Difference to the best arm in accuracy: paired t-test over the same seeds, no correction for many arms."]
        if any(arm.is_edge for arm in self.arms):
            lines.append("% *: the smallest or the largest lr that was tried.")
        n = self.counts()
        if n["n_done"] < len(self.arms) * self.n_seeds:
            lines.append(f"% INCOMPLETE: {n['n_left']} runs are not done, {n['n_failed']} failed, {n['n_apart']} ended without "
                         "consensus or diverged. These runs are excluded from the means.")
        lines += ["\\begin{tabular}{l" + "r" * (len(heads) - 1) + "}", "\\hline", " & ".join(heads) + " \\\\", "\\hline"]
        for arm in self.arms:
            done = arm.count(DONE)
            cells = [latex_text(arm.name), str(done) if done == self.n_seeds else f"{done} of {self.n_seeds}"]
            cells += [latex_text(arm.rate or "--") + ("$^*$" if arm.is_edge else "")] if has_rates else []
            cells += [latex_spread(arm.at[m], 100, 2) for m in self.ranked] + [self._latex_difference(arm)]
            cells += [latex_spread(arm.at["bytes_sent"], 1e-6, 2), latex_spread(arm.at["seconds"], 1, 1)]
            lines.append(" & ".join(cells) + " \\\\")
        return "\n".join(lines + ["\\hline", "\\end{tabular}", ""])

    def _latex_difference(self, arm: ArmResult) -> str:
        d = self.difference(arm, "accuracy")
        if arm is self.best("accuracy"):
            return "best"
        if not math.isfinite(d.mean):
            return "--"
        text = f"${100 * d.mean:+.2f}$"
        return text + (f" $[{100 * d.low:+.2f}, {100 * d.high:+.2f}]$" if math.isfinite(d.low) else "")


PAGE_MARK = b"<!-- made by hearsay"  # A page of hearsay-lab compare, or of the former hearsay compare.
CSV_MARK = "arm,lr,seed,state,exit_code"
LATEX_MARK = "% made by hearsay-lab: mean and standard deviation over seeds"
# Line below a table of means with standard deviations.
NOISE_NOTE = ("+-: standard deviation over seeds (of the sample). Differences: paired t-test at 5 % over the same seeds, "
              "no correction for many arms")


def _cell(text: str) -> str:
    """A field of CSV. A quote precedes a text that a spreadsheet would run as a formula."""
    return "'" + text if text.startswith(("=", "+", "-", "@")) and settings.number(text) is None else text


def _csv_number(x: float) -> str:
    """The shortest text that is read back as x. "": x is unknown."""
    text = repr(x) if math.isfinite(x) else ""
    return text[:-2] if text.endswith(".0") else text


# ---- Numbers as text. ----


def state_text(trial: Trial) -> str:
    """The state of a trial with its verdict, for example "failed: exit code 2: ..."."""
    return STATE_TEXT[trial.state] + (f": {trial.verdict}" if trial.verdict else "")


def number(x: float, form: str) -> str:
    """A number in a format of format(). "-": unknown."""
    return "-" if not math.isfinite(x) else format(x, form if abs(x) < 1e6 else ".4g")


def percent(x: float) -> str:
    """A share in percent, for example "98.12 %". "-": unknown."""
    return "-" if not math.isfinite(x) else f"{100 * x:.2f} %"


def percent_spread(one: Spread) -> str:
    """Mean and standard deviation in percent, for example "98.12 % +- 0.10"."""
    return percent(one.mean) + (f" +- {100 * one.deviation:.2f}" if math.isfinite(one.deviation) else "")


def size(n: float) -> str:
    """Bytes in a decimal unit, for example "1.25 MB". "-": unknown."""
    if not math.isfinite(n):
        return "-"
    n, i = float(int(n)), 0
    while n >= 1000 and i < 5:
        n, i = n / 1000, i + 1
    return f"{n:.{2 if i else 0}f} {('B', 'kB', 'MB', 'GB', 'TB', 'PB')[i]}"


def table(rows: Sequence[Sequence[str]], least: Sequence[int]) -> str:
    """Rows as aligned text: the first column to the left, the others to the right. `least`: minimum widths of the columns."""
    widths = [max([width] + [len(row[i]) for row in rows]) for i, width in enumerate(least)]
    return "\n".join(" ".join([row[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])])
                     for row in rows)


# ---- Results as JSON. ----


def json_text(text: str) -> str:
    """A path for JSON. Bytes that are not UTF-8 become "?"."""
    return text.encode("utf-8", "replace").decode()


def json_number(x: float) -> Optional[float]:
    """A number for JSON. None (null): unknown."""
    return x if math.isfinite(x) else None


def trial_object(trial: Trial, measures: Sequence[str]) -> Dict[str, Any]:
    """The JSON object of a trial: state, exit_code, measures, verdict."""
    return {"state": trial.state, "exit_code": trial.exit_code, **{m: json_number(trial.figure(m)) for m in measures},
            "verdict": trial.verdict or None}


def differences_object(result: Result, measure: str) -> List[Dict[str, Any]]:
    """The JSON list of the differences of all other arms to the best arm."""
    best = result.best(measure)
    found: List[Dict[str, Any]] = []
    for arm in result.arms:
        if best is not None and arm is not best:
            d = result.difference(arm, measure)
            found.append({"arm": arm.name, "n": d.n, "mean": json_number(d.mean), "low": json_number(d.low),
                          "high": json_number(d.high), "p": json_number(d.p), "kind": d.kind})
    return found


def spread_object(one: Spread) -> Dict[str, Any]:
    """The JSON object of a spread: mean, deviation, least, most, n."""
    return {"mean": json_number(one.mean), "deviation": json_number(one.deviation), "least": json_number(one.least),
            "most": json_number(one.most), "n": one.n}
