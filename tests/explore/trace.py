#!/usr/bin/env python3
"""tests/explore/trace.py -- checks, compares and merges traces of protocol events.

The traces are those of tests/golden/traces, of --trace of hearsay peer, local and sim, and of explore.

  trace.py check FILE...    checks the form of each line, and that times do not decrease
  trace.py diff A B         compares the events of each peer, without times
  trace.py merge FILE...    prints the traces of several peers as one, ordered by the wall clock

FILE - is the standard input. Exit code 0: no violation or difference; 1: a violation or difference; 2: wrong usage or
no such file. peer/trace/trace.h describes the form of a trace.
"""
import datetime
import difflib
import re
import sys

NAME = r"(?:#[0-9a-f]{8}|[A-Za-z0-9._-]{1,32}|\?)"
PHASE = "joining|training|consensus|finishing|left"
STATE = "closed|asking|open|paused|done"
EPOCH = r"(?:e\d+|no epoch)"
PIECE = r"(?:whole|sketches|(?:initial )?piece \d+)"
HEADER = re.compile(r"# hearsay trace(?: of (?P<peer>.*?))?(?: since (?P<at>\S+))?$")
LINE = re.compile(rf" *(?P<time>\d+\.\d{{3}}(?:\d{{3}})?)  (?:---- (?P<mark>.+)|(?P<peer>{NAME})  (?P<event>.+))$")
MESSAGES = re.compile(
    rf"HELLO round \d+(?: observer)?(?: without a run)?(?: started)?|MEMBERS(?: {NAME} [a-z?]+)*(?: accused: \d+)?"
    rf"|PING(?: finished)?|EDGE {EPOCH} round \d+(?: answer)?|EDGE_CLOSE|DELTA {EPOCH} round \d+ codec \d+ beat \d+"
    r"|FINISH (?:ASK|PROPOSE|REPORT|ACCEPTED|DECIDED) ballot \d+ models \d+"
    rf"|MODEL_REQ {PIECE}|MODEL round \d+ {PIECE}|ROUND_PROTOCOL round \d+ attempt \d+ step \d+"
    rf"|REFUSED reason \d+|PART {EPOCH} round \d+ bytes \d+|MOMENTS bytes \d+|BEAT beat \d+|PROBE|HEARD age \d+ ms"
    r"|CALLBACK reason \d+|STATUS_REQ|STATUS|message \d+|a message that cannot be parsed, \d+ bytes")
AT = re.compile(rf"at \d+: (?:{PHASE})(?:, holds)?(?:, step \d+, \d+ live)?(?:, apart \S+)?"
                rf"(?:, {NAME} (?:{STATE})(?: \d+)?)*")
SESSION = re.compile(rf"session with {NAME}(?:, dialled| ends(?: by a word)?)?")
FORMS = (("<- ", re.compile(rf"<- {NAME}  (?:{MESSAGES.pattern})")), ("at ", AT), ("session with ", SESSION))


class Trace:
    """The lines of a trace as (line number, time, peer, event).

    A line that belongs to no peer has the peer "". `starts`: (line number, header) for each header line, which begins
    the trace of a process."""

    def __init__(self, path):
        self.path, self.lines, self.starts, self.errors = path, [], [], []
        with (sys.stdin if path == "-" else open(path, encoding="utf-8")) as f:
            for number, line in enumerate(f, 1):
                self.take(number, line)
        if not self.lines and not self.errors:
            self.errors.append(f"{path}: found no event")

    def take(self, number, line):
        header, m = HEADER.match(line), LINE.match(line)
        if header:
            self.starts.append((number, header))
        elif not m or not line.endswith("\n"):
            self.errors.append(f"{self.path}:{number}: found {line.rstrip()[:100]!r}, expected time, peer and event")
        else:
            self.lines.append((number, float(m["time"]), m["peer"] or "", m["event"] or m["mark"]))

    def check(self):
        """Returns the violations of the form as texts. Times must not decrease, except after a header, where the trace of
        another process begins."""
        found, last, starts = list(self.errors), 0.0, [number for number, _ in self.starts]
        for number, time, peer, event in self.lines:
            if starts and number > starts[0]:
                starts.pop(0)
                last = 0.0
            if time < last:
                found.append(f"{self.path}:{number}: found time {time}, expected at least {last}")
            last = time
            for begin, form in FORMS:
                if peer and event.startswith(begin) and not form.fullmatch(event):
                    found.append(f"{self.path}:{number}: found {event[:100]!r}, which is no event of this form")
        return found

    def events(self):
        """Returns a dictionary: for each peer the list of its events, in order, without times."""
        of = {}
        for _, _, peer, event in self.lines:
            of.setdefault(peer, []).append(event)
        return of


def check(paths):
    found = [text for path in paths for text in Trace(path).check()]
    print("\n".join(found), end="\n" * bool(found))
    return 1 if found else 0


def diff(a, b):
    left, right = Trace(a).events(), Trace(b).events()
    differ = 0
    for peer in sorted(left.keys() | right.keys()):
        for line in difflib.unified_diff(left.get(peer, []), right.get(peer, []), f"{a} {peer}", f"{b} {peer}", lineterm=""):
            print(line)
            differ = 1
    return differ


def merge(paths):
    """Prints the lines of all files, ordered by the wall clock. The header of a trace gives the wall-clock time of its
    time 0. A header without a date counts as the earliest date of all headers."""
    entries, parts = [], []
    for trace in map(Trace, paths):
        starts = [(0, None)] + [(number, header["at"]) for number, header in trace.starts]
        for k, (number, at) in enumerate(starts):
            end = starts[k + 1][0] if k + 1 < len(starts) else float("inf")
            lines = [line for line in trace.lines if number <= line[0] < end]
            if lines:
                parts.append((datetime.datetime.fromisoformat(at.replace("Z", "+00:00")) if at else None, lines))
    dates = [at for at, _ in parts if at]
    first = min(dates, default=None)
    for at, lines in parts:
        shift = (at - first).total_seconds() if at else 0.0
        entries += [(shift + time, peer, event) for _, time, peer, event in lines]
    entries.sort(key=lambda entry: entry[0])
    since = f" since {first.isoformat(timespec='milliseconds').replace('+00:00', 'Z')}" if first else ""
    print(f"# hearsay trace of {len({peer for _, peer, _ in entries if peer})} peers{since}")
    for time, peer, event in entries:
        print(f"{time:9.3f}  {peer + '  ' if peer else '---- '}{event}")
    return 0


def main(argv):
    try:
        if len(argv) > 2 and argv[1] == "check":
            return check(argv[2:])
        if len(argv) == 4 and argv[1] == "diff":
            return diff(*argv[2:])
        if len(argv) > 2 and argv[1] == "merge":
            return merge(argv[2:])
    except (OSError, UnicodeDecodeError) as error:
        print(f"trace.py: {error}", file=sys.stderr)
        return 2
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv))
