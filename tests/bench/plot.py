"""plot.py -- what the benches' pictures share: axes in pixels, ticks, labels that cover nothing, and gnuplot.

A picture has a plot of `width` x `height` pixels between margins, x to the right and y upwards.
"""
import math
import os
import shutil
import subprocess

CHARACTER, LINE = 7, 14  # Of a label, in pixels.


class Scale:
    """A logarithmic axis over `values`, with some air, to 0..length."""
    def __init__(self, values, length, air=1.25):
        self.low, self.high, self.length = min(values) / air, max(values) * air, length

    def at(self, value):
        return self.length * math.log(value / self.low) / math.log(self.high / self.low)

    def ticks(self):
        fine = (1, 1.5, 2, 3, 5, 7) if self.high < 10 * self.low else (1, 2, 5)
        steps = [m * 10.0 ** e for e in range(-4, 9) for m in fine]
        return ", ".join(f'"{t:g}" {t:g}' for t in steps if self.low <= t <= self.high)


class Linear:
    """A linear axis over `values`, with some air, to 0..length."""
    def __init__(self, values, length, air=0.06):
        span = max(values) - min(values) or 1
        self.low, self.high, self.length = min(values) - air * span, max(values) + air * span, length

    def at(self, value):
        return self.length * (value - self.low) / (self.high - self.low)


def overlap(a, b):
    """Of two boxes (x, y, width, height), as an area."""
    return (max(0, min(a[0] + a[2], b[0] + b[2]) - max(a[0], b[0]))
            * max(0, min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1])))


def place(points, width, height, taken):
    """Boxes for the labels of points (x, y, text): each where it covers least and is near, the most crowded first.
    `taken`: boxes where no label should be."""
    taken = [(x - 5, y - 5, 10, 10) for x, y, _ in points] + taken
    boxes = {}

    def crowd(i):
        return -sum(1 / (1 + math.dist(points[i][:2], p[:2])) for p in points)
    for i in sorted(range(len(points)), key=crowd):
        x, y, text = points[i]
        w, h = CHARACTER * len(text) + 4, LINE
        best = None
        for radius in range(8, 260, 9):
            for step in range(24):
                turn = math.pi * step / 12
                cx, cy = x + (radius + w / 2) * math.cos(turn), y + (radius + h / 2) * math.sin(turn)
                box = (cx - w / 2, cy - h / 2, w, h)
                if box[0] < 0 or box[1] < 0 or box[0] + w > width or box[1] + h > height:
                    continue
                cost = radius + 10 * sum(overlap(box, other) for other in taken)
                if best is None or cost < best[0]:
                    best = (cost, box)
        boxes[i] = best[1]
        taken.append(best[1])
    return [boxes[i] for i in range(len(points))]


def labels(points, width, height, taken, colours=None):
    """gnuplot's commands for the labels of points (x, y, text), with a line to each that had to go far."""
    lines = []
    for i, ((px, py, text), (bx, by, w, h)) in enumerate(zip(points, place(points, width, height, taken))):
        cx, cy = bx + w / 2, by + h / 2
        colour = f" textcolor '{colours[i]}'" if colours else ""
        lines.append(f'set label "{text}" at graph {cx / width:.4f}, graph {cy / height:.4f} center noenhanced '
                     f'font ",11"{colour}')
        nx, ny = min(max(px, bx), bx + w), min(max(py, by), by + h)
        if math.dist((px, py), (nx, ny)) > 12:
            lines.append(f"set arrow from graph {px / width:.4f}, graph {py / height:.4f} to graph {nx / width:.4f}, "
                         f"graph {ny / height:.4f} nohead linecolor '#aaaaaa' back")
    return "\n".join(lines)


def margins(size, left, right, top, bottom):
    """gnuplot's commands for a plot in a picture of this size, all in pixels."""
    return f"""set lmargin at screen {left / size[0]}
set rmargin at screen {1 - right / size[0]}
set tmargin at screen {1 - top / size[1]}
set bmargin at screen {bottom / size[1]}"""


def missing():
    """Why nothing can be drawn, or None."""
    return None if shutil.which("gnuplot") else "gnuplot is missing (Debian: gnuplot-nox)"


def draw(script, folder, stem):
    """Keeps the script as STEM.gp in the folder and runs it there. Whether gnuplot took it."""
    with open(os.path.join(folder, stem + ".gp"), "w", encoding="utf-8") as f:
        f.write(script)
    return subprocess.run(["gnuplot", stem + ".gp"], cwd=folder, check=False).returncode == 0
