"""race_report.py -- what tests/bench/race found, as race.json, race.csv, a table (race.md) and pictures."""
import csv
import json
import math
import os

import chaos_hosts as hosts
import plot
from race_run import interpolate, median

SIZE = (760, 460)
COLOURS = "#1f77b4 #17becf #9467bd #2ca02c #8c564b #7f7f7f #d62728 #ff7f0e #e377c2 #bcbd22".split()
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
    """Of a row of a curve: per cent right, or bits a character. None where it has none."""
    _, loss, right = row
    if not task["text"]:
        return 100 * right
    return None if loss is None else loss / math.log(2)


def target(book):
    """What is to be reached, or None where nobody said and DDP did not run."""
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
    """The arm's on this link where it has one of its own, else the one for all links; None where nobody looked."""
    return book["curves"].get(curve_name(name, link)) or book["curves"].get(name)


def steps_to_target(book, name, link):
    """None where the arm never gets there, or nobody looked."""
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
    """The name of the arm that computes what this one does, without exchange."""
    for other in book["arms"]:
        if other["alone"] and other["side"] == arm["side"]:
            return other["name"]
    return None


def ratio(book, name, other, link, field="ms"):
    """The median over turns of what one arm takes, in units of what the other takes in the same turn."""
    others = {c["turn"]: c[field] for c in clocks(book, other, link)} if other else {}
    ratios = [c[field] / others[c["turn"]] for c in clocks(book, name, link) if others.get(c["turn"])]
    return median(ratios) if ratios else None


def measured(clock, step):
    """Seconds by which all processes had done this step; None where the clock stopped before."""
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
    """name -> seconds to the target, of the arms of a side that get there, fastest first."""
    found = {arm["name"]: f["seconds"] for arm in book["arms"] if arm["side"] == side and (f := figures(book, arm, link))
             and "seconds" in f}
    return dict(sorted(found.items(), key=lambda item: item[1]))


def goals(book):
    """Sentences on what the race is run for: every arm of hearsay, also those that miss it."""
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

def script(book, link):
    """gnuplot's: test error against seconds, both logarithmic; `~` in the key as in the table."""
    task, data, lines = book["task"], [], []
    for arm in book["arms"]:
        f, rows = figures(book, arm, link), curve_of(book, arm["name"], link)
        if not f or not rows:
            continue
        name, colour = f"$arm{len(data)}", COLOURS[len(data) % len(COLOURS)]
        data.append(f"{name} << END\n" + "".join(f"{step * f['ms'] / 1e3:.3f} {100 - 100 * right:.4f}\n"
                                                for step, _, right in rows) + "END\n")
        dashes = "" if arm["side"] == "hearsay" else " dashtype 2"
        lines.append(f"{name} using 1:2 with lines linewidth 2{dashes} linecolor rgb '{colour}' title "
                     f"'{arm['side']}: {arm['name']}{' ~' if f.get('extrapolated') else ''}'")
    goal = target(book)
    newline, comma = "\n", ", \\\n"
    if goal is not None and not task["text"]:
        lines.append(f"{100 - goal:.4f} with lines dashtype 3 linecolor rgb '#888888' title 'target: {goal:.2f} %'")
    return data and f"""set terminal svg size {SIZE[0]},{SIZE[1]} font 'sans-serif,13' background '#ffffff'
set output '{task["name"]}-{link}.svg'
set title '{task["title"]}: {task["peers"]} peers, links of {link}/s'
set xlabel 'seconds of training'
set ylabel 'test error, %'
set logscale xy
set yrange [0.5:100]
set grid linetype 1 linecolor '#e5e5e5'
set key outside right top Left reverse noenhanced samplen 2 font ',12'
{newline.join(data)}
plot {comma.join(lines)}
"""


def show(book, out):
    """Prints the table, draws the pictures. An exit code."""
    text = table(book)
    with open(os.path.join(out, "race.md"), "w") as f:
        f.write(text)
    table_csv(book, out)
    print(text, end="")
    if plot.missing():
        print(f"no pictures: {plot.missing()}")
        return 0
    for link in dict.fromkeys(c["link"] for c in book["clocks"]):
        commands = script(book, link)
        if commands and not plot.draw(commands, out, f"{book['task']['name']}-{link}"):
            return 1
    return 0
