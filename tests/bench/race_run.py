"""race_run.py -- one measurement of one arm: starts each of its processes on a host of its own, and measures its steps.

Every tenth of a second, the CPU time of all processes and the bytes that their hosts have sent are recorded (whole
packets, as the network interface counts them). A process writes one line per step (hearsay: metrics.jsonl, PyTorch:
steps). The time of a step is computed from these lines, from a first step that all processes have done to the last step
that all have done.
"""
import atexit
import json
import math
import os
import shutil
import subprocess
import time

import chaos_hosts as hosts
import race_tasks as tasks

TICK_S = 0.1
# Number of steps in a piece. The time of a step is the median over pieces, because local SGD exchanges in every
# tenth step only.
PIECE = 20
LEAST_STEPS = 6  # A measurement has at least this number of steps, however long they take.
BEGIN_S = 180  # Time limit for the first step, in seconds: eight processes take long to load PyTorch.
END_S = 900  # Time limit in seconds for evaluations and the consensus phase, for a run that is not stopped.
WHOLE_S = 3600  # With --whole: time limit in seconds for measuring one arm on one link.
CLOCK_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
WIRE = os.path.join(os.path.dirname(hosts.HEARSAY), "tests/bench_wire")


def shape(namespace, device, kbit):
    """Limits the rate of a device. A burst may be one millisecond long. A queue holds 80 ms or at least 100 kB."""
    hosts.run("tc", "-n", namespace, "qdisc", "replace", "dev", device, "root", "tbf", "rate", f"{kbit}kbit", "burst",
              str(max(3200, kbit // 8)), "limit", str(max(100000, kbit * 10)))


class Links(hosts.Network):
    """Hosts (network namespaces) on a bridge. The rate of each host's link is limited."""

    def shape(self, i, kbit):
        shape(self.hosts[i], "eth0", kbit)
        shape(self.bridge, f"p{i}", kbit)

    def shape_all(self, kbit):
        for i in range(len(self.hosts)):
            self.shape(i, kbit)


class LongLinks:
    """Hosts with a delay of delay_ms between them. bench_wire.c forwards their packets in place of a bridge."""

    def __init__(self, n, tag, delay_ms):
        self.delay_us = round(1000 * delay_ms)
        self.hosts = [f"hs{os.getpid()}-{tag}-{i}" for i in range(n)]
        self.wire = None
        atexit.register(self.close)
        for host in self.hosts:
            hosts.run("ip", "netns", "add", host)
            hosts.run("ip", "-n", host, "link", "set", "lo", "up")

    def shape_all(self, kbit):
        self.cut()
        self.wire = subprocess.Popen([WIRE, str(self.delay_us), str(kbit), *self.hosts], stdout=subprocess.PIPE, text=True)
        if self.wire.stdout.readline() != "ready\n":
            raise RuntimeError("bench_wire does not start")
        for i, host in enumerate(self.hosts):
            hosts.run("ip", "-n", host, "addr", "add", f"{hosts.address(i)}/24", "dev", "eth0")
            hosts.run("ip", "-n", host, "link", "set", "eth0", "up")
            shape(host, "eth0", kbit)

    def cut(self):
        if self.wire is not None:
            self.wire.kill()
            self.wire.wait()
            self.wire = None

    def close(self):
        self.cut()
        for host in self.hosts:
            subprocess.run(("ip", "netns", "del", host), capture_output=True)
        self.hosts = []


# ---- Reading the files that processes have written. ----

def lines_of(path):
    """Returns the complete lines of a file to which a process may still write."""
    try:
        with open(path) as f:
            return f.read().split("\n")[:-1]
    except FileNotFoundError:
        return []


def hearsay_steps(folder, arm, since):
    """Returns the times of the monotonic clock at which 0, H, 2 H, ... steps were done. The start of the first
    round is not recorded, so this round is assumed to take the median time."""
    times = {}
    for text in lines_of(os.path.join(folder, "metrics.jsonl")):
        line = json.loads(text)
        if line.get("rounds_done"):
            # Lines of the consensus phase repeat the number of the last round. Only the first line with this number
            # counts.
            times.setdefault(line["rounds_done"], since + line["time_s"])
    times = list(times.values())
    gaps = sorted(b - a for a, b in zip(times, times[1:]))
    return [times[0] - gaps[len(gaps) // 2]] + times if gaps else []


def torch_steps(folder, arm, since):
    return [float(text) for text in lines_of(os.path.join(folder, "steps"))][::arm.local_steps]


STEPS = {tasks.HEARSAY: hearsay_steps, tasks.TORCH: torch_steps}


def hearsay_curve(folder, arm):
    """Yields (step, loss in nats, share of right answers) for each evaluation. Only the evaluation of the final model
    has a loss."""
    for line in lines_of(os.path.join(folder, "metrics.jsonl")):
        r = json.loads(line)
        if r.get("accuracy") is not None and r["phase"] == "training" and r["round"] < r["rounds"]:
            yield r["round"] * arm.local_steps, None, r["accuracy"]
    with open(os.path.join(folder, "summary.json")) as f:
        r = json.load(f)
    yield r["round"] * arm.local_steps, r["test_loss"], r["accuracy"]


def torch_curve(folder, arm):
    with open(os.path.join(folder, "curve.json")) as f:
        return json.load(f)


CURVES = {tasks.HEARSAY: hearsay_curve, tasks.TORCH: torch_curve}


# ---- Measuring. ----

def interpolate(at, xs, ys):
    """Returns y at x = `at` by linear interpolation. xs ascends. Outside of xs, the nearest y is returned."""
    if at <= xs[0]:
        return ys[0]
    for k in range(1, len(xs)):
        if at <= xs[k]:
            return ys[k - 1] + (ys[k] - ys[k - 1]) * (at - xs[k - 1]) / max(1e-9, xs[k] - xs[k - 1])
    return ys[-1]


def cpu_s(pid):
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * CLOCK_TICK_S


def sent_bytes(pid):
    """Returns the number of bytes that the interface eth0 in the namespace of a process has sent."""
    with open(f"/proc/{pid}/net/dev") as f:
        for line in f:
            name, _, counts = line.partition(":")
            if name.strip() == "eth0":
                return int(counts.split()[8])
    return 0


class Log:
    """Counts the lines of a growing file."""

    def __init__(self, path):
        self.path, self.at, self.lines = path, 0, 0

    def count(self):
        try:
            with open(self.path, "rb") as f:
                f.seek(self.at)
                new = f.read()
        except FileNotFoundError:
            return 0
        self.at += len(new)
        self.lines += new.count(b"\n")
        return self.lines


class Race:
    """The processes of one measurement of an arm, from start to end."""

    def __init__(self, task, arm, network, spec, folder):
        self.task, self.arm, self.folder, self.spec = task, arm, folder, spec
        self.n = task.peers
        self.samples = []  # Samples: (time, CPU seconds of all processes, bytes sent by all hosts).
        self.last = [(0.0, 0)] * self.n
        self.processes, self.since = [], []
        name = "metrics.jsonl" if arm.side == tasks.HEARSAY else "steps"
        self.logs = [Log(os.path.join(self.out(i), name)) for i in range(self.n)]
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        try:
            for i in range(self.n):
                self.start(i, network.hosts[i])
        except BaseException:
            self.end()
            raise

    def start(self, i, host):
        environment = dict(hosts.ENVIRONMENT, OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="eth0")
        command = tasks.COMMANDS[self.arm.side](self.task, self.arm, i, self.n, self.spec, self.folder)
        with open(os.path.join(self.folder, f"peer-{i}.err"), "w") as err:
            self.since.append(time.monotonic())
            self.processes.append(subprocess.Popen(["ip", "netns", "exec", host] + command, stdout=subprocess.DEVNULL,
                                                   stderr=err, stdin=subprocess.DEVNULL, env=environment))

    def out(self, i):
        return os.path.join(self.folder, f"peer-{i}")

    def sample(self):
        now = time.monotonic()
        for i, process in enumerate(self.processes):
            try:
                self.last[i] = (cpu_s(process.pid), sent_bytes(process.pid))
            except (OSError, IndexError):
                pass  # The process has just ended: its last measured CPU time and bytes are kept.
        self.samples.append((now, sum(c for c, _ in self.last), sum(b for _, b in self.last)))

    def done_steps(self):
        """Returns the number of local steps that all processes have done, according to their lines."""
        least = min(log.count() for log in self.logs) - 1
        return least * (self.arm.local_steps if self.arm.side == tasks.HEARSAY else 1)

    def check(self):
        for i, process in enumerate(self.processes):
            if process.poll() not in (None, 0, 3):
                with open(os.path.join(self.folder, f"peer-{i}.err")) as f:
                    said = f.read().strip().split("\n")[-1]
                raise RuntimeError(f"{self.arm.name}: process {i} ended with {process.returncode}: {said}")

    def wait(self, limit_s, steps=math.inf):
        """Waits until all processes have ended, have done `steps` steps, or have trained for limit_s seconds."""
        start, begun = time.monotonic(), None
        while any(p.poll() is None for p in self.processes):
            self.check()
            self.sample()
            now = time.monotonic()
            done = self.done_steps()
            if begun is None and done > 0:
                begun = now
            if begun is None and now > start + BEGIN_S:
                raise RuntimeError(f"{self.arm.name}: no step after {BEGIN_S} s (see {self.folder})")
            if done >= steps or begun is not None and done >= LEAST_STEPS and now > begun + limit_s:
                return
            time.sleep(TICK_S)
        self.check()

    def end(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
        for process in self.processes:
            process.wait()

    def timelines(self):
        """Returns for each process the times at which 0, H, 2 H, ... steps were done."""
        return [STEPS[self.arm.side](self.out(i), self.arm, self.since[i]) for i in range(self.n)]

    def figures(self, skip):
        """Returns time, CPU time and bytes per step as a dict. The first `skip` steps (at most a third of all) do not
        count. None: too few steps."""
        h = self.arm.local_steps
        lines = self.timelines()
        rounds = min(len(t) for t in lines) - 1
        first = min(-(-skip // h), rounds // 3)
        if rounds < first + 2:
            return None
        begin, end = max(t[first] for t in lines), min(t[-1] for t in lines)
        if end <= begin:
            return None

        def done(at):
            return sum(interpolate(at, t, range(0, h * len(t), h)) for t in lines) / self.n
        times, at = zip(*[(x, done(x)) for x in grid(begin, end)])
        pieces = piece_times(times, at)
        steps = at[-1] - at[0]
        clock, cpu, sent = zip(*self.samples)
        return {"ms": 1e3 * (median(pieces) if pieces else (end - begin) / steps), "steps": round(steps),
                "done_s": self.done_s(lines, h),
                "mean_ms": 1e3 * (end - begin) / steps,
                "cpu_ms": 1e3 * (interpolate(end, clock, cpu) - interpolate(begin, clock, cpu)) / steps / self.n,
                "bytes": (interpolate(end, clock, sent) - interpolate(begin, clock, sent)) / steps / self.n}


    @staticmethod
    def done_s(lines, h):
        """Returns a list of [step, seconds after which all processes had done it]. Time begins when the last
        process begins."""
        begin = max(t[0] for t in lines)
        return [[k * h, max(t[k] for t in lines) - begin] for k in range(min(len(t) for t in lines)) if k * h % PIECE == 0]


def grid(begin, end, n=400):
    return [begin + (end - begin) * k / n for k in range(n + 1)]


def piece_times(times, at):
    """Returns the seconds per step for each piece of PIECE steps."""
    pieces = []
    edge = at[0]
    while edge + PIECE <= at[-1] + 1e-9:
        pieces.append((interpolate(edge + PIECE, at, times) - interpolate(edge, at, times)) / PIECE)
        edge += PIECE
    return pieces


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


# ---- The two kinds of races. ----

def learn(task, arm, network, spec, folder, kbit):
    """Returns the curve of an arm: [step, loss, share of right answers] of the worst peer. Times are not
    measured."""
    network.shape_all(kbit)
    race = Race(task, arm, network, dict(spec, evaluate_every=task.every), folder)
    try:
        race.wait(END_S)
        who = range(task.peers if arm.side == tasks.HEARSAY else 1)
        curves = [list(CURVES[arm.side](race.out(i), arm)) for i in who]
    finally:
        race.end()
    return [[rows[0][0], max((r[1] for r in rows), key=lambda x: x or 0), min(r[2] for r in rows)] for rows in zip(*curves)]


def clock(task, arm, network, spec, folder, kbit, steps, limit_s, skip):
    """Measures the steps of an arm on links of this rate: `steps` steps, or those within limit_s seconds."""
    network.shape_all(kbit)
    race = Race(task, arm, network, dict(spec, evaluate_every=0), folder)
    try:
        race.wait(limit_s, steps)
    finally:
        race.end()
    return race.figures(skip)
