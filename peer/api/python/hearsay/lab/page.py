"""hearsay.lab.page: the report of finished runs as one HTML file that loads no other file.

    verdicts          one line per run, with the colour of the run
    settings          settings that differ between the runs; for a single run: settings that are not defaults
    results, cost     two tables; data-figure and data-value of a cell hold the exact number
    curves            one figure for all runs
    one part per run  time and bytes of each peer, the graph, a table of peers
    all settings      a folded list

Texts from files are escaped, and a Content-Security-Policy in the page forbids all loading. Colours follow the light or dark
mode of the browser. The same runs give the same bytes.
"""
import math
from typing import Callable, Dict, List, Sequence, Tuple

from .. import __version__, _lib

from . import drawing
from .graph import NoGraph, edges_of
from .run import Final, Peer, Run

MARK = "<!DOCTYPE html>\n<!-- made by hearsay-lab report -->\n"
VALUE_SHOWN = 4096  # Maximum number of characters of a setting on the page.
PEERS_OPEN = 16  # A table of at most this many peers is not folded.

LIGHT = ("--ink:#1a202c;--soft:#556070;--ground:#ffffff;--card:#f7f8fa;--line:#dfe3ea;--good:#276749;--bad:#c53030;"
         "--good-card:#e6f4ec;--bad-card:#fdecec;")
DARK = ("--ink:#e6e9ef;--soft:#a3adbd;--ground:#14171c;--card:#1c2027;--line:#343b47;--good:#7fd6a0;--bad:#fc8f8f;"
        "--good-card:#183226;--bad-card:#3a2024;")
STYLE = (
    ":root{color-scheme:light dark;" + LIGHT + drawing.css_colours(False) + "}\n"
    "@media screen and (prefers-color-scheme:dark){:root{" + DARK + drawing.css_colours(True) + "}}\n" + """\
*{box-sizing:border-box}
body{margin:0 auto;padding:1.5rem 1.5rem 3rem;max-width:86rem;background:var(--ground);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
header{border-bottom:1px solid var(--line);margin-bottom:1rem;padding-bottom:.6rem}
h1{font-size:1.55rem;margin:0}h2{font-size:1.15rem;margin:2.2rem 0 .7rem}
p{margin:.4rem 0}.soft,figcaption small{color:var(--soft)}
ul.runs{list-style:none;margin:0;padding:0;display:grid;gap:.4rem}
ul.runs li{padding:.55rem .8rem;background:var(--card);border:1px solid var(--line);border-radius:8px;display:flex;flex-wrap:wrap;
gap:.2rem .7rem;align-items:baseline}
.swatch{display:inline-block;width:.72em;height:.72em;border-radius:50%;margin-right:.45em}
.name{font-weight:600;overflow-wrap:anywhere}
.badge{font-size:.8rem;font-weight:600;padding:.05rem .5rem;border-radius:1rem;background:var(--line);color:var(--soft)}
.badge.good{background:var(--good-card);color:var(--good)}.badge.bad{background:var(--bad-card);color:var(--bad)}
.bad{color:var(--bad)}
.wide{overflow-x:auto;border:1px solid var(--line);border-radius:8px}
table{border-collapse:collapse;font-size:.88rem;font-variant-numeric:tabular-nums;min-width:100%}
th,td{padding:.32rem .6rem;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap;vertical-align:top}
tr:last-child>th,tr:last-child>td{border-bottom:0}
th{font-weight:600;color:var(--soft);white-space:normal;vertical-align:bottom;background:var(--card)}
tr:first-child>th:first-child,td:first-child,td.text,th.text,table.settings th,table.settings td{text-align:left}
tbody tr:hover td{background:var(--card)}
th.group{text-align:center;border-left:1px solid var(--line)}
td.run{white-space:normal;min-width:9rem}
table.settings{min-width:0}table.settings td{white-space:normal;overflow-wrap:anywhere;max-width:40rem}
table.settings th{font-weight:500}
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,25rem),1fr));gap:1rem}
figure{margin:0 0 1rem;padding:.8rem;background:var(--card);border:1px solid var(--line);border-radius:8px;break-inside:avoid}
.charts figure{margin:0}
figcaption{font-weight:600;font-size:.93rem;margin-bottom:.35rem}
figcaption small{display:block;font-weight:400;font-size:.83rem}
figure svg{display:block;width:100%;height:auto}
figure svg text{font-family:inherit}
details{margin:.7rem 0}summary{cursor:pointer;color:var(--soft);margin-bottom:.4rem}
footer{margin-top:2.5rem;padding-top:.8rem;border-top:1px solid var(--line);color:var(--soft);font-size:.88rem}
@media print{body{max-width:none;padding:0;font-size:11px}details>summary{display:none}}
""")

_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"}


def escape(text: str) -> str:
    """A text for HTML, between tags or in a quoted attribute. Control characters and bytes that are not UTF-8 become "?"."""
    return "".join(_ENTITIES.get(c) or (c if c >= " " and not "\x7f" <= c < "\xa0" and not "\ud800" <= c <= "\udfff" else "?")
                   for c in text)


def exact(x: float) -> str:
    """A finite number with the fewest digits that identify it, at most 17. Integers below 1e15 have no exponent."""
    digits = len(repr(x).partition("e")[0].replace(".", "").replace("-", "").strip("0")) or 1
    while True:
        text = f"{x:.{digits}g}"
        if float(text) == x and ("e" not in text or not 1 <= x < 1e15):
            return text
        digits += 1


# ---- Rounded numbers for the page. ----


def percent(x: float) -> str:
    """A share in percent: 0.67225 becomes "67.22 %"."""
    return f"{100 * x:.2f} %"


def loss(x: float) -> str:
    """A loss with four decimals."""
    return f"{x:.4g}" if abs(x) >= 1e6 else f"{x:.4f}"


def drift(x: float) -> str:
    """A consensus distance with three significant digits."""
    return f"{x:.3g}"


def size(x: float) -> str:
    """Bytes in a decimal unit."""
    for scale, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if x >= scale:
            return f"{x / scale:.2f} {unit}"
    return f"{x:.0f} B"


def count(x: float) -> str:
    """A count without decimals."""
    return f"{x:.0f}"


def seconds(x: float) -> str:
    """A number of seconds as text, with two decimals. From 1e6 on, with four significant digits."""
    return f"{x:.2f}" if x < 1e6 else f"{x:.4g}"


COSTS = ("traffic", "rounds", "seconds")  # Groups of COLUMNS that are in the table of costs.
Form = Callable[[float], str]
# A column of a table: group, heading, name (attribute data-figure), function for its value, function for its text.
Column = Tuple[str, str, str, Callable[[Final], float], Form]

COLUMNS: Tuple[Column, ...] = (
    ("test accuracy", "worst peer", "accuracy_min", lambda f: f.accuracy.low, percent),
    ("test accuracy", "best peer", "accuracy_max", lambda f: f.accuracy.high, percent),
    ("test loss", "best", "test_loss_min", lambda f: f.test_loss.low, loss),
    ("test loss", "worst", "test_loss_max", lambda f: f.test_loss.high, loss),
    ("training loss", "lowest", "loss_min", lambda f: f.loss.low, loss),
    ("training loss", "highest", "loss_max", lambda f: f.loss.high, loss),
    ("relative consensus distance", "exact", "relative_drift", lambda f: f.exact, drift),
    ("relative consensus distance", "estimated", "estimated_relative_drift", lambda f: f.estimated, drift),
    ("traffic", "sent", "bytes_sent", lambda f: f.sent, size),
    ("rounds", "trained", "rounds", lambda f: f.rounds, count),
    ("rounds", "consensus phase", "settle_rounds", lambda f: f.settle_rounds, count),
    ("rounds", "skipped", "rounds_skipped", lambda f: f.skipped, count),
    ("seconds", "run", "seconds", lambda f: f.seconds, seconds),
    ("seconds", "simulation", "wall_s", lambda f: f.wall_s, seconds))
PEER_COLUMNS: Tuple[Column, ...] = (
    ("", "test accuracy", "accuracy", lambda f: f.accuracy.low, percent),
    ("", "test loss", "test_loss", lambda f: f.test_loss.low, loss),
    ("", "training loss", "loss", lambda f: f.loss.low, loss),
    ("", "relative consensus distance, estimated", "relative_drift", lambda f: f.estimated, drift),
    ("", "sent", "bytes_sent", lambda f: f.sent, size),
    ("", "received", "bytes_received", lambda f: f.received, size),
    ("", "rounds", "rounds", lambda f: f.rounds, count),
    ("", "skipped", "rounds_skipped", lambda f: f.skipped, count),
    ("", "seconds", "seconds", lambda f: f.seconds, seconds),
    ("", "exit code", "exit_code", lambda f: f.exit_code, count))


def readable(x: float, form: Form) -> str:
    """A finite number in the format of its column. Numbers from 1e15 on have four digits and an exponent."""
    return f"{x:.4g}" if abs(x) >= 1e15 else form(x)


def known_columns(runs: Sequence[Run]) -> List[Column]:
    """The columns for which at least one run has a number."""
    finals = [run.final for run in runs]
    return [column for column in COLUMNS if any(math.isfinite(column[3](final)) for final in finals)]


def _cell(figure: str, form: Form, x: float) -> str:
    if not math.isfinite(x):
        return f'<td data-figure="{figure}">&ndash;</td>'
    return f'<td data-figure="{figure}" data-value="{exact(x)}">{readable(x, form)}</td>'


def _name(runs: Sequence[Run], i: int) -> str:
    colour = i % len(drawing.PAGE.series)
    return (f'<span><span class="swatch" style="background:var(--series-{colour})"></span>'
            f'<span class="name">{escape(runs[i].label)}</span></span>')


# ---- Verdicts and settings. ----


def _verdicts(runs: Sequence[Run]) -> str:
    lines = []
    for i, run in enumerate(runs):
        code = run.figure("exit_code")
        kind, badge = "", "unknown"
        if math.isfinite(code):
            kind, badge = (" good" if code == 0 else " bad"), f"exit code {exact(code)}"
        elif not run.finished:
            badge = "not finished"
        text = escape(run.verdict) or ("finished; a single model needs no consensus" if run.finished
                                       else "no summary.json: the run is in progress or was interrupted")
        lines.append(f'<li>{_name(runs, i)}<span class="badge{kind}">{badge}</span><span>{text}</span></li>\n')
    return '<ul class="runs">\n' + "".join(lines) + "</ul>\n"


# Settings of a single run that are shown even if they have their default values.
ALWAYS = ("command", "--peers", "model", "data", "topology", "compress", "mixer", "rounds", "seed")


def _is_default(key: str, value: str, defaults: Dict[str, str]) -> bool:
    if key not in defaults:
        return False
    try:
        return value == defaults[key] or float(value) == float(defaults[key])
    except ValueError:
        return False


def _value(run: Run, key: str) -> str:
    if key not in run.settings:
        return "<td>&ndash;</td>"
    value = run.settings[key]
    return f"<td>{escape(value[:VALUE_SHOWN])}{'&hellip;' if len(value) > VALUE_SHOWN else ''}</td>"


def _settings_rows(runs: Sequence[Run], keys: Sequence[str]) -> str:
    return "".join(f"<tr><th>{escape(key[:VALUE_SHOWN])}</th>{''.join(_value(run, key) for run in runs)}</tr>\n" for key in keys)


def _settings(runs: Sequence[Run]) -> str:
    keys = list(dict.fromkeys(key for run in runs for key in run.settings))
    if len(runs) == 1:
        title, nothing = "Settings that are not defaults", "Unknown: there is no run.txt."
        defaults = _lib.defaults()
        shown = [key for key in keys if key in ALWAYS or not _is_default(key, runs[0].settings[key], defaults)]
        head = ""
    else:
        title, nothing = "Settings that differ", "No difference: all runs have the same settings."
        shown = [key for key in keys if len({run.settings.get(key) for run in runs}) > 1]
        head = "<tr><th></th>" + "".join(f"<th>{_name(runs, i)}</th>" for i in range(len(runs))) + "</tr>\n"
    if not shown:
        return f"<h2>{title}</h2>\n<p>{nothing}</p>\n"
    return f'<h2>{title}</h2>\n<div class="wide"><table class="settings">\n{head}{_settings_rows(runs, shown)}</table></div>\n'


def _all_settings(runs: Sequence[Run]) -> str:
    parts = ["<h2>All settings</h2>\n"]
    for i, run in enumerate(runs):
        parts.append(f'<details><summary>{_name(runs, i)}</summary>\n<div class="wide"><table class="settings">\n'
                     f'{_settings_rows([run], list(run.settings))}</table></div></details>\n')
    return "".join(parts)


# ---- Tables of the page. ----


def _groups(columns: Sequence[Column]) -> List[Tuple[str, int]]:
    """The groups of columns, each with its number of columns."""
    groups: List[Tuple[str, int]] = []
    for group, _, _, _, _ in columns:
        if groups and groups[-1][0] == group:
            groups[-1] = (group, groups[-1][1] + 1)
        else:
            groups.append((group, 1))
    return groups


def _figures(runs: Sequence[Run]) -> str:
    """The HTML of two tables, results and cost, each narrow enough for a window of 1200 px."""
    columns = known_columns(runs)
    cost = [column for column in columns if column[0] in COSTS]
    learnt = [column for column in columns if column not in cost]
    return ("<h2>Results</h2>\n" + _table(runs, learnt, "results", True)
            + (f"<h2>Cost</h2>\n{_table(runs, cost, 'cost', False)}" if cost else ""))


def _table(runs: Sequence[Run], columns: Sequence[Column], name: str, has_peers: bool) -> str:
    groups = "".join(f'<th class="group" colspan="{n}">{group}</th>' for group, n in _groups(columns))
    heads = "".join(f"<th>{head}</th>" for _, head, _, _, _ in columns)
    rows = []
    for i, run in enumerate(runs):
        final = run.final
        cells = "".join(_cell(figure, form, number(final)) for _, _, figure, number, form in columns)
        peers = _cell("n_peers", count, len(run.peers)) if has_peers else ""
        rows.append(f'<tr data-run="{i}"><td class="run">{_name(runs, i)}</td>{peers}{cells}</tr>\n')
    peers = '<th rowspan="2">peers</th>' if has_peers else ""
    return (f'<div class="wide"><table id="{name}">\n<thead><tr><th rowspan="2">run</th>{peers}{groups}</tr>\n<tr>{heads}</tr>'
            f'</thead>\n<tbody>{"".join(rows)}</tbody></table></div>\n')


def _peers(run: Run) -> str:
    heads = "".join(f"<th>{head}</th>" for _, head, _, _, _ in PEER_COLUMNS)
    rows = []
    for i, peer in enumerate(run.peers):
        final, times = peer.final, peer.times
        cells = "".join(_cell(figure, form, number(final)) for _, _, figure, number, form in PEER_COLUMNS)
        spent = "".join(_cell(name, seconds, x) for name, x in (("compute_s", times.compute), ("wait_s", times.wait),
                                                                ("mix_s", times.mix), ("rest_s", times.rest)))
        rows.append(f'<tr data-peer="{i}"><td>{i}</td><td class="text">{escape(peer.name)}</td>{cells}{spent}</tr>\n')
    return (f'<details{" open" if len(run.peers) <= PEERS_OPEN else ""}><summary>Peers</summary>\n<div class="wide">'
            f'<table class="peers">\n<thead><tr><th>index</th><th class="text">peer</th>{heads}<th>computing, s</th>'
            f'<th>waiting, s</th><th>mixing, s</th><th>other, s</th></tr></thead>\n<tbody>{"".join(rows)}</tbody></table></div>'
            "</details>\n")


# ---- Pictures of the page. ----


class _Pictures:
    """Draws the pictures of one page. Each picture has a number, which makes its ids unique."""

    def __init__(self) -> None:
        self.n = 0

    def put(self, fig: object, title: str, note: str) -> str:
        """The HTML of a figure. `title` and `note` are HTML text."""
        self.n += 1
        svg = drawing.page_svg(fig, f"p{self.n}-", title)
        return f"<figure><figcaption>{title}<small>{note}</small></figcaption>\n{svg}\n</figure>\n"

    def curves(self, runs: Sequence[Run]) -> str:
        """The HTML of all figures of PLOTS for which at least one run has values."""
        parts = []
        for plot in drawing.PLOTS:
            fig, axes = drawing.figure(style=drawing.PAGE)
            if drawing.curves(axes, plot, runs, drawing.PAGE):
                parts.append(self.put(fig, plot.title, plot.note))
        if not parts:
            return '<h2>Curves</h2>\n<p class="soft">No curves: no run has rows in a metrics.jsonl.</p>\n'
        note = ("One line per run: the median of its peers. The band is from their minimum to their maximum."
                if drawing.has_bands(runs) else "One line per peer.")
        return f'<h2>Curves</h2>\n<p class="soft">{note}</p>\n<div class="charts">\n{"".join(parts)}</div>\n'

    def bars(self, peers: Sequence[Peer], title: str, words: Sequence[str], colours: Sequence[int], parts: bool,
             columns: Sequence[Sequence[float]], unit: str, stacked: bool) -> str:
        """The HTML of a bar chart of the peers with values in all columns. "": no peer has values, or all values are 0."""
        places = [i for i in range(len(peers)) if all(math.isfinite(column[i]) for column in columns)]
        kept = [[column[i] for i in places] for column in columns]
        if not any(x > 0 for column in kept for x in column):
            return ""
        kind, palette = ("part", drawing.PAGE.parts) if parts else ("series", drawing.PAGE.series)
        note = " &nbsp; ".join(f'<span class="swatch" style="background:var(--{kind}-{colour})"></span>{word}'
                               for word, colour in zip(words, colours))
        fig, axes = drawing.figure(height=3.0, style=drawing.PAGE)
        drawing.bars(axes, places, kept, [palette[colour] for colour in colours], unit, stacked)
        return self.put(fig, title, note)

    def times(self, run: Run) -> str:
        """The HTML of a bar chart of the time of each peer."""
        times = [peer.times for peer in run.peers]
        simulated = math.isfinite(run.figure("simulated_s"))
        return self.bars(run.peers, "Simulated time of each peer: local steps are in the part other" if simulated else "Time of each peer",
                         ("computing", "waiting", "mixing", "other"), (0, 1, 2, 3), True,
                         ([t.compute for t in times], [t.wait for t in times], [t.mix for t in times], [t.rest for t in times]),
                         "seconds", True)

    def traffic(self, run: Run) -> str:
        """The HTML of a bar chart of the bytes of each peer."""
        finals = [peer.final for peer in run.peers]
        return self.bars(run.peers, "Bytes sent and received by each peer", ("sent", "received"), (0, 1), False,
                         ([f.sent * 1e-6 for f in finals], [f.received * 1e-6 for f in finals]), "MB", False)

    def graph(self, run: Run) -> str:
        """The HTML of the graph, or of the reason why the graph is not drawn."""
        try:
            n, edges = edges_of(run)
        except NoGraph as why:
            return f'<p class="soft">The graph is not drawn: {escape(str(why))}.</p>\n' if str(why) else ""
        fig, axes = drawing.figure(height=3.0, style=drawing.PAGE)
        drawing.graph(axes, n, edges, drawing.PAGE)
        return self.put(fig, "Graph", "Vertex i is the member with index i in the sorted list of members.")


def page(runs: Sequence[Run]) -> str:
    """The HTML text of the page of one or more runs."""
    pictures = _Pictures()
    parts = [MARK, '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
             '<meta name="viewport" content="width=device-width,initial-scale=1">\n<meta http-equiv="Content-Security-Policy" '
             "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n<title>hearsay report</title>\n<style>\n",
             STYLE, "</style>\n</head>\n<body>\n<header><h1>hearsay report</h1></header>\n",
             _verdicts(runs), _settings(runs), _figures(runs), pictures.curves(runs)]
    for i, run in enumerate(runs):
        parts.append(f'<h2>{_name(runs, i)}</h2>\n<div class="charts">\n{pictures.times(run)}{pictures.traffic(run)}'
                     f'{pictures.graph(run)}</div>\n{_peers(run)}')
    parts.append(_all_settings(runs))
    parts.append(f"<footer>Made by hearsay-lab {escape(__version__)} from summary.json and metrics.jsonl of each run. "
                 "A dash: unknown. Seconds and bytes are totals over all starts of a run.</footer>\n</body>\n</html>\n")
    return "".join(parts)
