"""chaos_hosts.py -- hosts with faults, and the peers on them, for the benchmarks of faults.

A host is a network namespace on a bridge. The bridge is in a namespace of its own, so that nothing is visible outside,
and everything is removed with the namespaces:

    10.77.0.1        10.77.0.2               10.77.0.N        10.77.0.254
    namespace 0      namespace 1     ...     namespace N-1    hearsay status
        |                |                       |                |
        +--------- veth pairs, tbf at both ends, on one bridge ---+

The rate of links is limited, so that links and not CPU cores determine the time of a round. If the machine has control
groups (cpu, version 1), one per host limits the CPU time of its peer. Needs root, ip, tc and nft.

A cut is a drop rule of nftables in the host's namespace. For TCP a cut is like an unplugged cable: no reset, only
silence, and retransmissions at growing intervals.
"""
import atexit
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HEARSAY = os.path.abspath(os.environ.get("HEARSAY") or os.path.join(ROOT, "build/release/hearsay"))
ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith(("OPENBLAS_", "HEARSAY_"))}
ENVIRONMENT["OPENBLAS_NUM_THREADS"] = "1"
CONTROL_GROUP = "/sys/fs/cgroup/cpu"
PORT = 7100
OPEN_KBIT = 1000000  # A rate so high that the link is practically not limited.
STATUS_S = 15  # Time limit of `hearsay status`, in seconds. A command that takes longer counts as no answer.


def run(*command, stdin=None):
    done = subprocess.run(command, input=stdin, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")


def fail(text):
    print(f"{os.path.basename(sys.argv[0])}: {text}", file=sys.stderr)
    sys.exit(2)


def check_needs():
    if os.geteuid():
        fail("namespaces need root")
    for tool in ("ip", "tc", "nft"):
        if not shutil.which(tool):
            fail(f"there is no {tool} here")
    if not os.access(HEARSAY, os.X_OK):
        fail(f"there is no program at {HEARSAY}")


# ---- The network. ----

class Network:
    """n hosts on a bridge. Each cut of a link has a name, chosen by the caller, and cuts may overlap."""

    def __init__(self, n, tag, kbit):
        self.kbit = kbit
        self.bridge = f"hs{os.getpid()}-{tag}"
        self.hosts = [f"{self.bridge}-{i}" for i in range(n)]
        self.cuts = [{} for _ in range(n)]
        atexit.register(self.close)
        run("ip", "netns", "add", self.bridge)
        run("ip", "-n", self.bridge, "link", "add", "br0", "type", "bridge")
        run("ip", "-n", self.bridge, "addr", "add", "10.77.0.254/24", "dev", "br0")
        run("ip", "-n", self.bridge, "link", "set", "br0", "up")
        for i, host in enumerate(self.hosts):
            run("ip", "netns", "add", host)
            run("ip", "-n", host, "link", "set", "lo", "up")
            run("ip", "-n", host, "link", "add", "eth0", "type", "veth", "peer", "name", f"p{i}", "netns", self.bridge)
            run("ip", "-n", host, "addr", "add", f"{address(i)}/24", "dev", "eth0")
            run("ip", "-n", host, "link", "set", "eth0", "up")
            run("ip", "-n", self.bridge, "link", "set", f"p{i}", "master", "br0", "up")
            self.shape(i, kbit)

    def shape(self, i, kbit):
        """Limits the rate of a host's link in both directions. Packets that would wait longer than 0.4 s are
        dropped."""
        for place, device in ((self.hosts[i], "eth0"), (self.bridge, f"p{i}")):
            run("tc", "-n", place, "qdisc", "replace", "dev", device, "root", "tbf", "rate", f"{kbit}kbit", "burst",
                f"{max(8000, kbit * 2)}", "latency", "400ms")

    def cut(self, i, name, ways, other=None):
        """Drops packets that a host receives ("in"), sends ("out"), or both ("both"): all, or those of one other
        host."""
        which = "" if other is None else address(other)
        rules = []
        if ways in ("in", "both"):
            rules.append(("in", f"ip saddr {which} drop" if which else "iif eth0 drop"))
        if ways in ("out", "both"):
            rules.append(("out", f"ip daddr {which} drop" if which else "oif eth0 drop"))
        self.cuts[i][name] = rules
        self.filter(i)

    def mend(self, i, name):
        if self.cuts[i].pop(name, None) is not None:
            self.filter(i)

    def filter(self, i):
        rules = [rule for cut in self.cuts[i].values() for rule in cut]
        text = "table inet cut\ndelete table inet cut\ntable inet cut {\n"
        for chain, hook in (("in", "input"), ("out", "output")):
            drops = "\n".join(rule for where, rule in rules if where == chain)
            text += f"chain c{chain} {{ type filter hook {hook} priority 0; policy accept;\n{drops}\n}}\n"
        run("ip", "netns", "exec", self.hosts[i], "nft", "-f", "-", stdin=text + "}\n")

    def close(self):
        for name in self.hosts + [self.bridge]:
            subprocess.run(("ip", "netns", "del", name), capture_output=True)
        self.hosts = []


def address(i):
    return f"10.77.0.{i + 1}"


class Cores:
    """A control group that limits the CPU time of a host's peer. Does nothing without control groups or a limit."""

    def __init__(self, name, share):
        self.path = os.path.join(CONTROL_GROUP, name) if share and os.access(CONTROL_GROUP, os.W_OK) else None
        if self.path:
            os.mkdir(self.path)
            atexit.register(self.close)
            self.limit(share)

    def limit(self, share):
        if self.path:
            with open(os.path.join(self.path, "cpu.cfs_quota_us"), "w") as f:
                f.write(str(max(1000, round(100000 * share))))

    def take(self, pid):
        if self.path:
            with open(os.path.join(self.path, "cgroup.procs"), "w") as f:
                f.write(str(pid))

    def close(self):
        for _ in range(50):
            try:
                os.rmdir(self.path)
                return
            except FileNotFoundError:
                return
            except OSError:
                time.sleep(0.02)  # A process that has just ended is still in the control group for a moment.


# ---- The data: small, and made here, so that a start costs a few milliseconds. ----

def write_data(path, seed=1, samples=4000, features=64, classes=10):
    rng = random.Random(seed)
    centres = [[rng.gauss(0, 1) for _ in range(features)] for _ in range(classes)]
    with open(path, "w") as f:
        for i in range(samples):
            label = i % classes
            f.write(",".join(f"{c + rng.gauss(0, 2.5):.2f}" for c in centres[label]) + f",{label}\n")


# ---- The peers. ----

class Peer:
    """One peer of the cluster. A peer may have no process at the moment."""

    def __init__(self, i):
        self.i = i
        self.process = None
        self.life = 0  # Number of times that the peer was started.
        self.since = 0.0
        self.holds = set()  # Names of the faults that stop the process now.
        self.killed = False
        self.code = None  # Exit code of a process that ended by itself.


class Cluster:
    """n peers, one per host. Every start of a peer uses the same command."""

    def __init__(self, folder, n, flags, kbit, cores=0.0, tag="c", seed=1):
        self.folder = folder
        self.n = n
        self.flags = flags
        self.seed = seed
        os.makedirs(folder, exist_ok=True)
        self.network = Network(n, tag, kbit)
        self.cores = [Cores(host, cores) for host in self.network.hosts]
        self.peers = [Peer(i) for i in range(n)]
        self.bootstrap = ",".join(f"{address(i)}:{PORT}" for i in range(n))
        self.key = os.path.join(folder, "cluster.key")
        self.unexplained = []
        atexit.register(self.end_all)
        write_data(os.path.join(folder, "data.csv"))
        run(HEARSAY, "key", "new", self.key)

    def out(self, i):
        return os.path.join(self.folder, f"peer-{i}")

    def start(self, i):
        peer = self.peers[i]
        peer.life += 1
        metrics = os.path.join(self.out(i), "metrics.jsonl")
        if os.path.exists(metrics):
            os.rename(metrics, os.path.join(self.out(i), f"metrics-{peer.life - 1}.jsonl"))
        command = ["ip", "netns", "exec", self.network.hosts[i], "nice", "-n", "5", HEARSAY, "peer", "--listen",
                   f"0.0.0.0:{PORT}", "--bootstrap", self.bootstrap, "--key", self.key, "--data",
                   f"csv:{os.path.join(self.folder, 'data.csv')}", "--shard", f"{i + 1}/{self.n}", "--min-peers",
                   str(self.n), "--seed", str(self.seed), "--name", f"peer-{i}", "--out", self.out(i)] + self.flags
        with open(os.path.join(self.folder, f"peer-{i}.out"), "a") as out, \
                open(os.path.join(self.folder, f"peer-{i}.err"), "a") as err:
            err.write(f"# life {peer.life}\n")
            err.flush()
            peer.since = time.monotonic()
            peer.process = subprocess.Popen(command, stdout=out, stderr=err, stdin=subprocess.DEVNULL, env=ENVIRONMENT)
        self.cores[i].take(peer.process.pid)
        peer.killed = False

    def running(self, i):
        process = self.peers[i].process
        return process is not None and process.poll() is None

    def kill(self, i):
        """Kills the process with SIGKILL. Returns False if there is no process."""
        peer = self.peers[i]
        if not self.running(i):
            return False
        peer.killed = True
        peer.holds.clear()
        peer.process.kill()
        peer.process.wait()
        peer.process = None
        return True

    def signal(self, i, number):
        if self.running(i):
            self.peers[i].process.send_signal(number)

    def hold(self, i, name):
        if self.running(i):
            self.peers[i].holds.add(name)
            self.signal(i, signal.SIGSTOP)

    def release(self, i, name):
        peer = self.peers[i]
        peer.holds.discard(name)
        if not peer.holds:
            self.signal(i, signal.SIGCONT)

    def reap(self):
        """Returns (peer, exit code) of each process that has ended by itself since the last call."""
        ended = []
        for peer in self.peers:
            if peer.process is not None and peer.process.poll() is not None:
                peer.code = peer.process.returncode
                peer.process = None
                ended.append((peer.i, peer.code))
        return ended

    def status(self, through=None):
        """Returns the members by name, as `hearsay status --json` prints them. {}: no peer answers."""
        bootstrap = self.bootstrap if through is None else f"{address(through)}:{PORT}"
        try:
            done = subprocess.run(["ip", "netns", "exec", self.network.bridge, HEARSAY, "status", "--bootstrap", bootstrap,
                                   "--key", self.key, "--json"], capture_output=True, text=True, timeout=STATUS_S,
                                  env=ENVIRONMENT)
            return {m["name"]: m for m in json.loads(done.stdout)["members"]}
        except (subprocess.TimeoutExpired, ValueError, KeyError):
            return {}

    def open_links(self, cores=0.2):
        """Removes the limit of all links and raises the limit of CPU time: for the end of a run, when nothing is
        measured."""
        for i in range(self.n):
            self.network.shape(i, OPEN_KBIT)
            self.cores[i].limit(cores)

    def calm(self):
        """Ends all faults of links and stopped processes. A killed process is not started again."""
        for i in range(self.n):
            for name in list(self.network.cuts[i]):
                self.network.mend(i, name)
            self.network.shape(i, self.network.kbit)
            self.peers[i].holds.clear()
            self.signal(i, signal.SIGCONT)

    def await_end(self, seconds):
        """Waits until all processes have ended by themselves. Returns False if some have not ended after
        `seconds`."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.reap()
            if not any(p.process for p in self.peers):
                return True
            time.sleep(0.2)
        return False

    def end_all(self):
        for peer in self.peers:
            if peer.process is not None and peer.process.poll() is None:
                peer.process.kill()
                peer.process.wait()

    def close(self):
        self.end_all()
        for cores in self.cores:
            if cores.path:
                cores.close()
        self.network.close()

    # ---- What must hold at the end. ----

    def complaints(self, rounds):
        """Returns all errors of the end of the run, as texts. Sets self.drift to the exact consensus distance."""
        wrong = []
        models = []
        for i, peer in enumerate(self.peers):
            if peer.code != 0:
                wrong.append(f"peer-{i}: exit code {peer.code}")
            try:
                with open(os.path.join(self.out(i), "summary.json")) as f:
                    wrong += [f"peer-{i}: {text}" for text in summary_complaints(json.load(f), rounds, self.n)]
            except (OSError, ValueError) as err:
                wrong.append(f"peer-{i}: no summary: {err}")
            models.append(os.path.join(self.out(i), "model.safetensors"))
            wrong += [f"peer-{i}: {text}" for text in self.count_complaints(i)]
        done = subprocess.run([sys.executable, os.path.join(ROOT, "tests/e2e/figures.py"), "drift"] + models,
                              capture_output=True, text=True)
        self.drift = float(done.stdout.split()[1]) if done.returncode == 0 else math.nan
        if not self.drift <= 1.15e-3:
            wrong.append(f"exact relative drift {self.drift}")
        return wrong

    def count_complaints(self, i):
        """Yields the lines of all metrics files of a peer whose counts of rounds do not add up."""
        for name in sorted(os.listdir(self.out(i))):
            if not name.startswith("metrics"):
                continue
            last = 0
            with open(os.path.join(self.out(i), name)) as f:
                for text in f.read().split("\n")[:-1]:
                    line = json.loads(text)
                    if line["round"] != line["joined_round"] + line["rounds_done"] + line["rounds_skipped"]:
                        yield f"{name}: round {line['round']}: counts do not add up"
                        break
                    if line["round"] < last:
                        yield f"{name}: round {line['round']} after {last}"
                        break
                    last = line["round"]


def summary_complaints(s, rounds, n):
    if s["verdict"]["kind"] != "consensus" or s["verdict"]["n_among"] != n:
        yield s["verdict"]["text"]
    if s["round"] != rounds or s["round"] != s["joined_round"] + s["rounds_done"] + s["rounds_skipped"]:
        yield (f"round {s['round']} of {rounds} is not joined {s['joined_round']} + done {s['rounds_done']} + "
               f"skipped {s['rounds_skipped']}")
    if s["violations"]:
        yield f"{s['violations']} violations of the protocol"


def edges_open(member, wanted=None):
    """Returns whether all edges of a member are open and, if `wanted` is given, whether it has this number of
    edges."""
    edges = member.get("edges") or []
    return bool(edges) and all(e["state"] == "open" for e in edges) and (wanted is None or len(edges) == wanted)


def resident_kib(pid):
    try:
        with open(f"/proc/{pid}/status") as f:
            return next((int(line.split()[1]) for line in f if line.startswith("VmRSS:")), None)
    except OSError:
        return None


def slope(points):
    """Returns the slope (y per x) of the least-squares line through points (x, y)."""
    n = len(points)
    if n < 3:
        return math.nan
    mx, my = sum(x for x, _ in points) / n, sum(y for _, y in points) / n
    sxx = sum((x - mx) ** 2 for x, _ in points)
    return sum((x - mx) * (y - my) for x, y in points) / sxx if sxx else math.nan
