"""Writes one self-contained HTML page of finished runs: verdicts, settings, results, curves, and the graph of the peers.

  hearsay-lab report out                               writes out/report.html
  hearsay-lab report a b                               several runs in one page, report.html in the current directory
  hearsay-lab report OUT                               all runs in the --out directory of compare or sweep
  hearsay-lab report a b --figure ab.pdf --plot loss --smooth 20
  hearsay-lab report a b --latex ab.tex                results as a LaTeX table
  hearsay-lab report a b --csv -                       all metrics as CSV

Figures: a single run of at most 8 peers has one line per peer. Otherwise each run has one line, the median of its peers, and a
band from their minimum to their maximum.

All runs are read and all outputs are checked before the first file is written. An existing file that hearsay-lab did not
create is replaced only with --force.

Format of --csv (RFC 4180: CRLF, quotes doubled): a line with the names of the columns, then one line per peer and round,
sorted by run, peer and round.

  run,peer,start,phase,rung,rung_by,round,rounds,...      then all numeric columns of metrics.jsonl

A start is one launch of the program, numbered from 0. A run that was interrupted and continued has several. Seconds and bytes
begin at 0 at each start. `rung` is the codec level of --compress auto, and `rung_by` is the reason for it (drift or link). An
unknown value is an empty field. A ' precedes a text that a spreadsheet would run as a formula.
"""
import argparse
import functools
import math
import os
import re
import sys
from typing import Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from . import output
from .cli import InputError
from .run import NAMES, WORDS, Range, Run, load_all
from .statistics import Spread, spread

NAME = "report"
HELP = "write an HTML page of finished runs, CSV, a LaTeX table or figures (PNG, SVG, PDF)"

SMOOTH_MAX = 1_000_000
_PLOTS = {"loss": "loss", "accuracy": "accuracy", "drift": "relative_drift", "test_loss": "test_loss"}
_LATEX_MARK = "% made by hearsay-lab report\n"
_NUMBER = re.compile(r"[0-9+\-.eE]+")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("dirs", metavar="DIR", nargs="+", help="the --out directory of a run, of one of its peers, or of compare or sweep")
    parser.add_argument("--out", metavar="FILE", help="HTML page. Default if there is no other output: DIR/report.html, or report.html "
                                                      "in the current directory for several DIRs")
    parser.add_argument("--csv", metavar="FILE", help="write all metrics as CSV, one line per peer and round; - is stdout")
    parser.add_argument("--latex", metavar="FILE", help="write a LaTeX tabular with one row per run; - is stdout")
    parser.add_argument("--columns", metavar="NAME,...", help="columns of --latex (default: peers, rounds, accuracy, relative_drift, "
                                                              "bytes_sent). An unknown name prints the list of names")
    parser.add_argument("--figure", metavar="FILE", action="append", default=[],
                        help="write a figure of all runs, as .png, .svg or .pdf; may be given several times")
    parser.add_argument("--plot", choices=sorted(_PLOTS), default="accuracy", help="quantity that --figure shows (default: accuracy)")
    parser.add_argument("--by", choices=("round", "seconds", "bytes"), default="round",
                        help="horizontal axis of --figure (default: round)")
    parser.add_argument("--smooth", metavar="N", type=int, help="draw each value of --figure as the mean over its round and the N - 1 "
                                                                "rounds before (default: 1, no smoothing)")
    parser.add_argument("--force", action="store_true", help="overwrite files even if hearsay-lab did not create them")


# ---- The output of --csv. ----


def number_text(x: float) -> str:
    """A number with the fewest digits that identify it. "": unknown."""
    from .page import exact

    return exact(x) if math.isfinite(x) else ""


def csv_field(text: str) -> bytes:
    """A text as a field of RFC 4180. Bytes that are not UTF-8 stay unchanged."""
    formula = text[:1] in ("=", "+", "-", "@", "\t", "\r") and not _is_number(text) if text else False
    quoted = any(c in text for c in ',"\r\n')
    body = ("'" if formula else "") + text.replace('"', '""')
    return (f'"{body}"' if quoted else body).encode("utf-8", "surrogateescape")


def _is_number(text: str) -> bool:
    try:
        return _NUMBER.fullmatch(text) is not None and math.isfinite(float(text))
    except ValueError:
        return False


def csv_lines(runs: Sequence[Run]) -> Iterator[bytes]:
    """The lines of --csv, first the names of the columns."""
    yield (",".join(("run", "peer", "start") + WORDS + NAMES) + "\r\n").encode()
    for run in runs:
        for peer in run.peers:
            head = csv_field(run.label) + b"," + csv_field(peer.name)
            words = [peer.columns[name] for name in WORDS]
            numbers = [peer.columns[name].tolist() for name in NAMES]
            for i, start in enumerate(peer.columns["start"].tolist()):
                fields = [head, b"%d" % start] + [csv_field(column[i]) for column in words]
                yield b",".join(fields + [number_text(column[i]).encode() for column in numbers]) + b"\r\n"


# ---- The output of --latex. ----

_LATEX: Dict[str, str] = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
                          ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}", "`": r"\textasciigrave{}"}
_LATEX.update((c, "\\" + c) for c in "&%$#_{}")


def latex_text(text: str) -> str:
    """A text with LaTeX escapes, so that LaTeX prints the text unchanged."""
    return "".join(_LATEX.get(c) or (c if c.isprintable() else "?") for c in text)


def latex_spread(one: Spread, scale: float, digits: int) -> str:
    """Mean and standard deviation as LaTeX mathematics; "--" for an unknown mean."""
    if not math.isfinite(one.mean):
        return "--"
    text = f"${one.mean * scale:.{digits}f}"
    return text + (f" \\pm {one.deviation * scale:.{digits}f}$" if math.isfinite(one.deviation) else "$")


def _over_peers(run: Run, name: str) -> Spread:
    """Mean and spread of a final value, such as the accuracy, over the peers of a run. Peers without the value are left out."""
    values: List[Range] = [getattr(peer.final, name) for peer in run.peers]
    return spread([x.low for x in values if math.isfinite(x.low)])


# Columns of means over peers, each as (field of Final, heading, factor, number of decimals).
_MEANS = (("accuracy", "test accuracy, %", 100.0, 2), ("test_loss", "test loss", 1.0, 4), ("loss", "training loss", 1.0, 4))
# Short headings of some columns of page.COLUMNS.
_HEADS = {"rounds": "rounds", "relative_drift": "relative consensus distance", "bytes_sent": "sent"}
# Heading of a column as LaTeX text, and the function that makes the cell of a run as LaTeX text.
Column = Tuple[str, Callable[[Run], str]]


def latex_columns() -> Dict[str, Column]:
    """All columns of --latex by name, except `run`, which is always the first."""
    from .page import COLUMNS, Form, readable

    def mean(name: str, scale: float, digits: int) -> Callable[[Run], str]:
        return lambda run: latex_spread(_over_peers(run, name), scale, digits)

    def final(number: Callable[..., float], form: Form) -> Callable[[Run], str]:
        return lambda run: latex_text(readable(number(run.final), form)) if math.isfinite(number(run.final)) else "--"

    found: Dict[str, Column] = {"peers": ("peers", lambda run: str(len(run.peers)))}
    found.update((name, (latex_text(head), mean(name, scale, digits))) for name, head, scale, digits in _MEANS)
    found.update((name, (latex_text(_HEADS.get(name, f"{group}, {head}")), final(number, form))) for group, head, name, number, form in COLUMNS)
    return found


def default_columns(runs: Sequence[Run]) -> List[str]:
    """The default columns of --latex: a short table. A column is left out if no run has a value for it."""

    def known(name: str, number: Callable[[Run], float]) -> List[str]:
        return [name] if any(math.isfinite(number(run)) for run in runs) else []

    outcome = [name for name, _, _, _ in _MEANS if any(math.isfinite(_over_peers(run, name).mean) for run in runs)]
    drift = known("relative_drift", lambda run: run.final.exact) or known("estimated_relative_drift", lambda run: run.final.estimated)
    return ["peers", "rounds"] + outcome[:1] + drift + known("bytes_sent", lambda run: run.final.sent)


def latex(runs: Sequence[Run], names: Optional[Sequence[str]] = None) -> str:
    """A tabular with one row per run: its label and the columns `names` (default: default_columns()). InputError: unknown name."""
    columns = latex_columns()
    names = default_columns(runs) if names is None else names
    for name in names:
        if name not in columns:
            raise InputError(f"--columns: found {output.shown(name[:80])!r}, expected names of this list: {', '.join(columns)}")
        if list(names).count(name) > 1:
            raise InputError(f"--columns: found {name} twice, expected it once")
    heads = ["run"] + [columns[name][0] for name in names]
    lines = [_LATEX_MARK, "% accuracy, test_loss and loss: mean and standard deviation (of the sample) over the peers of the run.\n"
             f"\\begin{{tabular}}{{l{'r' * (len(heads) - 1)}}}\n\\hline\n", " & ".join(heads), " \\\\\n\\hline\n"]
    for run in runs:
        lines.append(" & ".join([latex_text(run.label)] + [columns[name][1](run) for name in names]) + " \\\\\n")
    return "".join(lines) + "\\hline\n\\end{tabular}\n"


# ---- The output of --figure. ----


def figure(runs: Sequence[Run], path: str, plot_name: str, axis: str, smooth: int = 1) -> bytes:
    """The bytes of a figure file of all runs. `smooth`: rounds of a moving average."""
    from . import drawing

    plot = next((one for one in drawing.FIGURES if one.column == _PLOTS[plot_name] and one.axis == axis), None)
    if plot is None:
        raise InputError(f"--plot {plot_name} --by {axis}: there is no such figure, expected --by round")
    fig, axes = drawing.figure(style=drawing.PAPER)
    drawn = drawing.curves(axes, plot, runs, drawing.PAPER, smooth)
    if not drawn:
        raise InputError(f"--plot {plot_name} --by {axis}: no run has values for this figure")
    if drawing.has_bands(runs):
        colours = drawing.PAPER.series
        title = drawing.BAND if any(len(run.peers) > 1 for run in runs) else None
        drawing.legend(axes, [runs[i].label for i in drawn], [colours[i % len(colours)] for i in drawn], title=title)
    return drawing.render(fig, _format(path))


def _format(path: str) -> str:
    kind = os.path.splitext(path)[1][1:].lower()
    if kind not in ("png", "svg", "pdf"):
        raise InputError(f"--figure {output.shown(path)}: found the ending {kind or 'none'!r}, expected .png, .svg or .pdf")
    return kind


# ---- Running the command. ----

# An output file: its path, the mark that files of its kind contain, and the function that makes its bytes.
Output = Tuple[str, bytes, Callable[[], bytes]]


def _outputs(arguments: argparse.Namespace, runs: Sequence[Run]) -> List[Output]:
    """All outputs that the arguments ask for."""
    found: List[Output] = []
    others = arguments.csv or arguments.latex or arguments.figure
    if arguments.out or not others:
        from .page import MARK, page

        path = arguments.out or _default_page(arguments.dirs)
        found.append((path, MARK.encode(), lambda: page(runs).encode("utf-8", "replace")))
    if arguments.csv:
        head = next(csv_lines([]))
        found.append((arguments.csv, head, lambda: b"".join(csv_lines(runs))))
    if arguments.latex:
        names = None
        if arguments.columns is not None:
            names = [name.strip() for name in arguments.columns.split(",") if name.strip() != "run"]
        found.append((arguments.latex, _LATEX_MARK.encode(), lambda: latex(runs, names).encode("utf-8", "replace")))
    for path in arguments.figure:
        _format(path)
        found.append((path, b"hearsay-lab", functools.partial(figure, runs, path, arguments.plot, arguments.by, arguments.smooth or 1)))
    return found


def _default_page(dirs: Sequence[str]) -> str:
    """The path of the page without --out: in DIR, or in the current directory for several DIRs."""
    dirs = [path for path in dirs if os.path.isdir(path)]
    return os.path.join(dirs[0], "report.html") if len(dirs) == 1 else "report.html"


def _check_options(arguments: argparse.Namespace) -> None:
    """InputError for an option that has no effect, and for a wrong number."""
    if arguments.columns is not None and not arguments.latex:
        raise InputError("--columns: found without --latex, expected --latex FILE too: it chooses the columns of that table")
    if arguments.smooth is not None and not arguments.figure:
        raise InputError("--smooth: found without --figure, expected --figure FILE too: it smooths the lines of that figure")
    if arguments.smooth is not None and not 1 <= arguments.smooth <= SMOOTH_MAX:
        raise InputError(f"--smooth: found {arguments.smooth}, expected a whole number of rounds from 1 to {SMOOTH_MAX}")
    if [arguments.csv, arguments.latex].count("-") > 1:
        raise InputError("--csv - and --latex -: found two outputs for stdout, expected one")


def _check(outputs: Sequence[Output], force: bool) -> None:
    taken: List[str] = []
    for path, mark, _ in outputs:
        if path == "-":
            continue
        output.check(path, mark, force)
        if os.path.realpath(path) in taken:
            raise InputError(f"{output.shown(path)} is given for two outputs, expected different files")
        taken.append(os.path.realpath(path))


def run(arguments: argparse.Namespace) -> int:
    """Read the runs, check the outputs, and write them."""
    _check_options(arguments)
    runs = load_all(arguments.dirs, say=output.note)
    try:
        outputs = _outputs(arguments, runs)
        _check(outputs, arguments.force)
        made = [(path, make()) for path, _, make in outputs]
    except ImportError as error:
        raise InputError(str(error)) from error
    for path, data in made:
        if path == "-":
            sys.stdout.buffer.write(data)
        else:
            output.write(path, data)
            if not any(other == "-" for other, _ in made):
                sys.stdout.buffer.write(os.fsencode(path) + b"\n")
    sys.stdout.buffer.flush()
    return 0
