"""hearsay.lab.drawing: draws the figures of reports with matplotlib: SVG for pages, PNG, SVG or PDF for papers.

    figure(width, height, style)   an empty figure in inches, and its axes
    curves(...), bars(...), graph(...)    draw into axes
    log_axis(...), label_points(...)      a logarithmic axis; labels of points that do not overlap
    page_svg(figure, prefix)       SVG text for an HTML page that may have other figures. The colours are CSS variables
    file_svg(figure, title)        the text of an SVG file that has a light and a dark mode
    render(figure, format)         the bytes of a PNG, SVG or PDF file

The same input gives the same bytes. No function uses pyplot, a display or the user's matplotlibrc. A page defines the CSS
variables of css_colours(), which differ in light and dark mode.

A single run of at most LINES peers has one line per peer. With more peers or several runs, each run has one line, the median
of its peers in each round, and one band from their minimum to their maximum. No value is interpolated or averaged, except by
the moving average that a caller asks for (`smooth`). Texts are drawn unchanged: a `$` does not begin a formula.
"""
import contextlib
import dataclasses
import io
import math
import re
import warnings
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from .cli import InputError
from .run import Array, Peer, Run

try:
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.textpath import TextPath
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator
except ImportError:
    matplotlib = None

LINES = 8  # A single run of at most this many peers has one line per peer.
BAND = "line: median of the peers, band: minimum to maximum"  # Title of a legend of runs.
POINTS = 400  # Maximum number of points of a line or band.
MADE_BY = "hearsay-lab"  # Mark in the metadata of each file.
FORMATS = ("png", "svg", "pdf")
LARGEST = 1e100  # Numbers with a larger absolute value are not drawn, because they overflow when matplotlib scales them.

LIGHT = ("#2b6cb0", "#c05621", "#2f855a", "#b83280", "#6b46c1", "#975a16", "#2c7a7b", "#c53030")
DARK = ("#63b3ed", "#f6ad55", "#68d391", "#f687b3", "#b794f4", "#ecc94b", "#4fd1c5", "#fc8181")
LIGHT_PARTS = ("#2f855a", "#a0aec0", "#6b46c1", "#dd9b5f")  # Colours for computing, waiting, mixing and other time.
DARK_PARTS = ("#68d391", "#718096", "#b794f4", "#c98a4b")


@dataclasses.dataclass(frozen=True)
class Style:
    """The colours of a figure."""

    ink: str  # Colour of text.
    soft: str  # Colour of ticks and labels of axes.
    line: str  # Colour of the grid and the frame.
    series: Tuple[str, ...]  # Colours of runs. Run i has the colour with index i modulo len(series).
    parts: Tuple[str, ...]  # Colours of the parts of stacked bars.
    on: str  # Colour of text on a background in a colour of `series`.
    ground: Optional[str]  # Colour of the background. None: transparent.


PAPER = Style("#1a202c", "#2d3748", "#d9dee6", LIGHT, LIGHT_PARTS, "#ffffff", "#ffffff")
# The style for dark mode: each colour replaces the one of the style PAPER.
NIGHT = Style("#e6e9ef", "#b8c0cc", "#343b47", DARK, DARK_PARTS, "#0d1117", "#0d1117")
# The colours of the style PAGE are placeholders, which page_svg() replaces by CSS variables.
PAGE = Style("#000101", "#000102", "#000103", tuple(f"#0002{i:02x}" for i in range(8)), tuple(f"#0003{i:02x}" for i in range(4)),
             "#000104", None)
_VARIABLES: Dict[str, str] = {PAGE.ink: "--ink", PAGE.soft: "--soft", PAGE.line: "--line", PAGE.on: "--on"}
_VARIABLES.update((colour, f"--series-{i}") for i, colour in enumerate(PAGE.series))
_VARIABLES.update((colour, f"--part-{i}") for i, colour in enumerate(PAGE.parts))


def css_colours(dark: bool) -> str:
    """Declarations of the CSS variables of series and parts."""
    series, parts = (DARK, DARK_PARTS) if dark else (LIGHT, LIGHT_PARTS)
    return (f"--on:{'#14171c' if dark else '#ffffff'};" + "".join(f"--series-{i}:{colour};" for i, colour in enumerate(series))
            + "".join(f"--part-{i}:{colour};" for i, colour in enumerate(parts)))


@contextlib.contextmanager
def _settings() -> Iterator[None]:
    """A context with the defaults of matplotlib and of this module. A matplotlibrc of the user has no effect."""
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # matplotlib warns about a glyph that no font has, and draws a box.
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({"svg.hashsalt": MADE_BY, "svg.fonttype": "none", "font.size": 10, "axes.titlesize": 11,
                                    "axes.labelsize": 10, "xtick.labelsize": 9, "ytick.labelsize": 9, "legend.fontsize": 9,
                                    "pdf.fonttype": 42, "axes.unicode_minus": True})
        yield


def literal(text: str) -> str:
    """A text that matplotlib draws unchanged: "$" does not begin a formula, and control characters become "?"."""
    return "".join(c if c.isprintable() else "?" for c in text).replace("$", r"\$")


def need_matplotlib() -> None:
    """Raise InputError if matplotlib is not installed."""
    if matplotlib is None:
        raise InputError("matplotlib is not installed (Debian: python3-matplotlib; with pip: the extra [lab] of the package, "
                         "or pip install matplotlib)")


def figure(width: float = 5.4, height: float = 3.5, style: Style = PAPER, pad: float = 0.04) -> Tuple[Any, Any]:
    """An empty figure and its axes. `width`, `height` and the margin `pad` are in inches."""
    need_matplotlib()
    with _settings():
        fig = Figure(figsize=(width, height), layout="constrained")
        fig.get_layout_engine().set(w_pad=pad, h_pad=pad)
        fig.patch.set_visible(style.ground is not None)
        axes = fig.add_subplot()
        axes.patch.set_visible(False)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        for side in ("left", "bottom"):
            axes.spines[side].set_color(style.soft)
            axes.spines[side].set_linewidth(0.8)
        axes.tick_params(which="both", colors=style.soft, labelcolor=style.soft, width=0.8, length=3)
        axes.grid(axis="y", color=style.line, linewidth=0.7)
        axes.set_axisbelow(True)
        axes.xaxis.label.set_color(style.soft)
        axes.yaxis.label.set_color(style.soft)
        axes.title.set_color(style.ink)
    return fig, axes


# ---- Writing figures to files and pages. ----


def render(fig: Any, kind: str, dpi: int = 200) -> bytes:
    """The bytes of a file of a figure in the format `kind`: "png", "svg" or "pdf"."""
    metadata: Dict[str, Dict[str, Any]] = {"png": {"Software": MADE_BY}, "svg": {"Creator": MADE_BY, "Date": None},
                                           "pdf": {"Creator": MADE_BY, "Producer": None, "CreationDate": None}}
    out = io.BytesIO()
    with _settings():
        fig.savefig(out, format=kind, dpi=dpi, metadata=metadata[kind])
    return out.getvalue()


def page_svg(fig: Any, prefix: str, title: str) -> str:
    """An <svg> element for an HTML page. `prefix` makes its ids unique there; `title` is its accessible name (HTML text)."""
    text = render(fig, "svg").decode("utf-8")
    text = text[text.index("<svg"):]
    text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r' (?:version|xmlns|xmlns:xlink|height|width)="[^"]*"', "", text[:text.index(">")]) + text[text.index(">"):]
    text = re.sub(r'\bid="', f'id="{prefix}', text)
    text = re.sub(r'(?:xlink:)?href="#', f'href="#{prefix}', text)
    text = text.replace("url(#", f"url(#{prefix}")
    text = re.sub(r"#000[1-3]0[0-9a-f]", lambda found: f"var({_VARIABLES.get(found.group(), '--ink')})", text)
    text = re.sub(r"'DejaVu Sans'(?:, [^;\"]*)?", "inherit", text)
    text = re.sub(r"font: ([0-9.]+)px inherit", r"font-size: \1px", text)
    return text.replace("<svg", f'<svg role="img" aria-label="{title}"', 1).strip()


def file_svg(fig: Any, title: str) -> str:
    """The text of an SVG file of a figure in the style PAPER. A browser in dark mode shows the colours of NIGHT. `title` is its
    accessible name."""
    text = render(fig, "svg").decode("utf-8")
    text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"'DejaVu Sans'(?:, [^;\"]*)?", "'DejaVu Sans', Verdana, sans-serif", text)
    pairs = dict(zip((PAPER.ink, PAPER.soft, PAPER.line, str(PAPER.ground), *PAPER.series, *PAPER.parts),
                     (NIGHT.ink, NIGHT.soft, NIGHT.line, str(NIGHT.ground), *NIGHT.series, *NIGHT.parts)))
    rules = "".join(f'[style*="{part}: {light}"]{{{part}:{dark} !important}}' for light, dark in pairs.items() if light in text
                    for part in ("fill", "stroke"))
    first = text.index(">", text.index("<svg")) + 1
    name = title.replace("&", "&amp;").replace("<", "&lt;")
    text = f"{text[:first]}<title>{name}</title><style>@media (prefers-color-scheme:dark){{{rules}}}</style>{text[first:]}"
    return re.sub(r"[ \t]*\n(?:[ \t]*\n)*", "\n", text)


# ---- Scatter plots. ----

# Distances of a label from its point that are tried, from NEAR to FAR in steps of STEP, in
# typographic points.
NEAR, FAR, STEP = 6, 130, 5
LEADER = 11.0  # A label farther than this from its point gets a line to the point, in typographic points.


def log_axis(axes: Any, which: str, low: float, high: float, air: float = 1.2, style: Style = PAPER) -> None:
    """Make the axis `which` ("x" or "y") logarithmic, from low / air to high * air, with a grid and plain numbers at the ticks."""
    with _settings():
        getattr(axes, f"set_{which}scale")("log")
        getattr(axes, f"set_{which}lim")(low / air, high * air)
        axes.grid(axis=which, color=style.line, linewidth=0.7)
        axis = getattr(axes, f"{which}axis")
        axis.set_major_locator(MaxNLocator(6) if high < 4 * low else LogLocator(subs=(1, 2, 5) if high < 1e4 * low else (1,)))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))


def frontier(xs: Array, ys: Array) -> Tuple[Array, Array]:
    """The corners of a step line through points in ascending order of x: horizontal from each point to the x of the next."""
    return np.repeat(xs, 2)[1:], np.repeat(ys, 2)[:-1]


def _boxes(at: Array, half: float) -> Array:
    return np.concatenate([at - half, at + half], axis=1)


def _along(line: Array) -> Array:
    """Positions on a line, at most 3 typographic points apart."""
    parts = [line[:1]]
    for a, b in zip(line, line[1:]):
        n = max(1, math.ceil(float(np.linalg.norm(b - a)) / 3))
        parts.append(a + (b - a) * np.arange(1, n + 1)[:, None] / n)
    return np.concatenate(parts)


def label_points(axes: Any, xs: Array, ys: Array, texts: Sequence[str], colours: Sequence[str], avoid: Sequence[Tuple[Array, Array]] = (),
                 style: Style = PAPER, size: float = 8.5) -> None:
    """Write a label near each point. The position overlaps as little as possible with other labels, points, the legend and the
    lines `avoid`, each (xs, ys). Call this function last: limits and labels of the axes must be set."""
    with _settings():
        axes.figure.draw_without_rendering()  # matplotlib computes the position of the axes only when it draws.
        area, scale = axes.get_window_extent(), 72 / axes.figure.dpi  # From here on, lengths are in typographic points.
        width, height = area.width * scale, area.height * scale

        def place(x: Array, y: Array) -> Array:
            at: Array = (axes.transData.transform(np.stack([x, y], axis=1)) - (area.x0, area.y0)) * scale
            return at

        at = place(np.asarray(xs), np.asarray(ys))
        taken = np.concatenate([_boxes(at, 3.5), *(_boxes(_along(place(*line)), 2) for line in avoid)])
        if axes.get_legend() is not None:
            box = axes.get_legend().get_window_extent()
            taken = np.concatenate([taken, [[(box.x0 - area.x0) * scale, (box.y0 - area.y0) * scale,
                                             (box.x1 - area.x0) * scale, (box.y1 - area.y0) * scale]]])
        radius, turn = (grid.ravel() for grid in np.meshgrid(np.arange(NEAR, FAR, STEP), np.arange(24) * np.pi / 12))
        crowd = (1 / (1 + np.linalg.norm(at[:, None] - at[None], axis=2))).sum(axis=1)
        for i in np.argsort(-crowd, kind="stable"):
            half = np.array([TextPath((0, 0), literal(texts[i]), size=size).get_extents().width + 3, size + 2]) / 2
            centre = at[i] + np.stack([(radius + half[0]) * np.cos(turn), (radius + half[1]) * np.sin(turn)], axis=1)
            box = np.concatenate([centre - half, centre + half], axis=1)
            sides = np.minimum(box[:, None, 2:], taken[None, :, 2:]) - np.maximum(box[:, None, :2], taken[None, :, :2])
            outside = (box[:, :2] < 0).any(axis=1) | (box[:, 2:] > (width, height)).any(axis=1)
            cost = radius - 2 * np.cos(turn) + 10 * np.clip(sides, 0, None).prod(axis=2).sum(axis=1) + 1e9 * outside
            best = int(np.argmin(cost))
            gap = np.clip(at[i], box[best, :2], box[best, 2:]) - at[i]
            line = {"arrowstyle": "-", "color": style.soft, "linewidth": 0.6, "alpha": 0.6, "shrinkA": 0, "shrinkB": 3}
            note = axes.annotate(literal(texts[i]), (xs[i], ys[i]), xytext=centre[best] - at[i], textcoords="offset points",
                                 ha="center", va="center", fontsize=size, color=colours[i],
                                 arrowprops=line if float(np.linalg.norm(gap)) > LEADER else None)
            note.set_in_layout(False)
            taken = np.concatenate([taken, box[best:best + 1]])


# ---- Points of a curve. ----

ROUND, SECONDS, BYTES = "round", "seconds", "bytes"
AXES = {ROUND: "round", SECONDS: "seconds", BYTES: "MB sent by a peer"}


@dataclasses.dataclass(frozen=True)
class Plot:
    """Describes one figure of a report: which quantity it shows over which horizontal axis, for all runs."""

    title: str
    note: str  # Second line of the caption.
    column: str  # Quantity on the vertical axis: the name of a column of metrics.jsonl.
    axis: str  # Horizontal axis: ROUND, SECONDS or BYTES.

    @property
    def log(self) -> bool:
        """Whether the vertical axis is logarithmic. A logarithmic axis leaves out values of 0."""
        return self.column == "relative_drift"

    @property
    def unit(self) -> str:
        """The label of the vertical axis."""
        return {"loss": "training loss", "accuracy": "test accuracy, %", "test_loss": "test loss"}.get(
            self.column, "relative consensus distance")

    @property
    def is_evaluation(self) -> bool:
        """True: only some rounds have a value, so each point gets a marker."""
        return self.column in ("accuracy", "test_loss")


PLOTS: Tuple[Plot, ...] = (
    Plot("Training loss by round", "Without the consensus phase.", "loss", ROUND),
    Plot("Training loss by time", "Seconds over all starts of a run. In a simulation: simulated seconds.", "loss", SECONDS),
    Plot("Training loss by traffic", "Megabytes sent by a peer over all starts.", "loss", BYTES),
    Plot("Test accuracy by round", "At each evaluation.", "accuracy", ROUND),
    Plot("Test accuracy by time", "At each evaluation, by seconds over all starts.", "accuracy", SECONDS),
    Plot("Test accuracy by traffic", "At each evaluation, by megabytes sent by a peer.", "accuracy", BYTES),
    Plot("Test loss by round", "At each evaluation.", "test_loss", ROUND),
    Plot("Consensus distance by round", "Relative. Lines and bands: estimates of the peers. A dot: exact, of the final models.",
         "relative_drift", ROUND))
# All figures that `report --figure` can draw. Some of these figures are not on the page of the report.
FIGURES: Tuple[Plot, ...] = PLOTS + (
    Plot("Test loss by time", "At each evaluation, by seconds over all starts.", "test_loss", SECONDS),
    Plot("Test loss by traffic", "At each evaluation, by megabytes sent by a peer.", "test_loss", BYTES))


def _is_drift(column: str) -> bool:
    return column in ("drift", "relative_drift")


def xs_of(peer: Peer, column: str, axis: str) -> Array:
    """The horizontal values of a peer's rows. A consensus distance belongs to the round in which it was measured."""
    if axis == SECONDS:
        return peer.seconds()
    if axis == BYTES:
        return peer.sent()
    return peer.columns["drift_round"] if _is_drift(column) else peer.step()


def ys_of(peer: Peer, column: str) -> Array:
    """The values of a column of a peer. Rows of the consensus phase repeat the last training loss, so their loss is NaN."""
    values = peer.columns[column]
    return np.where(peer.columns["local_steps"] == 0, np.nan, values) if column == "loss" else values


def moving_average(rounds: Array, ys: Array, n: int) -> Array:
    """For each value, the mean of the values of its round and of the n - 1 rounds before it.

    `rounds` must be in ascending order, with or without repeats.
    """
    if n <= 1 or len(ys) == 0:
        return ys
    first = np.searchsorted(rounds, rounds - n, side="right")
    ends = np.stack([first, np.arange(1, len(ys) + 1)], axis=1).ravel()
    sums = np.add.reduceat(np.append(ys, 0.0), ends)[::2]
    mean: Array = sums / (np.arange(1, len(ys) + 1) - first)
    return mean


def points(peer: Peer, column: str, axis: str, smooth: int = 1) -> Tuple[Array, Array]:
    """The points (x, y) of a peer whose values are known, in the order of its rows. An estimate that several rows repeat is in
    the result once. `smooth`: number of rounds of a moving average."""
    xs, ys = xs_of(peer, column, axis), ys_of(peer, column)
    # Points that are too large, or NaN, are left out. A comparison with NaN is false.
    kept = (np.abs(xs) < LARGEST) & (np.abs(ys) < LARGEST)
    if _is_drift(column):
        rounds = peer.columns["drift_round"]
        last: Optional[Tuple[float, float]] = None
        for i in np.flatnonzero(kept):
            now = (float(ys[i]), float(rounds[i]))
            kept[i] = now != last
            last = now
    return xs[kept], moving_average(np.maximum.accumulate(xs_of(peer, column, ROUND)[kept]), ys[kept], smooth)


def band(run: Run, column: str, axis: str, smooth: int = 1) -> Tuple[Array, Array, Array, Array]:
    """x, minimum, median and maximum over the peers, for each round with a value of at least one peer. `smooth`: rounds of a moving
    average, which is taken of each peer before the median."""
    parts = []
    for peer in run.peers:
        table = np.stack([xs_of(peer, column, ROUND), xs_of(peer, column, axis), ys_of(peer, column)], axis=1)
        table = table[np.isfinite(table).all(axis=1)]
        newest = np.ones(len(table), dtype=bool)
        newest[:-1] = table[1:, 0] != table[:-1, 0]  # If a round has several rows, only the last one is used.
        table = table[newest]
        table[:, 2] = moving_average(np.maximum.accumulate(table[:, 0]), table[:, 2], smooth)
        parts.append(table)
    rows = np.concatenate(parts) if parts else np.zeros((0, 3))
    by_y, by_x = rows[np.lexsort((rows[:, 2], rows[:, 0]))], rows[np.lexsort((rows[:, 1], rows[:, 0]))]
    _, first, count = np.unique(by_y[:, 0], return_index=True, return_counts=True)
    middle = first + (count - 1) // 2
    return by_x[middle, 1], by_y[first, 2], by_y[middle, 2], by_y[first + count - 1, 2]


def thin(xs: Array, ys: Array, most: int = POINTS) -> Tuple[Array, Array]:
    """At most `most` of the points: the first, the last, and minimum and maximum of each section between them."""
    n = len(xs)
    if n <= most:
        return xs, ys
    stretches, inner, kept = (most - 2) // 2, n - 2, [0]
    for k in range(stretches):
        from_, to = 1 + inner * k // stretches, 1 + inner * (k + 1) // stretches
        kept += sorted({from_ + int(np.argmin(ys[from_:to])), from_ + int(np.argmax(ys[from_:to]))})
    kept.append(n - 1)
    return xs[kept], ys[kept]


def thin_band(xs: Array, low: Array, middle: Array, high: Array, most: int = POINTS) -> Tuple[Array, Array, Array, Array]:
    """At most `most` points of a band: minimum of `low` and maximum of `high` of each section, x and `middle` at its centre."""
    n = len(xs)
    if n <= most:
        return xs, low, middle, high
    edges = [n * k // most for k in range(most + 1)]
    at = [(a + b) // 2 for a, b in zip(edges, edges[1:])]
    return xs[at], np.minimum.reduceat(low, edges[:-1]), middle[at], np.maximum.reduceat(high, edges[:-1])


# ---- Drawing curves. ----


def _shown(plot: Plot, xs: Array, *columns: Array) -> List[Array]:
    """Values in the units of the axes. Values that a logarithmic axis cannot show are left out."""
    scale = 100.0 if plot.column == "accuracy" else 1.0
    kept = columns[0] > 0 if plot.log else np.ones(len(xs), dtype=bool)
    return [(xs * 1e-6 if plot.axis == BYTES else xs)[kept]] + [column[kept] * scale for column in columns]


def _draw_lines(axes: Any, plot: Plot, run: Run, colour: str, smooth: int) -> bool:
    drawn = False
    for peer in run.peers:
        xs, ys = _shown(plot, *thin(*points(peer, plot.column, plot.axis, smooth)))
        if len(xs) > 0:
            axes.plot(xs, ys, color=colour, linewidth=1.3, marker="o" if plot.is_evaluation or len(xs) < 2 else None,
                      markersize=2.6, alpha=0.9)
            drawn = True
    return drawn


def _draw_band(axes: Any, plot: Plot, run: Run, colour: str, smooth: int) -> bool:
    xs, low, middle, high = _shown(plot, *thin_band(*band(run, plot.column, plot.axis, smooth)))
    if len(xs) == 0:
        return False
    if len(run.peers) > 1:
        axes.fill_between(xs, low, high, color=colour, alpha=0.22, linewidth=0)
    axes.plot(xs, middle, color=colour, linewidth=1.5, marker="o" if len(xs) < 20 else None, markersize=2.6)
    return True


def has_bands(runs: Sequence[Run]) -> bool:
    """Whether curves() draws a median and a band per run. False: one line per peer."""
    return len(runs) > 1 or any(len(run.peers) > LINES for run in runs)


def curves(axes: Any, plot: Plot, runs: Sequence[Run], style: Style = PAPER, smooth: int = 1) -> List[int]:
    """Draw a figure of the runs, each value as the mean over `smooth` rounds. Returns the indices of the runs with values."""
    drawn = []
    draw = _draw_band if has_bands(runs) else _draw_lines
    with _settings():
        if plot.log:
            axes.set_yscale("log")
        for i, run in enumerate(runs):
            colour = style.series[i % len(style.series)]
            any_ = draw(axes, plot, run, colour, smooth)
            final = run.final
            at = final.rounds + (final.settle_rounds if math.isfinite(final.settle_rounds) else 0.0)
            if plot.column == "relative_drift" and math.isfinite(at) and final.exact > 0:
                axes.plot([at], [final.exact], color=colour, marker="o", markersize=5.5, linestyle="none")
                any_ = True
            if any_:
                drawn.append(i)
        axes.set_xlabel(AXES[plot.axis])
        axes.set_ylabel(plot.unit + (f"\nmoving average over {smooth} rounds" if smooth > 1 else ""))
        axes.margins(x=0.02)
        if plot.axis == ROUND:
            axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=7))
    return drawn


def legend(axes: Any, names: Sequence[str], colours: Sequence[str], style: Style = PAPER, title: Optional[str] = None) -> None:
    """Draw a legend of runs: a line in the colour of each run, and its name."""
    from matplotlib.lines import Line2D

    key(axes, "best", [Line2D([], [], color=colour, linewidth=2) for colour in colours], names, style, title)


def key(axes: Any, place: str, marks: Optional[Sequence[Any]] = None, names: Sequence[str] = (), style: Style = PAPER,
        title: Optional[str] = None) -> None:
    """Draw a legend of `marks` with `names` (default: all artists with a label). `place`: a position of matplotlib, or "outside",
    to the right of the axes."""
    if marks is None:
        marks, names = axes.get_legend_handles_labels()
    at: Dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1, 1)} if place == "outside" else {"loc": place}
    with _settings():
        drawn = axes.legend(marks, [literal(name) for name in names], frameon=style.ground is not None, framealpha=0.9,
                            facecolor=style.ground, edgecolor="none", labelcolor=style.ink, title=title, alignment="left", **at)
        drawn.get_title().set_color(style.ink)
        drawn.get_title().set_fontsize(9)


# ---- Drawing stacked bars. ----


def bars(axes: Any, places: Sequence[int], columns: Sequence[Sequence[float]], colours: Sequence[str], unit: str,
         stacked: bool) -> None:
    """Draw bars for peers, at the positions `places`. Each metric in `columns` has its own colour.

    The bars of one peer are stacked or side by side.
    """
    with _settings():
        base = np.zeros(len(places))
        n = len(columns)
        width = 0.8 if stacked else 0.8 / n
        for k, (column, colour) in enumerate(zip(columns, colours)):
            at = np.asarray(places, dtype=float) + (0.0 if stacked else (k - (n - 1) / 2) * width)
            axes.bar(at, column, width=width, bottom=base if stacked else None, color=colour, linewidth=0)
            base = base + np.asarray(column)
        axes.set_xlabel("index of the peer in the table")
        axes.set_ylabel(unit)
        axes.set_ylim(bottom=0)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=12))


# ---- Drawing graphs of peers. ----


def _distances(n: int, edges: Sequence[Tuple[int, int]]) -> Array:
    """The number of hops between all pairs of vertices. Without a path, the number is n."""
    near: List[List[int]] = [[] for _ in range(n)]
    for a, b in edges:
        near[a].append(b)
        near[b].append(a)
    hops = np.full((n, n), float(n))
    for source in range(n):
        hops[source, source] = 0
        front, distance = [source], 0
        while front:
            distance += 1
            front = [v for v in {v for u in front for v in near[u]} if hops[source, v] == n and v != source]
            hops[source, front] = distance
    return hops


def layout(n: int, edges: Sequence[Tuple[int, int]], steps: int = 300) -> Array:
    """Positions of the vertices by stress majorisation (Gansner, Koren, North 2004), starting from a circle. Deterministic."""
    turn = 2 * np.pi * np.arange(n) / max(n, 1) - np.pi / 2
    at = np.stack([np.cos(turn), np.sin(turn)], axis=1) * max(n, 2) / (2 * np.pi)
    if n < 3 or not edges:
        return at
    wanted = _distances(n, edges)
    weight = 1 / np.where(wanted > 0, wanted, np.inf) ** 2
    laplacian = np.diag(weight.sum(axis=1)) - weight
    inverse = np.linalg.pinv(laplacian)
    for _ in range(steps):
        apart = np.linalg.norm(at[:, None] - at[None], axis=2)
        pull = -weight * wanted / np.where(apart > 1e-9, apart, np.inf)
        np.fill_diagonal(pull, 0)
        np.fill_diagonal(pull, -pull.sum(axis=1))
        new = inverse @ (pull @ at)
        moved, at = float(np.abs(new - at).max()), new
        if moved < 1e-4:
            break
    return at


def graph(axes: Any, n: int, edges: Sequence[Tuple[int, int]], style: Style = PAPER) -> None:
    """Draw a graph. With at most 64 vertices, their numbers are shown."""
    at = layout(n, edges)
    with _settings():
        from matplotlib.collections import LineCollection

        axes.set_axis_off()
        axes.grid(False)
        axes.set_aspect("equal", adjustable="datalim")
        axes.add_collection(LineCollection([(at[a], at[b]) for a, b in edges], colors=style.soft, linewidths=0.9, alpha=0.6))
        size = max(5.0, min(17.0, 90 / math.sqrt(max(n, 1))))
        axes.plot(at[:, 0], at[:, 1], linestyle="none", marker="o", markersize=size, color=style.series[0])
        if n <= 64:
            for v in range(n):
                axes.text(at[v, 0], at[v, 1], str(v), ha="center", va="center", color=style.on,
                          fontsize=max(4.5, size * 0.55), clip_on=False)
        axes.margins(0.08)
