"""truth_draw.py -- the pictures of tests/bench/truth: accuracy or loss against bytes, one picture per task.

Each point is a codec. Colour and shape show the number of local steps (H). The frontier line is the best result with at
most that many bytes. A result that is much worse than the others is a hollow point at the edge, with its value.
"""
import os
import statistics

import pictures as lab
import truth_tasks as tasks

SHAPES = "osDv^P"
# A result is drawn at the edge if its distance from the best one exceeds this multiple of the median distance.
FAR = 5


def edge(values, best):
    """Returns the worst value that is drawn at its true place. Values that are worse are drawn at the edge."""
    far = FAR * statistics.median(abs(v - best) for v in values)
    return max((v for v in values if abs(v - best) <= far), key=lambda v: abs(v - best))


def picture(task, cells):
    values = [c.score for c in cells]
    limit = edge(values, (min if task.text else max)(values))
    inside = [c.score <= limit if task.text else c.score >= limit for c in cells]
    xs = [c.bytes / 1e6 for c in cells]
    ys = [c.score if shown else limit for c, shown in zip(cells, inside)]
    steps = sorted({c.local_steps for c in cells})
    fig, axes = lab.drawing.figure(8.8, 4.8, pad=0.12)
    series = lab.drawing.PAPER.series
    colours = [series[steps.index(c.local_steps) % len(series)] for c in cells]
    lab.drawing.log_axis(axes, "x", min(xs), max(xs), 1.35)
    front = lab.drawing.frontier(*zip(*sorted((x, y) for x, y, c in zip(xs, ys, cells) if c.front)))
    if len(front[0]) > 1:
        axes.plot(*front, color=lab.drawing.PAPER.soft, linewidth=1, alpha=0.6, label="frontier: best outcome for these bytes")
    for x, y, c, colour, shown in zip(xs, ys, cells, colours, inside):
        axes.plot([x], [y], color=colour, marker=SHAPES[steps.index(c.local_steps) % len(SHAPES)], markersize=6, linestyle="none",
                  markerfacecolor=colour if shown else "none")
    names = [f"{h} local step{'s' if h > 1 else ''} per exchange" for h in steps]
    for i, name in enumerate(names if len(names) > 1 else []):
        axes.plot([], [], color=series[i % len(series)], marker=SHAPES[i % len(SHAPES)], linestyle="none", label=name)
    axes.margins(y=0.1)
    axes.set_title(task.title)
    axes.set_xlabel("MB sent by all peers together" + (f", {names[0]}" if len(names) == 1 else ""))
    axes.set_ylabel("test loss of the worst peer, nats per character" if task.text else "test accuracy of the worst peer, %")
    if axes.get_legend_handles_labels()[0]:
        lab.drawing.key(axes, "best" if task.text else "lower right")
    texts = [c.codec + ("" if shown else f" {c.score:.3g}") for c, shown in zip(cells, inside)]
    lab.drawing.label_points(axes, xs, ys, texts, colours, [front])
    return fig


def pictures(cells, out):
    """Draws each task that has a result. Returns the paths of the pictures, and the reason why none could be drawn
    or None."""
    paths = []
    for task in tasks.TASKS if lab.drawing else ():
        mine = [c for c in cells if c.task is task and not c.failed]
        if mine:
            paths.append(lab.save(picture(task, mine), os.path.join(out, f"{task.name}.svg"), task.title))
    return paths, lab.WHY
