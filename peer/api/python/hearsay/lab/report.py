"""Writes one self-contained HTML page of finished runs: verdict (consensus or not), settings, results, curves, the peer graph.

  hearsay-lab report out                               writes out/report.html
  hearsay-lab report a b --out ab.html                 several runs in one page
  hearsay-lab report a b --figure ab.pdf --plot accuracy --by bytes
  hearsay-lab report a b --latex ab.tex                results as a LaTeX table
  hearsay-lab report a b --csv -                       all metrics as CSV

All runs are read and all outputs are checked before the first file is written. An existing file is replaced only if
hearsay-lab has made it, or with --force.

Format of --csv (RFC 4180: CRLF, quotes doubled): a head line, then one line per peer and round, sorted by run, peer and round.

  run,peer,start,phase,rung,rung_by,round,rounds,...      then all numeric columns of metrics.jsonl

A start is one launch of the program: a run that was interrupted and continued has several, numbered from 0. Seconds and bytes
begin at 0 at each start. `rung` is the level of --compress auto, and `rung_by` what chose it (drift or link). An unknown
value is an empty field. A text that a spreadsheet would run as a formula gets a ' in front.
"""
import argparse
import functools
import math
import os
import re
import sys
from typing import Callable, Dict, Iterator, List, Sequence, Tuple

from . import output
from .cli import InputError
from .run import NAMES, WORDS, Run, load_all

NAME = "report"
HELP = "one HTML page of finished runs, CSV, LaTeX, PNG, SVG or PDF figures"

_PLOTS = {"loss": "loss", "accuracy": "accuracy", "drift": "relative_drift"}
_LATEX_MARK = "% made by hearsay-lab report\n"
_NUMBER = re.compile(r"[0-9+\-.eE]+")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument("dirs", metavar="DIR", nargs="+", help="the --out directory of a run, or of one of its peers")
    parser.add_argument("--out", metavar="FILE", help="the page (default: report.html in the first DIR, if no other output is given)")
    parser.add_argument("--csv", metavar="FILE", help="write all metrics as CSV, one line per peer and round; - is stdout")
    parser.add_argument("--latex", metavar="FILE", help="write the results of the runs as a LaTeX tabular; - is stdout")
    parser.add_argument("--figure", metavar="FILE", action="append", default=[],
                        help="write a figure of all runs, as .png, .svg or .pdf; may be given several times")
    parser.add_argument("--plot", choices=sorted(_PLOTS), default="accuracy", help="what --figure shows (default: accuracy)")
    parser.add_argument("--by", choices=("round", "seconds", "bytes"), default="round",
                        help="horizontal axis of --figure (default: round)")
    parser.add_argument("--force", action="store_true", help="overwrite files even if hearsay-lab did not create them")


# ---- CSV. ----


def number_text(x: float) -> str:
    """A number with as few digits as identify it; "" for an unknown one."""
    from .page import exact

    return exact(x) if math.isfinite(x) else ""


def csv_field(text: str) -> bytes:
    """A field of RFC 4180. Bytes that are not UTF-8 stay as they are."""
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
    """The lines of the table."""
    yield (",".join(("run", "peer", "start") + WORDS + NAMES) + "\r\n").encode()
    for run in runs:
        for peer in run.peers:
            head = csv_field(run.label) + b"," + csv_field(peer.name)
            words = [peer.columns[name] for name in WORDS]
            numbers = [peer.columns[name].tolist() for name in NAMES]
            for i, start in enumerate(peer.columns["start"].tolist()):
                fields = [head, b"%d" % start] + [csv_field(column[i]) for column in words]
                yield b",".join(fields + [number_text(column[i]).encode() for column in numbers]) + b"\r\n"


# ---- LaTeX. ----

_LATEX: Dict[str, str] = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
                          ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}", "`": r"\textasciigrave{}"}
_LATEX.update((c, "\\" + c) for c in "&%$#_{}")


def latex_text(text: str) -> str:
    """A text that LaTeX prints as it is."""
    return "".join(_LATEX.get(c) or (c if c.isprintable() else "?") for c in text)


def latex(runs: Sequence[Run]) -> str:
    """A tabular of the final figures that some run has."""
    from .page import known_columns, readable

    columns = known_columns(runs)
    heads = ["run", "peers"] + [latex_text(f"{group}, {head}") for group, head, _, _, _ in columns]
    lines = [_LATEX_MARK, f"\\begin{{tabular}}{{l{'r' * (len(heads) - 1)}}}\n\\hline\n", " & ".join(heads), " \\\\\n\\hline\n"]
    for run in runs:
        final = run.final
        numbers = [(number(final), form) for _, _, _, number, form in columns]
        cells = [latex_text(run.label), str(len(run.peers))] + [latex_text(readable(x, form)) if math.isfinite(x) else "--"
                                                               for x, form in numbers]
        lines.append(" & ".join(cells) + " \\\\\n")
    return "".join(lines) + "\\hline\n\\end{tabular}\n"


# ---- Figures. ----


def figure(runs: Sequence[Run], path: str, plot_name: str, axis: str) -> bytes:
    """The bytes of a figure file of all runs."""
    from . import drawing

    plot = next((one for one in drawing.PLOTS if one.column == _PLOTS[plot_name] and one.axis == axis), None)
    if plot is None:
        raise InputError(f"--plot {plot_name} --by {axis}: found no such figure, expected --by round")
    fig, axes = drawing.figure(style=drawing.PAPER)
    drawn = drawing.curves(axes, plot, runs, drawing.PAPER)
    if not drawn:
        raise InputError(f"--plot {plot_name} --by {axis}: no run has values for it")
    if len(runs) > 1:
        colours = drawing.PAPER.series
        drawing.legend(axes, [runs[i].label for i in drawn], [colours[i % len(colours)] for i in drawn])
    return drawing.render(fig, _format(path))


def _format(path: str) -> str:
    kind = os.path.splitext(path)[1][1:].lower()
    if kind not in ("png", "svg", "pdf"):
        raise InputError(f"--figure {output.shown(path)}: found the ending {kind or 'none'!r}, expected .png, .svg or .pdf")
    return kind


# ---- The command. ----

Output = Tuple[str, bytes, Callable[[], bytes]]  # Path, mark, what makes the bytes.


def _outputs(arguments: argparse.Namespace, runs: Sequence[Run]) -> List[Output]:
    """All files to write."""
    found: List[Output] = []
    others = arguments.csv or arguments.latex or arguments.figure
    if arguments.out or not others:
        from .page import MARK, page

        path = arguments.out or os.path.join(runs[0].path, "report.html")
        found.append((path, MARK.encode(), lambda: page(runs).encode("utf-8", "replace")))
    if arguments.csv:
        head = next(csv_lines([]))
        found.append((arguments.csv, head, lambda: b"".join(csv_lines(runs))))
    if arguments.latex:
        found.append((arguments.latex, _LATEX_MARK.encode(), lambda: latex(runs).encode("utf-8", "replace")))
    for path in arguments.figure:
        _format(path)
        found.append((path, b"hearsay-lab", functools.partial(figure, runs, path, arguments.plot, arguments.by)))
    return found


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
    """Read the runs, check the outputs, write them."""
    runs = load_all(arguments.dirs)
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
