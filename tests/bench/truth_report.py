"""truth_report.py -- makes the tables of tests/bench/truth from the records of its runs: rows, Markdown and a summary.

A cell is a task, a number of local steps (H) and a codec. A cell has one record per seed. The result of a cell is that
of the worst peer: accuracy or, for text, the test loss in nats per character. How much worse a cell is than the codec
`none` is computed for each seed at the same H, in percentage points of accuracy or in bits per character.
"""
import math

import truth_tasks as tasks

# How much worse than `none` a codec may be on a task to become the default: percentage points of accuracy, or bits per
# character.
POINTS, BITS = 0.3, 0.01
OK = "ok"


def finite(*values):
    return all(isinstance(v, (int, float)) and math.isfinite(v) for v in values)


def mean(values):
    return sum(values) / len(values) if values else None


def geometric(values):
    return math.exp(mean([math.log(v) for v in values])) if values else None


class Cell:
    def __init__(self, task, local_steps, codec, records):
        self.task, self.local_steps, self.codec = tasks.BY_NAME[task], local_steps, codec
        self.records = {r["seed"]: r for r in sorted(records, key=lambda r: r["seed"])}
        self.bytes = mean(self.values("bytes_sent"))
        drifts, statistics = self.values("relative_drift"), self.values("relative_drift_statistics")
        self.drift, self.statistics = max(drifts, default=None), max(statistics, default=None)
        bad = sorted({r["verdict"] for r in self.records.values()} - {OK})
        self.verdict = "; ".join(bad) or OK
        self.failed = any(not scored(r) for r in self.records.values())
        self.score = None if self.failed else mean([score(r, self.task) for r in self.records.values()])
        self.dense, self.worse, self.front = None, {}, False

    def values(self, key):
        """Returns the values of a key in the results of all runs, without missing ones."""
        found = [(r["result"] or {}).get(key) for r in self.records.values()]
        return [v for v in found if finite(v)]

    def compare(self, dense):
        """Computes, for each seed, how much worse this cell (task, H, codec) is than the codec `none` at the same H: in
        percentage points or bits."""
        self.dense = dense
        sign = 1 / math.log(2) if self.task.text else -1
        for seed, r in self.records.items():
            other = dense.records.get(seed)
            if other and scored(r) and scored(other):
                self.worse[seed] = sign * (score(r, self.task) - score(other, self.task))

    @property
    def loses(self):
        """Returns how much worse the cell is than `none`, as mean over seeds. Infinite: a run failed. None: there is no
        run with `none`."""
        return math.inf if self.failed else mean(list(self.worse.values()))

    @property
    def fewer(self):
        return self.dense.bytes / self.bytes if self.dense and self.dense.bytes and self.bytes else None


def scored(record):
    tested = record["tested"] or {}
    return finite(tested.get("accuracy"), tested.get("loss"), (record["result"] or {}).get("bytes_sent"))


def score(record, task):
    """Returns the result as the tables show it: accuracy in % or loss in nats."""
    return record["tested"]["loss"] if task.text else 100 * record["tested"]["accuracy"]


def order(codec):
    """Sort key of a codec: first the codecs of tasks.CODECS in their order, then all others."""
    return tasks.CODECS.index(codec) if codec in tasks.CODECS else len(tasks.CODECS), codec


def cells_of(records):
    """Returns all cells (task, H, codec) in the order of the tables. Compares each cell with the codec `none`, and
    marks the cells on the frontier of their task."""
    groups = {}
    for r in records:
        groups.setdefault((r["task"], r["local_steps"], r["codec"]), []).append(r)
    places = list(tasks.BY_NAME)
    keys = sorted(groups, key=lambda k: (places.index(k[0]), k[1], order(k[2])))
    cells = [Cell(*key, groups[key]) for key in keys]
    dense = {(c.task.name, c.local_steps): c for c in cells if c.codec == tasks.DENSE}
    for c in cells:
        if (c.task.name, c.local_steps) in dense:
            c.compare(dense[c.task.name, c.local_steps])
        c.front = not c.failed and not any(beats(o, c) for o in cells if o.task is c.task and not o.failed)
    return cells


def beats(a, b):
    """Returns whether cell `a` is better than `b`: it sends fewer bytes, and its result is at least as good."""
    return a.bytes < b.bytes and (a.score <= b.score if a.task.text else a.score >= b.score)


def noise(cells):
    """Returns the standard error of the mean over seeds of how much worse a cell is than `none`. The variance over
    seeds is pooled over codecs. Only the half of the cells that differ least from `none` is used, because cells
    that differ much say little about the variance. None: there is one seed."""
    near = sorted((c for c in cells if len(c.worse) > 1 and not c.failed and c.codec != tasks.DENSE),
                  key=lambda c: abs(c.loses))
    near = near[:(len(near) + 1) // 2]
    if not near:
        return None
    variance = mean([sum((w - c.loses) ** 2 for w in c.worse.values()) / (len(c.worse) - 1) for c in near])
    return math.sqrt(variance / mean([len(c.worse) for c in near]))


# ---- Text. ----

def show(form, value):
    return form.format(value) if finite(value) else "-"


def unit(text):
    return "bits a character" if text else "points"


def lost(value, text):
    """Returns how much worse a cell is than `none` as text: as negative points of accuracy, or as positive bits."""
    if value == math.inf:
        return "failed"
    digits = 4 if text else 2
    return show(f"{{:+.{digits}f}}", value if value is None else round(value if text else -value, digits) + 0.0)


def table(cells):
    """Returns the Markdown table of one task and H."""
    task = cells[0].task
    seeds = sorted({s for c in cells for s in c.records})
    form = "{:.4f}" if task.text else "{:.2f}"
    statistics = any(finite(c.statistics) for c in cells)
    head = ["codec", *(f"seed {s}" for s in seeds), "mean, " + ("nats" if task.text else "%"),
            "against `none`, " + ("bits a character" if task.text else "points"), "MB", "fewer than `none` by", "drift",
            *(["of statistics"] if statistics else []), "verdict"]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for c in cells:
        marks = [show(form, score(c.records[s], task) if s in c.records and scored(c.records[s]) else None)
                 for s in seeds]
        row = [f"`{c.codec}`{' *' if c.front else ''}", *marks, show(form, c.score), lost(c.loses, task.text),
               show("{:,.1f}", c.bytes / 1e6 if c.bytes else None), show("{:.1f}x", c.fewer), show("{:.1e}", c.drift),
               *([show("{:.1e}", c.statistics)] if statistics else []),
               c.verdict if c.verdict == OK else f"**{c.verdict.replace('|', '/')}**"]
        lines.append("| " + " | ".join(row) + " |")
    error = noise(cells)
    if error is not None:
        lines += ["", f"Standard error of a difference, from the seeds: {error:.4f} {unit(True)}." if task.text else
                  f"Standard error of a difference, from the seeds: {error:.2f} {unit(False)}."]
    return "\n".join(lines)


def largest(cells, text):
    """Returns how much worse than `none` the worst cell is, as text with its task. `text`: among tasks on text data,
    else among all other tasks."""
    found = [c for c in cells if c.task.text == text and c.loses is not None]
    if not found:
        return "-"
    c = max(found, key=lambda c: c.loses)
    return f"{lost(c.loses, text)} ({c.task.name}{'' if c.local_steps == 1 else f', H={c.local_steps}'})"


def summary(cells):
    """Returns the Markdown summary: each codec over all tasks, and the resulting default."""
    least = [c for c in cells if c.local_steps == 1 and c.loses is not None]
    lines = ["| codec | largest loss at H=1: points | bits a character | at all H: points | bits a character "
             "| fewer bytes than `none` by, H=1 | all H | tasks at H=1 |", "|---" * 8 + "|"]
    known = sorted({c.codec for c in cells}, key=order)
    for codec in known:
        here, every = ([c for c in some if c.codec == codec] for some in (least, cells))
        lines.append("| " + " | ".join([
            f"`{codec}`", largest(here, False), largest(here, True), largest(every, False), largest(every, True),
            *(show("{:.1f}x", geometric([c.fewer for c in some if c.fewer])) for some in (here, every)),
            str(len(here))]) + " |")
    return "\n".join(lines) + "\n\n" + default(least)


def default(least):
    """Returns a sentence that names the default: of the codecs with a small enough loss on every task at H=1, the
    one that sends least. The
    default is determined twice: by the mean losses, and by the mean losses minus one standard error."""
    wanted = {c.task.name for c in least if c.codec == tasks.DENSE}
    if not wanted:
        return "The default: not known before `none` has run at H=1."
    error = {name: noise([c for c in least if c.task.name == name]) for name in wanted}
    shown = ", ".join(f"{name} {show('{:.4f}' if tasks.BY_NAME[name].text else '{:.2f}', error[name])}"
                      for name in tasks.BY_NAME if name in wanted)
    lines = [f"**The default** is the codec that sends least of those that lose at most {POINTS} points ({BITS} bits a "
             f"character) on each of these tasks at H=1 ({len(wanted)} of {len(tasks.TASKS)}). "
             f"Standard error of a difference, from the seeds: {shown}.", ""]
    for what, share in (("By the means", 0), ("By the means less one standard error", 1)):
        held = []
        for codec in sorted({c.codec for c in least}, key=order):
            mine = [c for c in least if c.codec == codec]
            if {c.task.name for c in mine} == wanted and all(
                    c.loses - share * (error[c.task.name] or 0) <= (BITS if c.task.text else POINTS) for c in mine):
                held.append((geometric([c.fewer for c in mine]), codec))
        lines.append(f"- {what}: `{max(held)[1]}`, {max(held)[0]:.1f} times fewer bytes."
                     if held else f"- {what}: none of them.")
    return "\n".join(lines)


def markdown(cells, left_out):
    lines = ["# Accuracy against bytes", "",
             "The peer that does worst, on the whole test set; H: local steps between exchanges, at equal computing; "
             "MB: sent by all peers together, including the consensus phase. "
             "`*`: no other row of the task, at any H, has fewer bytes and no less accuracy.", ""]
    if left_out:
        lines += [f"{left_out} runs that were made with other flags or another effort are left out.", ""]
    for task in tasks.TASKS:
        mine = [c for c in cells if c.task is task]
        if mine:
            lines += [f"## {task.name}", "", f"{task.title}, batch {task.batch}, "
                      f"{next(iter(mine[0].records.values()))['steps']} local steps.", ""]
        for h in sorted({c.local_steps for c in mine}):
            lines += [f"### {task.name}, H={h}", "", table([c for c in mine if c.local_steps == h]), ""]
    return "\n".join(lines + ["## Summary", "", summary(cells), ""])


TSV = ("task", "codec", "local_steps", "seed", "steps", "verdict")
RESULT = ("accuracy_min", "accuracy_max", "bytes_sent", "rounds", "settle_rounds", "relative_drift",
          "relative_drift_statistics", "estimated_relative_drift", "seconds", "simulated_s")


def tsv(cells):
    """Returns one line per run, in full precision. accuracy_min and accuracy_max are for the test images that all
    peers evaluated."""
    lines = [[*TSV, "accuracy", "loss", "bits_per_character", "worse_than_none", "fewer_than_none", "front", *RESULT,
              "gamma_min", "gamma_max", "wall_s"]]
    for c in cells:
        for seed, r in c.records.items():
            tested, result = r["tested"] or {}, r["result"] or {}
            gammas = [p["gamma"] for p in result.get("peers", []) if finite(p.get("gamma"))]
            other = c.dense.records.get(seed) if c.dense else None
            dense, sent = ((o or {}).get("bytes_sent") for o in (other and other["result"], result))
            lines.append([*(r[k] for k in TSV), tested.get("accuracy"), tested.get("loss"),
                          tested.get("bits_per_character"), c.worse.get(seed), dense / sent if dense and sent else None,
                          int(c.front), *(result.get(k) for k in RESULT), min(gammas, default=None),
                          max(gammas, default=None), r["wall_s"]])
    return "".join("\t".join("" if v is None else str(v).replace("\t", " ") for v in line) + "\n" for line in lines)
