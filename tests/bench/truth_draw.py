"""truth_draw.py -- the pictures of tests/bench/truth: of each task, outcome against bytes.

A colour is a codec, a shape a number of local steps (H), the stairs are the front: what can be had for at
most so many bytes. Points on the front are labelled, the others are told by colour and shape. What does so
much worse than the rest that the rest would become one blot is drawn hollow at the edge, with its value.
"""
import statistics

import plot
import truth_report as report
import truth_tasks as tasks

SIZE = (1130, 600)  # Of the picture, and the margins of the plot in it, in pixels.
LEFT, RIGHT, TOP, BOTTOM = 105, 225, 45, 60
WIDTH, HEIGHT = SIZE[0] - LEFT - RIGHT, SIZE[1] - TOP - BOTTOM
COLOURS = ("#000000", "#7f7f7f", "#1f77b4", "#d62728", "#ff7f0e", "#98c93c", "#2ca02c", "#17a2a2", "#0b5d3b", "#9467bd",
           "#e377c2", "#8c564b", "#bcbd22", "#5b3a8e")
SHAPES = (7, 5, 9, 13, 11, 15)  # gnuplot's filled circle, square, triangles, diamond, pentagon; one less is hollow.
FAR = 5  # Times the median distance to the best outcome: what is farther is drawn at the edge.


def edge(values, best):
    """The worst value that is drawn where it is."""
    far = FAR * statistics.median(abs(v - best) for v in values)
    return max((v for v in values if abs(v - best) <= far), key=lambda v: abs(v - best))


def key(codecs, colour, shape):
    """gnuplot's plots that are seen in the key only, beside the picture."""
    dots = [f"keyentry with points pointtype 7 linecolor rgb '{colour[c]}' title '{c}'" for c in codecs]
    return dots + ["keyentry title ' '"] + [
        f"keyentry with points pointtype {p} linecolor rgb '#555555' title 'H = {h}'" for h, p in shape.items()] + [
        "keyentry with lines linewidth 1.5 linecolor rgb '#888888' title 'front'"]


def boxes(front):
    """Along the stairs through these points (x, y), in pixels: where no label should be."""
    found = []
    for (x, y), (x_next, y_next) in zip(front, front[1:]):
        found += [(x, y - 2, x_next - x, 4), (x_next - 2, min(y, y_next), 4, abs(y_next - y))]
    return found


def script(task, cells, codecs):
    """The whole of gnuplot's commands for one task."""
    text = task.text
    values = [c.score for c in cells]
    best = min(values) if text else max(values)
    limit = edge(values, best)

    def inside(c):
        return c.score <= limit if text else c.score >= limit

    def at(c):
        return c.score if inside(c) else limit

    def pixels(c):
        return x.at(c.bytes / 1e6), y.at(at(c))
    x = plot.Scale([c.bytes / 1e6 for c in cells], WIDTH)
    y = plot.Linear([at(c) for c in cells], HEIGHT)
    colour = {c: COLOURS[i % len(COLOURS)] for i, c in enumerate(codecs)}
    shape = {h: SHAPES[i % len(SHAPES)] for i, h in enumerate(sorted({c.local_steps for c in cells}))}
    named = [c for c in cells if c.front or not inside(c)]
    points = [(*pixels(c), c.codec + ("" if inside(c) else f" {c.score:.3g}")) for c in named]
    front = sorted((c for c in cells if c.front), key=lambda c: c.bytes)
    others = [pixels(c) for c in cells if c not in named]
    taken = boxes([pixels(c) for c in front]) + [(px - 5, py - 5, 10, 10) for px, py in others]
    data = "".join(f"{c.bytes / 1e6:.6f} {at(c):.6f} {shape[c.local_steps] - (not inside(c))} "
                   f"0x{colour[c.codec][1:]}\n" for c in cells)
    newline = "\n"
    what = "test loss of the worst peer, nats a character" if text else "accuracy of the worst peer, %"
    return f"""set terminal svg size {SIZE[0]},{SIZE[1]} font 'sans-serif,13' background '#ffffff'
set output '{task.name}.svg'
set title '{task.title}'
set xlabel 'MB sent by all peers together'
set ylabel '{what}'
{plot.margins(SIZE, LEFT, RIGHT, TOP, BOTTOM)}
set logscale x
set xrange [{x.low}:{x.high}]
set yrange [{y.low}:{y.high}]
set xtics ({x.ticks()})
set grid linetype 1 linecolor '#e5e5e5'
set key at screen {1 - (RIGHT - 8) / SIZE[0]}, screen {1 - TOP / SIZE[1]} left top Left reverse noenhanced samplen 1 font ',12'
$front << END
{"".join(f"{c.bytes / 1e6:.6f} {at(c):.6f}{newline}" for c in front)}END
$cells << END
{data}END
{plot.labels(points, WIDTH, HEIGHT, taken, [colour[c.codec] for c in named])}
plot {f", {chr(92)}{newline}".join([
        "$front using 1:2 with steps linewidth 1.5 linecolor rgb '#888888' notitle",
        "$cells using 1:2:3:4 with points pointtype variable pointsize 1 linecolor rgb variable notitle",
        *key(codecs, colour, shape)])}
"""


def pictures(cells, out):
    """Draws what has an outcome. The pictures' paths, and a sentence about what could not be drawn, or None."""
    if plot.missing():
        return [], f"no pictures: {plot.missing()}"
    codecs = sorted({c.codec for c in cells}, key=report.order)
    paths = []
    for task in tasks.TASKS:
        mine = [c for c in cells if c.task is task and not c.failed]
        if mine and not plot.draw(script(task, mine, codecs), out, task.name):
            return paths, f"gnuplot did not like {out}/{task.name}.gp"
        if mine:
            paths.append(f"{out}/{task.name}.svg")
    return paths, None
