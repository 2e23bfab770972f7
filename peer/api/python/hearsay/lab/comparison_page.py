"""hearsay.lab.comparison_page: the HTML page of a comparison: the best arms, a table of means, curves. The page loads no other file.

The attributes data-figure and data-value of a cell have the name and the exact value of a mean. The same result gives the same bytes.
"""
import math
from typing import Any, List, Sequence

from .. import __version__
from . import comparison, drawing
from .comparison import ArmResult, Result, Trial
from .page import STYLE, escape, exact
from .statistics import Spread

_HEAD = ("<!DOCTYPE html>\n<!-- made by hearsay-lab compare -->\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<meta http-equiv=\"Content-Security-Policy\" "
         "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n<title>hearsay-lab compare</title>\n<style>\n")
_CHOSEN = ("The learning rate of each arm was chosen from the same number of candidates: one run with each, trained on 90 % "
           "of the training samples, judged by its accuracy on the other 10 %. No test sample was used for the choice.")
_GIVEN = "The learning rate of each arm was given."

# For each measure: heading of its column, format of its numbers, factor by which they are multiplied.
_COLUMNS = {"accuracy": ("accuracy, %", ".2f", 100.0), "test_loss": ("test loss", ".4f", 1.0),
            "loss": ("training loss", ".4f", 1.0), "relative_drift": ("relative consensus distance", ".2e", 1.0),
            "rounds": ("rounds", ".0f", 1.0), "bytes_sent": ("MB sent", ".3f", 1e-6), "seconds": ("seconds", ".2f", 1.0)}


def _name(result: Result, arm: ArmResult) -> str:
    colour = result.arms.index(arm) % len(drawing.PAGE.series)
    return (f'<span><span class="swatch" style="background:var(--series-{colour})"></span>'
            f'<span class="name">{escape(arm.name)}</span></span>')


def _best(result: Result) -> str:
    lines = []
    for measure in result.ranked:
        best = result.best(measure)
        lines.append(f'<li><span class="badge good">best {escape(result.words(measure))}</span>'
                     f"{_name(result, best) if best is not None else ''}<span>{escape(result.best_note(measure))}</span></li>\n")
        for arm in result.arms:
            if best is not None and arm is not best and math.isfinite(arm.at[measure].mean):
                lines.append(f"<li>{_name(result, arm)}<span>{escape(result.difference_text(arm, measure))}</span></li>\n")
    for arm in result.arms:
        for i, trial in enumerate(arm.trials):
            if trial.state != comparison.DONE:
                lines.append(f'<li>{_name(result, arm)}<span>seed {result.seed + i}</span><span class="badge bad">'
                             f"{escape(comparison.STATE_TEXT[trial.state])}</span><span>{escape(trial.verdict)}</span></li>\n")
    return '<ul class="runs">\n' + "".join(lines) + "</ul>\n"


def _cell(measure: str, one: Spread) -> str:
    _, form, scale = _COLUMNS.get(measure, _COLUMNS["accuracy"])
    if not math.isfinite(one.mean):
        return f'<td data-figure="{measure}">&ndash;</td>'
    text = format(scale * one.mean, form)
    if math.isfinite(one.deviation):
        text += f' <span class="soft">&plusmn; {scale * one.deviation:{form}}</span>'
    return f'<td data-figure="{measure}" data-value="{exact(one.mean)}">{text}</td>'


def _table(result: Result) -> str:
    measures = result.ranked + [m for m in comparison.MEASURES if m != "accuracy"]
    heads = "".join(f"<th>{escape(_COLUMNS[m][0] if m in _COLUMNS else result.words(m) + ', %')}</th>" for m in measures)
    rows = []
    for arm in result.arms:
        edge = ' <span class="bad">(edge)</span>' if arm.is_edge else ""
        rows.append(f"<tr><td>{_name(result, arm)}</td><td>{arm.count(comparison.DONE)} of {result.n_seeds}</td>"
                    f"<td>{escape(arm.rate or '')}{edge}</td>{''.join(_cell(m, arm.at[m]) for m in measures)}</tr>\n")
    return (f'<div class="wide"><table>\n<thead><tr><th>arm</th><th>seeds</th><th>lr</th>{heads}</tr></thead>\n<tbody>'
            f'{"".join(rows)}</tbody></table></div>\n')


# ---- Curves of accuracy and consensus distance. ----


def _draw(axes: Any, trial: Trial, axis: str, colour: str, style: str) -> bool:
    """Draw a trial's accuracy by "round", "sent" or "seconds", or its "drift". Returns False if the trial has no such values."""
    if axis == "drift":
        pairs = [(x, y) for x, y in zip(*trial.drift) if 0 < y < drawing.LARGEST]
        xs, ys = [x for x, _ in pairs], [y for _, y in pairs]
    elif trial.curve is not None:
        stops = [(float(x), float(y)) for x, y in zip(getattr(trial.curve, axis), trial.curve.accuracy) if abs(x) < drawing.LARGEST]
        xs = [x * (1e-6 if axis == "sent" else 1.0) for x, _ in stops]
        ys = [100.0 * y for _, y in stops]
    else:
        return False
    if xs:
        axes.plot(xs, ys, color=colour, linewidth=1.3, linestyle=style, marker=None if axis == "drift" and len(xs) > 1 else "o",
                  markersize=2.6, alpha=0.9)
    return bool(xs)


_PLOTS = (("round", "round", "Test accuracy by round", "Of the worst peer, in percent."),
          ("sent", "MB sent by all peers", "Test accuracy by traffic", "Horizontal axis: megabytes sent by all peers."),
          ("seconds", "seconds", "Test accuracy by time", "Horizontal axis: seconds of the slowest peer."),
          ("drift", "round", "Relative consensus distance by round", "The median of the peers' estimates."))
_DASHES = ("-", "--", "-.", ":")


def _curves(result: Result) -> str:
    parts = []
    colours = drawing.PAGE.series
    for number, (axis, unit, title, note) in enumerate(_PLOTS):
        fig, axes = drawing.figure(style=drawing.PAGE)
        drawn = False
        for i, arm in enumerate(result.arms):
            for trial in arm.trials:
                drawn |= _draw(axes, trial, axis, colours[i % len(colours)], _DASHES[i // len(colours) % len(_DASHES)])
        if not drawn:
            continue
        axes.set_xlabel(unit)
        if unit == "round":
            axes.xaxis.get_major_locator().set_params(integer=True)
        axes.set_ylabel("relative consensus distance" if axis == "drift" else "test accuracy, %")
        if axis == "drift":
            axes.set_yscale("log")
        parts.append(f"<figure><figcaption>{title}<small>{note}</small></figcaption>\n"
                     f"{drawing.page_svg(fig, f'p{number}-', title)}\n</figure>\n")
    if not parts:
        return '<h2>Curves</h2>\n<p class="soft">No curves: no run has rows in a metrics.jsonl.</p>\n'
    return ('<h2>Curves</h2>\n<p class="soft">One line per run, in the colour of its arm. Evaluations during training take '
            f'<code>evaluate-samples</code> samples.</p>\n<div class="charts">\n{"".join(parts)}</div>\n')


def page(result: Result, title: str, chosen: bool) -> str:
    """The HTML text of the page. `chosen`: lr was chosen among candidates."""
    seconds = ("simulated: each link has its own bandwidth, so sending to many neighbours takes no more time than sending to one"
               if result.simulated else "by the clock")
    parts: List[str] = [
        _HEAD, STYLE, f"</style>\n</head>\n<body>\n<header><h1>{escape(title)}</h1></header>\n", _best(result),
        f'<h2>Arms</h2>\n<p class="soft">{_CHOSEN if chosen else _GIVEN} Means and standard deviations (of the sample) are over '
        "the seeds that ended with consensus. Differences to the best arm are between runs with the same seed (paired t-test at 5 %, "
        "no correction for many arms). All seeds use one test set, and the interval does not contain the sampling error of that set. "
        f"Seconds are {seconds}. Rounds include the consensus phase. Accuracy at a budget comes from evaluations "
        "during training.</p>\n", _table(result), _curves(result),
        f"<footer>Made by hearsay-lab {escape(__version__)} from summary.json and metrics.jsonl of each run. A dash: unknown for "
        "at least one run.</footer>\n</body>\n</html>\n"]
    return "".join(parts)
