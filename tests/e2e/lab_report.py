#!/usr/bin/env python3
"""Compares the output of `hearsay-lab report` and `hearsay-lab tensorboard` with the files of the runs. Has its own readers.

  lab_report.py page PAGE DIR...        the HTML is valid and loads nothing, pictures are XML, values are those of the files
  lab_report.py csv FILE DIR...         RFC 4180; one row per line of metrics, with its numbers
  lab_report.py events LOGDIR DIR...    frames and checksums are valid; scalars are the numbers of the lines
  lab_report.py tensorboard LOGDIR DIR  the same, read by TensorBoard itself
  lab_report.py live LOGDIR DIR         event files of --follow have the numbers of the lines that no later start replaced
  lab_report.py live-tensorboard LOGDIR DIR   the same, read by TensorBoard itself
  lab_report.py scalars LOGDIR TAG      prints the values of a tag, one per line
"""
import csv
import glob
import html.parser
import json
import math
import os
import re
import struct
import sys
import xml.etree.ElementTree

VOID = {"meta", "br", "hr", "img", "link", "input"}
WORDS = ["phase", "rung", "rung_by"]


def fail(message):
    sys.exit(f"# lab_report {' '.join(sys.argv[1:])}: {message}")


# ---- Reading the files of runs. ----


def load(path):
    try:
        with open(path, encoding="utf-8") as f:
            return json.load(f)
    except FileNotFoundError:
        return {}


def lines(path):
    """Returns the round lines of a metrics.jsonl that has one start of the process. Omits an incomplete last line."""
    try:
        with open(path, encoding="utf-8") as f:
            text = f.read()
    except FileNotFoundError:
        return []
    return [row for row in map(json.loads, text.split("\n")[:-1]) if not row.get("start")]


def peers_of(path):
    """Returns (name, directory) of each peer."""
    found = [d for d in os.listdir(path) if re.fullmatch(r"peer-\d+", d)]
    if not found:
        return [(os.path.basename(os.path.realpath(path)), path)]
    return [(d, os.path.join(path, d)) for d in sorted(found, key=lambda d: int(d[5:]))]


def start_of(path):
    with open(path, encoding="utf-8") as f:
        return json.loads(f.readline())


# ---- Checking the page. ----


class Page(html.parser.HTMLParser):
    """Parser of the report page: checks that each tag is closed and that nothing is loaded, and collects all table cells."""

    def __init__(self):
        super().__init__()
        self.open = []
        self.cells = []  # Cells of the tables: (run or peer, figure, value, text).
        self.row = None
        self.cell = None
        self.ids = set()

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        if tag in ("script", "img", "image", "link", "iframe", "object", "embed", "audio", "video", "a", "base", "form"):
            fail(f"<{tag}> is there")
        for name, value in attrs:
            value = value or ""
            if name.startswith("on"):
                fail(f"{tag} has {name}")
            if name in ("src", "srcset", "data", "action", "poster"):
                fail(f"{tag} has {name}={value}")
            if name in ("href", "xlink:href") and not value.startswith("#"):
                fail(f"{tag} has {name}={value}")
            if "url(" in value and "url(#" not in value:
                fail(f"{tag} has {name}={value}")
        if "id" in values:
            if values["id"] in self.ids:
                fail(f"id {values['id']} is there twice")
            self.ids.add(values["id"])
        if tag == "tr":
            self.row = ("run", int(values["data-run"])) if "data-run" in values else None
            if "data-peer" in values:
                self.row = ("peer", int(values["data-peer"]))
        if tag == "td" and "data-figure" in values:
            self.cell = [self.row, values["data-figure"], values.get("data-value"), ""]
            self.cells.append(self.cell)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open[-1] != tag:
            fail(f"</{tag}> behind {self.open[-3:]}")
        self.open.pop()
        if tag == "td":
            self.cell = None

    def handle_data(self, data):
        if self.cell is not None:
            self.cell[3] += data


def shown_right(figure, value, text):
    """Returns whether the displayed text, such as "1.2 MB", is the number, rounded."""
    units = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "%": 0.01}
    number, _, unit = text.partition(" ")
    scale = units.get(unit, 1)
    digits = len(number.partition(".")[2].partition("e")[0])
    if "e" in number or figure.endswith("drift"):
        return math.isclose(float(number), value, rel_tol=0.006)
    return abs(float(number) * scale - value) <= (0.5 * 10**-digits + 1e-9) * scale


def expected_of_run(path):
    """Returns the expected values of a run from its summary, or None if the run has not ended."""
    end = load(os.path.join(path, "summary.json"))
    if "n_peers" not in end:
        return None
    own = [load(os.path.join(d, "summary.json")) for _, d in peers_of(path)]
    if not any(own):
        own = end["peers"]  # For `sim`, the peers have no summaries: the summary of the run has the values of each peer.
    simulated = "simulated_s" in end
    return {
        "accuracy_min": end["accuracy_min"],
        "accuracy_max": end["accuracy_max"],
        "test_loss_min": min(p["test_loss"] for p in own),
        "test_loss_max": max(p["test_loss"] for p in own),
        "loss_min": min(p["loss"] for p in own),
        "loss_max": max(p["loss"] for p in own),
        "relative_drift": end["relative_drift"],
        "estimated_relative_drift": end["estimated_relative_drift"],
        "bytes_sent": end.get("bytes_sent_in_all", end["bytes_sent"]),
        "rounds": end["rounds"],
        "settle_rounds": end["settle_rounds"],
        "rounds_skipped": end["verdict"]["rounds_skipped"],
        "seconds": end["simulated_s"] if simulated else end["seconds_in_all"],
        "wall_s": end["seconds"] if simulated else None,
        "n_peers": end["n_peers"],
    }


def expected_of_peer(path, directory, name):
    end = load(os.path.join(directory, "summary.json"))
    if not end:
        listed = load(os.path.join(path, "summary.json")).get("peers", [])
        end = next((p for p in listed if p["name"] == name), {})
    rows = lines(os.path.join(directory, "metrics.jsonl"))
    last = rows[-1] if rows else {}
    either = lambda key: end.get(key, last.get(key)) if end.get(key) is not None else last.get(key)
    accuracy = end["test_accuracy"] if "test_accuracy" in end else end.get("accuracy")
    spent = [last.get(k) for k in ("compute_s", "wait_s", "mix_s")]
    rest = max(0.0, last["time_s"] - spent[0] - spent[1] - spent[2]) if None not in spent else None
    return {
        "accuracy": accuracy,
        "test_loss": end.get("test_loss"),
        "loss": either("loss"),
        "relative_drift": either("relative_drift"),
        "bytes_sent": either("bytes_sent"),
        "bytes_received": either("bytes_received"),
        "rounds": either("round"),
        "rounds_skipped": either("rounds_skipped"),
        "seconds": end.get("seconds", last.get("time_s")),
        "exit_code": end.get("exit_code"),
        "compute_s": spent[0],
        "wait_s": spent[1],
        "mix_s": spent[2],
        "rest_s": rest,
    }


def compare(where, figure, value, text, wanted):
    """Checks that `value` in a cell of the page equals `wanted`, the value in the files of the run. None: not known."""
    if (value is None) != (wanted is None):
        fail(f"{where}: {figure} is {value}, expected {wanted}")
    if value is None:
        if text != "\u2013":
            fail(f"{where}: {figure} is unknown, and shown as {text}")
        return
    if not math.isclose(float(value), wanted, rel_tol=1e-12, abs_tol=1e-300):
        fail(f"{where}: {figure} is {value}, expected {wanted}")
    if not shown_right(figure, wanted, text):
        fail(f"{where}: {figure} {wanted} is shown as {text}")


def check_page(path, dirs):
    text = open(path, encoding="utf-8").read()
    if "default-src 'none'" not in text:
        fail("no Content-Security-Policy")
    if re.search(r"@import|url\((?!#)", text):
        fail("a style fetches something")
    bare = re.sub(r'xmlns(:xlink)?="http://www\.w3\.org/[0-9a-z/]+"', "", text)
    if re.search(r"https?:|//[a-z]", bare):
        fail("an address is there")
    for svg in re.findall(r"<svg.*?</svg>", text, re.S):
        xml.etree.ElementTree.fromstring(svg)
    if text.count("<table") != text.count('<div class="wide"><table'):
        fail("a table is not in a box that scrolls")
    if max(row.count("<td") for row in re.findall(r"<tr data-run=.*?</tr>", text, re.S)) > 11:
        fail("a table of runs is wider than a window of 1200 px")
    page = Page()
    page.feed(text)
    page.close()
    if page.open:
        fail(f"{page.open} stay open")
    runs, peers = 0, 0
    places = [(path, d, name) for path in dirs for name, d in peers_of(path)]
    seen = -1
    for row, figure, value, shown in page.cells:
        if row[0] == "run":
            wanted = expected_of_run(dirs[row[1]])
            if wanted is not None:
                compare(dirs[row[1]], figure, value, shown, wanted[figure])
                runs += 1
            continue
        if figure == "accuracy":
            seen += 1  # Counts each peer once, by the first value in its row.
        compare(places[seen][1], figure, value, shown, expected_of_peer(*places[seen])[figure])
        peers += 1
    if seen != len(places) - 1 or peers != 14 * len(places):
        fail(f"{peers} figures of {seen + 1} peers, expected those of {len(places)}")
    if runs < 10 * sum(expected_of_run(d) is not None for d in dirs):
        fail(f"{runs} figures of runs")


# ---- Checking the table of --csv. ----


def check_csv(path, dirs):
    raw = open(path, "rb").read()
    if raw.count(b"\r\n") != raw.count(b"\n"):
        fail("a line does not end in CRLF")
    rows = list(csv.DictReader(open(path, newline="", encoding="utf-8"), strict=True))
    wanted = [(os.path.basename(d), name, line) for d in dirs for name, at in peers_of(d)
              for line in lines(os.path.join(at, "metrics.jsonl"))]
    if len(rows) != len(wanted):
        fail(f"{len(rows)} rows, expected {len(wanted)}")
    for row, (run, peer, line) in zip(rows, wanted):
        if (row["run"], row["peer"], row["start"]) != (run, peer, "0"):
            fail(f"found {row}, expected {run} {peer}")
        for key in row.keys() - {"run", "peer", "start"}:
            value = line.get(key)
            same = row[key] == (value or "") if key in WORDS else (
                row[key] == "" if value is None else float(row[key]) == value)
            if not same:
                fail(f"{run} {peer} round {line['round']}: {key} is {row[key]}, expected {value}")


# ---- Checking event files. ----


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(path):
    raw = open(path, "rb").read()
    at = 0
    while at < len(raw):
        n, crc = struct.unpack_from("<QI", raw, at)
        if crc != masked(raw[at : at + 8]):
            fail(f"{path}: byte {at}: the length's checksum is wrong")
        data = raw[at + 12 : at + 12 + n]
        (crc,) = struct.unpack_from("<I", raw, at + 12 + n)
        if crc != masked(data):
            fail(f"{path}: byte {at}: the record's checksum is wrong")
        yield data
        at += n + 16


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def fields(data):
    """Yields the fields of a protobuf message as (number, value)."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 1:
            (value,), at = struct.unpack_from("<d", data, at), at + 8
        elif key & 7 == 5:
            (value,), at = struct.unpack_from("<f", data, at), at + 4
        elif key & 7 == 2:
            n, at = varint(data, at)
            value, at = data[at : at + n], at + n
        else:
            fail(f"a field of type {key & 7}")
        yield key >> 3, value


def scalars_of(path):
    """Returns [(wall time, step, tag, value)] of a TensorBoard event file, and checks the file's first record."""
    first = True
    for data in records(path):
        event = list(fields(data))
        get = dict(event)
        if first and get.get(3) != b"brain.Event:2":
            fail(f"{path}: begins with {get}")
        first = False
        for number, summary in event:
            if number == 5:
                for _, value in fields(summary):
                    one = dict(fields(value))
                    yield get[1], get.get(2, 0), one[1].decode(), one[2]


def as_float(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


TAGS = {"loss": "loss", "accuracy": "accuracy", "test_loss": "test_loss", "bytes/sent": "bytes_sent", "bytes/received": "bytes_received",
        "seconds/computing": "compute_s", "seconds/waiting": "wait_s", "seconds/mixing": "mix_s",
        "rounds_skipped": "rounds_skipped", "gamma": "gamma", "codec/drift_excess": "drift_excess"}
DRIFTS = {"drift": "drift", "relative_drift": "relative_drift"}


def expected_scalars(directory):
    wanted, told = {}, None
    for row in lines(os.path.join(directory, "metrics.jsonl")):
        step = row["round"] + row["settle_rounds"]
        for tag, key in TAGS.items():
            if row[key] is not None:
                wanted.setdefault(tag, []).append((step, as_float(row[key])))
        if row["drift_round"] is not None and row["drift_round"] != told:
            told = row["drift_round"]
            for tag, key in DRIFTS.items():
                wanted.setdefault(tag, []).append((told, as_float(row[key])))
    return wanted


def check_all(logs, run):
    """Checks the final values of a run of several peers."""
    end = load(os.path.join(run, "summary.json"))
    (path,) = glob.glob(os.path.join(glob.escape(os.path.join(logs, os.path.basename(run), "all")), "*"))
    found = {tag: (step, value) for _, step, tag, value in scalars_of(path)}
    for tag, key in (("end/accuracy_min", "accuracy_min"), ("end/exact_relative_drift", "relative_drift"), ("end/exact_drift", "drift")):
        if found.get(tag) != (end["rounds"] + end["settle_rounds"], as_float(end[key])):
            fail(f"{path}: {tag} is {found.get(tag)}, expected {end[key]}")


def check_events(logs, dirs):
    for run in dirs:
        check_all(logs, run)
        for name, directory in peers_of(run):
            at = os.path.join(logs, os.path.basename(run), name)
            (path,) = [os.path.join(at, f) for f in os.listdir(at)]
            if ".tfevents." not in path:
                fail(f"{path}: TensorBoard does not know such a name")
            found, walls = {}, []
            for wall, step, tag, value in scalars_of(path):
                found.setdefault(tag, []).append((step, value))
                walls.append(wall)
            wanted = expected_scalars(directory)
            if found != wanted:
                fail(f"{path}: {[t for t in wanted if found.get(t) != wanted[t]]} differ, or {found.keys() ^ wanted.keys()}")
            if "relative_drift" not in found or "accuracy" not in found or walls != sorted(walls):
                fail(f"{path}: {list(found)}, or times that fall")
            at = start_of(os.path.join(directory, "metrics.jsonl"))["at"]
            if (walls[0] > 1.7e9) != (at is not None):
                fail(f"{path}: the first time is {walls[0]}")


def as_tensorboard(logs):
    from tensorboard.backend.event_processing import event_accumulator

    reader = event_accumulator.EventAccumulator(glob.escape(logs), size_guidance={"scalars": 0})
    reader.Reload()
    return {tag: [(e.step, e.value) for e in reader.Scalars(tag)] for tag in reader.Tags()["scalars"]}


# ---- TensorBoard event files that --follow writes during a run. ----


def standing(directory):
    """Returns the round lines of a metrics.jsonl without rounds that a later start did again. Bytes are totals over all
    starts."""
    rows, sent, received, before = [], 0, 0, {}
    for row in map(json.loads, open(os.path.join(directory, "metrics.jsonl"), encoding="utf-8")):
        if row.get("start"):
            sent, received = before.get("bytes_sent", 0), before.get("bytes_received", 0)
            rows = [r for r in rows if r["round"] + r["settle_rounds"] <= row["from_round"]]
            continue
        row["bytes_sent"] += sent
        row["bytes_received"] += received
        rows.append(row)
        before = row
    return rows


def together(logs):
    """Merges the event files of a directory. A restart at a step replaces the values of this step and of later steps."""
    found = {}
    for path in sorted(glob.glob(os.path.join(glob.escape(logs), "*.tfevents.*"))):
        for data in records(path):
            event = dict(fields(data))
            if 7 in event:
                if dict(fields(event[7])) != {1: 1}:
                    fail(f"{path}: found {event}, expected a start of a session")
                found = {tag: [p for p in points if p[0] < event[2]] for tag, points in found.items()}
            for _, value in fields(event.get(5, b"")):
                one = dict(fields(value))
                found.setdefault(one[1].decode(), []).append((event.get(2, 0), one[2]))
    return found


def same_numbers(a, b):
    return len(a) == len(b) and all(x[0] == y[0] and math.isclose(x[1], y[1], rel_tol=3e-7) for x, y in zip(a, b))


def check_live(found, directory):
    rows = standing(directory)
    for tag, key in TAGS.items():
        wanted = [(r["round"] + r["settle_rounds"], r[key]) for r in rows if r[key] is not None]
        if not same_numbers(found.get(tag, []), wanted):
            fail(f"{directory}: {tag} is {found.get(tag, [])[-3:]}, expected {wanted[-3:]}")
    drifts = {r["drift_round"]: r for r in rows if r["drift_round"] is not None}
    for tag in DRIFTS:
        for step, value in found.get(tag, []):
            if step in drifts and not math.isclose(value, drifts[step][tag], rel_tol=3e-7):
                fail(f"{directory}: {tag} of {step} is {value}, expected {drifts[step][tag]}")
        steps = [step for step, _ in found.get(tag, [])]
        if not steps or steps != sorted(set(steps)) or len(set(drifts) - set(steps)) > 2:
            fail(f"{directory}: {tag} is of {steps[:5]}..., expected {sorted(drifts)[:5]}...")
    if found.keys() - TAGS.keys() - DRIFTS.keys():
        fail(f"{directory}: found {sorted(found)}")


def check_tensorboard(logs, directory):
    found = as_tensorboard(logs)
    if found != expected_scalars(directory):
        fail("TensorBoard reads something else")


def main():
    tool, path, dirs = sys.argv[1], sys.argv[2], sys.argv[3:]
    if tool == "page":
        check_page(path, dirs)
    elif tool == "csv":
        check_csv(path, dirs)
    elif tool == "events":
        check_events(path, dirs)
    elif tool == "tensorboard":
        check_tensorboard(path, dirs[0])
    elif tool == "live":
        check_live(together(path), dirs[0])
    elif tool == "live-tensorboard":
        check_live(as_tensorboard(path), dirs[0])
    elif tool == "scalars":
        print(*[value for _, value in together(path).get(dirs[0], [])], sep="\n")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
