"""race_report.py -- writes the results of tests/bench/race: race.json, race.csv, a table (race.md) and pictures."""
import csv
import json
import math
import os

import chaos_hosts as hosts
import pictures as lab
from race_run import interpolate, median

COLUMNS = ("arm", "link", "turn", "kbit", "ms", "mean_ms", "steps", "cpu_ms", "bytes", "load")


def keep(book, out):
    path = os.path.join(out, "race.json")
    with open(path + ".new", "w") as f:
        json.dump(book, f, indent=1)
    os.replace(path + ".new", path)


def load(out):
    path = os.path.join(out, "race.json")
    try:
        with open(path) as f:
            return json.load(f)
    except OSError as err:
        hosts.fail(f"there is no race to report: {path}: {err.strerror}")


# ---- Figures. ----

def score(task, row):
    """Returns the score in a row of a curve: percentage of right answers or, for text, bits per character. None:
    not known."""
    _, loss, right = row
    if not task["text"]:
        return 100 * right
    return None if loss is None else loss / math.log(2)


def target(book):
    """Returns the score to reach. None: the task has no fixed target, and DDP was not run."""
    task = book["task"]
    if task["target"] is not None:
        return task["target"]
    ddp = book["curves"].get("ddp")
    if not ddp:
        return None
    return score(task, ddp[-1]) + task["less"] * (1 if task["text"] else -1)


def curve_name(arm, link=""):
    return f"{arm}@{link}" if link else arm


def curve_of(book, name, link):
    """Returns the arm's curve for this link if it has one, else its curve for all links. None: not measured."""
    return book["curves"].get(curve_name(name, link)) or book["curves"].get(name)


def steps_to_target(book, name, link):
    """Returns the step at which an arm reaches the target. None: the arm does not reach the target, or its curve was
    not measured."""
    goal, rows, task = target(book), curve_of(book, name, link), book["task"]
    if goal is None or not rows:
        return None
    for row in rows:
        found = score(task, row)
        if found is not None and (found <= goal if task["text"] else found >= goal):
            return row[0]
    return None


def clocks(book, name, link):
    return [c for c in book["clocks"] if c["arm"] == name and c["link"] == link]


def alone_of(book, arm):
    """Returns the name of the arm of the same program that makes no exchange."""
    for other in book["arms"]:
        if other["alone"] and other["side"] == arm["side"]:
            return other["name"]
    return None


def ratio(book, name, other, link, field="ms"):
    """Returns the ratio of the value `field` of two arms on a link: the median of the ratios within each turn."""
    others = {c["turn"]: c[field] for c in clocks(book, other, link)} if other else {}
    ratios = [c[field] / others[c["turn"]] for c in clocks(book, name, link) if others.get(c["turn"])]
    return median(ratios) if ratios else None


def measured(clock, step):
    """Returns the seconds after which all processes had done the step `step`. None: the clock stopped before."""
    done = clock.get("done_s") or [[0, 0]]
    return interpolate(step, *zip(*done)) if done[-1][0] >= step else None


def figures(book, arm, link):
    mine = clocks(book, arm["name"], link)
    if not mine:
        return None
    found = {field: median([c[field] for c in mine]) for field in ("ms", "cpu_ms", "bytes", "steps")}
    found["times"] = ratio(book, arm["name"], alone_of(book, arm), link)
    found["target_steps"] = steps_to_target(book, arm["name"], link)
    rows = curve_of(book, arm["name"], link)
    found["score"] = score(book["task"], rows[-1]) if rows else None
    if found["target_steps"]:
        seen = [s for c in mine if (s := measured(c, found["target_steps"])) is not None]
        found["extrapolated"] = not seen
        found["seconds"] = median(seen) if seen else found["target_steps"] * found["ms"] / 1e3
    return found


# ---- The table. ----

def cell(value, form, none="-"):
    return none if value is None else format(value, form)


def rows_of(book, link):
    for arm in book["arms"]:
        f = figures(book, arm, link)
        if f is None:
            continue
        seconds = "-" if arm["alone"] else "never" if curve_of(book, arm["name"], link) and not f["target_steps"] else "-"
        if "seconds" in f:
            seconds = f"{'~' if f['extrapolated'] else ''}{f['seconds']:.1f}"
        yield [f"`{arm['name']}`", cell(f["ms"], ".2f"), cell(f["times"], ".2f"),
               f"{100 / f['times']:.0f} %" if f["times"] else "-", cell(f["cpu_ms"], ".2f"),
               cell(f["bytes"] / 1e3, ".2f"), cell(f["score"], ".3f" if book["task"]["text"] else ".2f"),
               cell(f["target_steps"], "d"), seconds]


def table(book):
    task, goal = book["task"], target(book)
    unit = "bits" if task["text"] else "%"
    wanted = "the target" if goal is None else f"{goal:.3f} bits" if task["text"] else f"{goal:.2f} %"
    text = [f"{task['title']}: {task['peers']} peers, batch {task['batch']}, {task['steps']} steps"
            + (f", {book['delay_ms']:g} ms under way" if book["delay_ms"] else "") + f". Target: {wanted}."]
    for link in dict.fromkeys(c["link"] for c in book["clocks"]):
        loads = [c["load"] for c in book["clocks"] if c["link"] == link]
        text += ["", f"**{link}/s** (load {min(loads):.0f} to {max(loads):.0f})", "",
                 f"| arm | ms a step | x alone | computing | CPU ms a step | kB a step | ends at {unit} | steps to it | seconds |",
                 "|---|---|---|---|---|---|---|---|---|"]
        text += ["| " + " | ".join(row) + " |" for row in rows_of(book, link)]
    return "\n".join(text + ["", *(f"- {goal}" for goal in goals(book))]) + "\n"


def seconds_of(book, side, link):
    """Returns a dict of all arms of a program that reach the target: name -> seconds to the target, fastest first."""
    found = {arm["name"]: f["seconds"] for arm in book["arms"] if arm["side"] == side and (f := figures(book, arm, link))
             and "seconds" in f}
    return dict(sorted(found.items(), key=lambda item: item[1]))


def goals(book):
    """Returns sentences that compare every arm of hearsay with the goals of the comparison."""
    ours = [arm for arm in book["arms"] if arm["side"] == "hearsay" and not arm["alone"]]
    for link, most in (("100Mbit", 1.1), ("1Mbit", 1.5)):
        times = [f"`{arm['name']}` {t:.2f}" for arm in ours if (t := ratio(book, arm["name"], alone_of(book, arm), link))]
        if times:
            yield f"At {link}/s a step takes, in units of computing alone: {', '.join(times)} (wanted: at most {most})."
    theirs = seconds_of(book, "PyTorch", "10Mbit")
    ddp, hook = theirs.pop("ddp", None), next(iter(theirs), None)
    for name, seconds in seconds_of(book, "hearsay", "10Mbit").items():
        times = [f"{ddp / seconds:.1f} times as fast as `ddp` (wanted: 20)"] if ddp else []
        times += [f"{theirs[hook] / seconds:.1f} times as fast as `{hook}` (wanted: 5)"] if hook else []
        if times:
            yield f"At 10Mbit/s `{name}` is at the target in {seconds:.1f} s: {', '.join(times)}."


def table_csv(book, out):
    with open(os.path.join(out, "race.csv"), "w", newline="") as f:
        writer = csv.DictWriter(f, COLUMNS, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(book["clocks"])


# ---- The picture. ----

def picture(book, link):
    """Draws the test error over time on logarithmic axes. A dot marks where a curve reaches the target. None: no
    curves."""
    task, goal, fig = book["task"], target(book), None
    for i, arm in enumerate(book["arms"]):
        f, rows = figures(book, arm, link), curve_of(book, arm["name"], link)
        if not f or not rows:
            continue
        if fig is None:
            fig, axes = lab.drawing.figure(9.4, 4.6, pad=0.12)
            seconds, errors = [], []
        xs = [step * f["ms"] / 1e3 for step, _, _ in rows]
        ys = [max(100 - 100 * right, 0.01) for _, _, right in rows]
        name = f"{arm['side']}: {arm['name']}"
        if "seconds" in f:
            name += f", {'~' if f['extrapolated'] else ''}{f['seconds']:.{int(f['seconds'] < 100)}f} s"
        colour = lab.drawing.PAPER.series[len(seconds) % len(lab.drawing.PAPER.series)]
        style = {"color": colour, "linewidth": 1.6, "linestyle": "-" if arm["side"] == "hearsay" else (0, (4, 1.6))}
        axes.plot(xs, ys, label=name, **style)
        if f["target_steps"]:
            at = [row[0] for row in rows].index(f["target_steps"])
            axes.plot(xs[at], ys[at], color=colour, marker="o", markersize=6, zorder=3)
        seconds.append(xs)
        errors.append(ys)
    if fig is None:
        return None
    lab.drawing.log_axis(axes, "x", min(map(min, seconds)), max(map(max, seconds)))
    lab.drawing.log_axis(axes, "y", min(map(min, errors)), max(map(max, errors)))
    if goal is not None and not task["text"]:
        axes.axhline(100 - goal, color=lab.drawing.PAPER.soft, linewidth=1, linestyle=":", label=f"target: {goal:g} % accuracy")
    axes.set_title(f"{task['title']}: {task['peers']} peers, links of {link}/s")
    axes.set_xlabel("seconds of training")
    axes.set_ylabel("test error of the worst peer, %")
    lab.drawing.key(axes, "outside", title="arm, time to the target" if goal is not None else None)
    return fig


def show(book, out):
    """Prints the table and draws the pictures. Returns the exit code."""
    text = table(book)
    with open(os.path.join(out, "race.md"), "w") as f:
        f.write(text)
    table_csv(book, out)
    print(text, end="")
    for link in dict.fromkeys(c["link"] for c in book["clocks"]) if lab.drawing else ():
        fig = picture(book, link)
        if fig is not None:
            name = f"{book['task']['name']}-{link}.svg"
            lab.save(fig, os.path.join(out, name), f"{book['task']['title']}: test error by seconds of training at {link}/s")
    if lab.WHY:
        print(lab.WHY)
    return 0
