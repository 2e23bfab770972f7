#!/usr/bin/env python3
"""Tests the live page in a real browser (tests/e2e/page.sh).

  page.py CHROMIUM URL                                                  a peer that waits for three others
  page.py CHROMIUM URL METRICS.JSONL PID NAME OTHER_PID OTHER_NAME

In the second form, URL is the page of a peer in a running ring of four. PID, NAME and METRICS.JSONL are the process id, name
and metrics file of this peer. The test kills the peer OTHER_NAME, and later the peer itself. Prints "ok - ..." or
"not ok - ..." for each check. Exit code 1 if a check fails. SHOTS=DIR keeps screenshots.
"""
import http.server
import json
import math
import os
import re
import signal
import sys
import threading
import time
import urllib.request

from devtools import Browser

PATIENCE = 60 * int(os.environ.get("PATIENCE", "5"))  # Time limit in seconds. A test that passes never waits for the full time.
SHOTS = os.environ.get("SHOTS")
failed = 0


def check(text, good, why=""):
    global failed
    failed += not good
    print("%s - %s" % ("ok" if good else "not ok", text), flush=True)
    if not good and why != "":
        print("# %s" % (why,), flush=True)


def load(url):
    with urllib.request.urlopen(url, timeout=30) as answer:
        return json.load(answer)


def shot(page, name, clip=None):
    if SHOTS:
        os.makedirs(SHOTS, exist_ok=True)
        page.shot(os.path.join(SHOTS, name + ".png"), clip)


TEXT = """(() => {
  const text = (id) => document.getElementById(id).textContent;
  const rows = (id) => Object.fromEntries([...document.querySelectorAll("#" + id + " tbody tr")]
    .map((r) => [r.dataset.id, [...r.children].map((c) => c.textContent)]));
  const ids = ["name", "phase", "round", "rounds", "drift", "drift_of", "loss", "accuracy", "accuracy_of", "live", "sent",
    "received", "codec", "gamma", "eta", "time", "waits", "graph_note", "fresh", "alarm", "standing", "members_note", "policy"];
  return {beat: document.documentElement.dataset.beat, members: rows("members"), edges: rows("edges"),
    ...Object.fromEntries(ids.map((id) => [id, text(id)]))};
})()"""


def number(text):
    return None if text == "-" else float(re.match(r"-?[\d,.]+(e[+-]\d+)?", text).group(0).replace(",", ""))


def near(text, value, by=1e-3):
    """Returns whether a text shows this value, or "-" if the value is null."""
    if value is None or text == "-":
        return value is None and text == "-"
    return abs(number(text) - value) <= by * max(abs(value), 1e-300)


def with_unit(text):
    units = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}
    return number(text) * units[text.split()[1]]


# ---- A running cluster ----

def same_moment(page, url):
    """Returns the /status.json of one snapshot, and the texts that the page shows for the same snapshot."""
    end = time.time() + PATIENCE
    while time.time() < end:
        s, seen = load(url + "status.json"), page.js(TEXT)
        if s["phase"] == seen["phase"] and str(s["round"] + s["settle_rounds"]) == seen["beat"] \
                and near(seen["sent"].split()[0], number(seen["sent"])) and \
                abs(with_unit(seen["sent"]) - s["bytes_sent"]) <= 1e-3 * s["bytes_sent"]:
            return s, seen
    raise AssertionError("page and figures are never of one moment")


def check_figures(page, url):
    s, seen = same_moment(page, url)
    for name in ("round", "loss", "live"):
        check("  %s: %s" % (name, seen[name]), near(seen[name], s[name]), s[name])
    check("  the consensus distance %s, %s" % (seen["drift"], seen["drift_of"].split(";")[0]),
          near(seen["drift"], s["relative_drift"])
          and seen["drift_of"].startswith("relative, of round %s, " % format(s["drift_round"], ",")), s["drift_round"])
    check("  the accuracy %s, %s" % (seen["accuracy"], seen["accuracy_of"]),
          near(seen["accuracy"], 100 * s["accuracy"], 1e-4)
          and seen["accuracy_of"] == "of round %s" % format(s["accuracy_round"], ","), s["accuracy"])
    check("  bytes: %s and %s" % (seen["sent"], seen["received"]),
          abs(with_unit(seen["received"]) - s["bytes_received"]) <= 1e-3 * s["bytes_received"])
    check("  codec, gamma, phase", seen["codec"] == s["codec"] and seen["phase"] == "training"
          and near(seen["gamma"].split()[1], s["gamma"]), seen["gamma"])
    members = {m["id"]: [m["name"], m["state"]] for m in s["members"]}
    check("  the members are those of status.json", {i: r[:2] for i, r in seen["members"].items()} == members, seen["members"])
    edges = {e["id"]: [e["name"], e["state"]] for e in s["edges"]}
    check("  and so are the edges", {i: r[:2] for i, r in seen["edges"].items()} == edges, seen["edges"])
    check("  with their bytes", all(abs(with_unit(seen["edges"][e["id"]][7]) - e["bytes_sent"]) <= 0.5 * e["bytes_sent"]
                                    for e in s["edges"]))
    drawn = page.js("""({nodes: document.querySelectorAll("#graph .node.alive").length,
      own: document.querySelectorAll("#graph .own.open").length,
      all: document.querySelector("#graph .others").getAttribute("d").split("M").length - 1})""")
    check("  the graph has all members and edges", drawn == {"nodes": 4, "own": 2, "all": 4}, drawn)
    check("  and says which it is", seen["graph_note"] == "ring: 4 vertices, 4 edges", seen["graph_note"])
    check("  policy, model and data are named", seen["policy"].startswith("policy sync, model logreg, data glyphs"), seen["policy"])


def check_against_file(page, path):
    """Checks that the values that the page shows for a round are those in the peer's metrics.jsonl."""
    def line_of(beat):
        for line in open(path, encoding="utf-8").read().split("\n")[:-1]:
            line = json.loads(line)
            if not line.get("start") and line["round"] + line["settle_rounds"] == beat:
                return line
        return None
    end, line = time.time() + PATIENCE, None
    while line is None and time.time() < end:
        seen = page.js(TEXT)
        line = line_of(int(seen["beat"]))
    check("loss and distance of round %s are those of metrics.jsonl" % seen["beat"],
          line is not None and near(seen["loss"], line["loss"]) and near(seen["drift"], line["relative_drift"]),
          (seen["loss"], seen["drift"], line))


def check_curves(page):
    drawn = page.js("""["drift", "loss", "accuracy", "traffic"].map((c) => {
      const d = document.querySelector("#chart_" + c + " .curve");
      return d ? d.getAttribute("d").split("L").length : 0; })""")
    check("four curves, of %s points" % drawn, drawn[0] >= 1 and all(n >= 2 for n in drawn[1:]), drawn)
    last = page.js("""document.querySelector("#chart_loss .readout").textContent""")
    check("  the last loss is read out: %s" % last, re.fullmatch(r"round [\d,]+: [\d.e-]+", last) is not None, last)


def check_keyboard(page):
    page.js("document.activeElement.blur(); window.scrollTo(0, 0)")
    seen = []
    for _ in range(40):
        page.key("Tab")
        seen.append(page.js("""(() => { const a = document.activeElement, c = getComputedStyle(a.matches(".node")
          ? a.querySelector(".halo") : a);
          return {what: a.getAttribute("class") || a.id || a.textContent, shown: c.outlineStyle !== "none" || c.stroke !== "none",
            body: a === document.body}; })()"""))
        if seen[-1]["body"] and len(seen) > 1:
            break
    stops = [s for s in seen if not s["body"]]
    check("%d stops by Tab, each of which shows its focus" % len(stops), len(stops) > 20 and all(s["shown"] for s in stops),
          [s for s in stops if not s["shown"]])
    check("  one of them is the graph", sum(s["what"].startswith("node") for s in stops) == 1, stops)
    page.js("""document.querySelector("#graph .node[tabindex='0']").focus()""")
    first = page.js("document.activeElement.getAttribute('aria-label')")
    page.key("ArrowRight")
    second = page.js("document.activeElement.getAttribute('aria-label')")
    about = page.js("document.getElementById('about').textContent")
    check("arrow keys go from member to member", first != second and second.split(":")[0] == about.split(":")[0], (first, second, about))
    order = """[...document.querySelectorAll("#members tbody tr")].map((r) => r.children[0].textContent)"""
    page.js("""document.querySelector("#members th button").focus()""")
    page.key("Enter", "\r")
    up = page.js(order)
    page.key("Enter", "\r")
    down, sort = page.js(order), page.js("""document.querySelector("#members th").getAttribute("aria-sort")""")
    check("Enter sorts the members by name, and turns them round", up == sorted(up) and down == up[::-1] and sort == "descending",
          (up, down, sort))
    page.js("""document.querySelector("#chart_loss svg").focus()""")
    page.key("Home")
    check("and the curves are read point by point",
          page.js("""document.querySelector("#chart_loss .cursor") !== null"""))


CONTRAST = """(() => {
  const numbers = (c) => c.match(/[\\d.]+/g).map(Number);
  const light = (c) => { const [r, g, b] = c.map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ground = (e) => { for (; e; e = e.parentElement) { const c = numbers(getComputedStyle(e).backgroundColor);
    if (c.length === 3 || c[3] === 1) return c.slice(0, 3); } return [255, 255, 255]; };
  const worst = {ratio: 99};
  for (const e of document.querySelectorAll("h1, h2, p, span, dt, dd, th button, td, a, summary, li, svg text, .state")) {
    if (!e.textContent.trim() || e.closest("[hidden]") || e.matches(".letter")) continue;
    const style = getComputedStyle(e), ink = numbers(e.namespaceURI.endsWith("svg") ? style.fill : style.color).slice(0, 3);
    const a = light(ink), b = light(ground(e)), ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < worst.ratio) Object.assign(worst, {ratio, what: e.textContent.trim().slice(0, 40)});
  }
  return {...worst, ground: light(ground(document.body))};
})()"""


def check_colours(page):
    for scheme, dark in (("dark", True), ("light", False)):
        page.media(prefers_color_scheme=scheme)
        found = page.js(CONTRAST)
        check("%s: on %s ground every text has a contrast of %.1f or more" % (scheme, scheme, found["ratio"]),
              (found["ground"] < 0.1) == dark and found["ratio"] >= 4.5, found)
    page.media(prefers_reduced_motion="reduce")
    check("nothing moves for who asks for that", page.js("""getComputedStyle(document.querySelector(".awaited")).animationName""") == "none")
    page.media()


def check_widths(page, what):
    for width in (320, 400, 768, 1280):
        page.size(width, 900)
        page.until("document.documentElement.clientWidth === %d" % width, PATIENCE)
        page.js("new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)))")
        wide = page.js("document.documentElement.scrollWidth")
        check("%s fits a width of %d" % (what, width), wide <= width, wide)


def check_deaths(page, pid, other_pid, other_name):
    row = """[...document.querySelectorAll("#members tbody tr")].find((r) => r.children[0].textContent === %s)""" % json.dumps(other_name)
    os.kill(other_pid, signal.SIGKILL)
    check("a peer that is killed is dead on the page", page.until(row + """.children[1].textContent === "dead" """, PATIENCE))
    node = """[...document.querySelectorAll("#graph .node")].find((g) => g.getAttribute("aria-label").startsWith(%s))""" \
        % json.dumps(other_name + ": dead")
    check("  in the graph, too, by its shape", page.until(node + """?.matches(".dead") && """ + node + """.querySelector(".letter").textContent === "D" """, PATIENCE))
    check("  and three are alive", page.until("""document.getElementById("live").textContent === "3" """, PATIENCE))
    check("  of a graph of three", page.until("""document.getElementById("graph_note").textContent === "ring: 3 vertices, 3 edges" """, PATIENCE))
    shot(page, "dead")
    page.complaints.clear()
    os.kill(pid, signal.SIGSTOP)
    alarm = """document.getElementById("alarm")"""
    check("a peer that hangs does not answer, and that is said", page.until("!%s.hidden && /does not answer/.test(%s.textContent)" % (alarm, alarm), PATIENCE))
    check("  with the age of what is shown", page.until("""/^last figures .* old$/.test(document.getElementById("fresh").textContent)""", PATIENCE))
    shot(page, "silent")
    os.kill(pid, signal.SIGCONT)
    check("  it goes on by itself", page.until("%s.hidden && /^figures/.test(document.getElementById('fresh').textContent)" % alarm, PATIENCE))
    os.kill(pid, signal.SIGKILL)
    check("a peer that is killed does not answer, either", page.until("/no connection/.test(%s.textContent)" % alarm, PATIENCE))
    aged = """parseFloat(document.getElementById("fresh").textContent.match(/[\\d.]+/)[0])"""
    was = page.js(aged)
    check("  and its figures age", page.until("%s > %f" % (aged, was + 1), PATIENCE))


# ---- A hundred invented members ----

HOSTILE = ["<img src=x onerror=alert(1)>", "</script><script>alert(2)</script>", "\"><b>bold</b>", "javascript:alert(3)",
           "{{7*7}}", "&lt;i&gt;", "\u202egnp.exe", "x" * 200]


def made_up(n, hostile):
    ids = ["%08x%056x" % ((i + 1) * 2654435761 % 2 ** 32, i) for i in range(n)]
    names = ["peer-%d" % i for i in range(n)]
    if hostile:
        names[1:1 + len(HOSTILE)] = HOSTILE
    states = ["dead" if i % 17 == 5 else "suspect" if i % 29 == 7 else "left" if i % 41 == 11 else "alive" for i in range(n)]
    live = [i for i in range(n) if states[i] in ("alive", "suspect")]
    vertex = {i: v for v, i in enumerate(live)}
    k = len(live)
    pairs = sorted({tuple(sorted((v, (v + step) % k))) for v in range(k) for step in (1, 13)})
    near_us = [live[b if a == 0 else a] for a, b in pairs if 0 in (a, b)]
    history = [{"round": 5 * r, "settle_rounds": 0, "time_s": 0.4 * r, "loss": 2.3 * math.exp(-r / 120) + 0.03 * math.sin(r),
                "accuracy": 1 - 0.9 * math.exp(-r / 90) if r % 40 == 0 else None,
                "relative_drift": 0.2 * math.exp(-r / 200) if r > 8 else None, "drift_round": 5 * r - 20 if r > 8 else None,
                "bytes_sent": 40000 * r} for r in range(1, 400)]
    return {
        "name": names[0], "id": ids[0], "version": "0", "healthy": True, "ready": True, "standing": "training: round 1995 of 5000",
        "phase": "training", "round": 1995, "rounds": 5000, "settle_rounds": 0, "time_s": 159.6, "loss": None, "accuracy": None,
        "accuracy_round": None, "drift": None, "relative_drift": None, "drift_round": None, "drift_age": None, "own_distance": None,
        "gamma": 0.5, "codec": "qsgd:4", "live": k, "min_peers": n, "bytes_sent": 123456789, "bytes_received": 120000000,
        "open_edges": len(near_us), "snapshot_age_s": 0.1, "final_drift": 0.001, "run_id": "0123456789abcdef",
        "run": "data=glyphs\nmodel=lenet5\npolicy=sync\ntopology=exponential\n" + ("compress=" + HOSTILE[0] + "\n" if hostile else ""),
        "waiting": {"for": "neighbour", "since_s": 3.25, "name": names[near_us[0]], "id": ids[near_us[0]], "round": 1994,
                    "have": None, "need": None}, "busy_s": 0,
        "members": [{"name": names[i], "id": ids[i], "state": states[i], "self": i == 0, "connected": i in near_us,
                     "round": 1995 if i in near_us or i == 0 else None, "loss": None, "vertex": vertex.get(i)} for i in range(n)],
        "edges": [{"name": names[i], "id": ids[i], "state": "open", "round": 1990, "gamma": 0.5, "resets": 0,
                   "bytes_sent": 1000000 * (j + 1), "bytes_received": 900000, "neighbour_round": 1994 + (j > 0),
                   "neighbour_busy_s": 3.0 if j == 0 else None} for j, i in enumerate(near_us)],
        "graph": {"topology": "exponential", "vertices": k, "n_edges": len(pairs), "edges": pairs},
        "violations_by_reason": {}, "refused_connections": {}, "history": history}


class Server:
    """Serves the real page with its content security policy, but with an invented /status.json."""

    def __init__(self, html, policy):
        outer = self
        self.status, self.code = {}, 200

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                data = outer.status if isinstance(outer.status, bytes) else json.dumps(outer.status).encode()
                page = self.path == "/"
                self.send_response(200 if page else outer.code)
                self.send_header("Content-Type", "text/html; charset=utf-8" if page else "application/json")
                self.send_header("Content-Security-Policy", policy)
                self.end_headers()
                self.wfile.write(html if page else data)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d/" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


OVERLAPS = """(() => {
  const boxes = [...document.querySelectorAll("#graph .label")].filter((t) => t.textContent).map((t) => t.getBoundingClientRect());
  const over = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  const marks = [...document.querySelectorAll("#graph .mark")].map((t) => t.getBoundingClientRect());
  const count = (list) => { let n = 0; list.forEach((a, i) => list.slice(i + 1).forEach((b) => { n += over(a, b); })); return n; };
  const all = document.getElementById("graph").closest("section").getBoundingClientRect();
  return {labels: boxes.length, names: count(boxes), marks: count(marks), nodes: marks.length,
    outside: boxes.concat(marks).filter((b) => b.left < all.left || b.right > all.right || b.top < all.top || b.bottom > all.bottom).length};
})()"""


def check_many(page, server):
    server.status = made_up(100, False)
    page.open("about:blank")  # Ends the requests of the page of the dead peer, whose failures would count below.
    page.complaints.clear()
    page.open(server.url)
    check("a hundred members are drawn", page.until("""document.querySelectorAll("#graph .node").length === 100""", PATIENCE))
    check_widths(page, "a page of a hundred")
    for width in (360, 1280):
        page.size(width, 1000)
        page.js("new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)))")
        found = page.js(OVERLAPS)
        check("  at %d %d names lie on none and within the graph" % (width, found["labels"]),
              found["labels"] >= 8 and found["names"] == 0 and found["outside"] == 0 and found["marks"] == 0, found)
    seen = page.js(TEXT)
    check("what is not known is -, not 0", all(seen[k] == "-" for k in ("loss", "drift", "accuracy"))
          and [e[3] for e in seen["edges"].values()][:2] == ["computes, since 3.0 s", "-"] and "-" in [r[2] for r in seen["members"].values()], seen)
    check("who waits for whom: %s" % seen["waits"], re.search(r"^peer-0 waits for peer-\d+, which has done round 1,994 "
                                                              r"\(this peer: 1,995\), since 3.3 s$", seen["waits"]) is not None, seen["waits"])
    check("  and its edge is drawn so", page.js("""document.querySelector("#graph .awaited").getAttribute("d") !== "" """))
    check("the time to the end: %s" % seen["eta"], seen["eta"] == "4 min 00 s", seen["eta"])
    check("states have shapes of their own", page.js("""new Set(["alive", "suspect", "dead", "left"].map((s) =>
      document.querySelector("#graph .node." + s + " .mark").getAttribute("d"))).size""") == 4)
    for scheme in ("light", "dark"):
        page.media(prefers_color_scheme=scheme)
        page.size(1280, 1000)
        shot(page, "hundred-" + scheme)
        page.size(390, 844, 2)
        shot(page, "phone-" + scheme)
    page.media()
    page.size(1280, 1000)
    check("the browser complains of nothing", page.complaints == [], page.complaints)


def check_hostile(page, server):
    server.status = made_up(100, True)
    page.open(server.url)
    page.until("""document.querySelectorAll("#members tbody tr").length === 100""", PATIENCE)
    names = page.js("""[...document.querySelectorAll("#members tbody tr")].map((r) => r.children[0].textContent)""")
    check("hostile names are text", names[1:1 + len(HOSTILE)] == HOSTILE, names[:10])
    check("  and nothing else", page.js("""document.querySelectorAll("img, b, i, iframe, script:not(:last-of-type)").length""") == 0)
    page.size(360, 800)
    page.js("new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)))")
    check("  however long", page.js("document.documentElement.scrollWidth") <= 360)
    page.size(1280, 1000)
    refused = page.js("""(() => { try { document.body.innerHTML = "<p>x</p>"; return false; } catch { return true; } })()""")
    check("  and the policy forbids to make markup of text", refused)
    page.complaints.clear()
    for what, body, code in (("no JSON", b"{", 200), ("an error", b"{}", 500), ("an empty object", b"{}", 200), ("null", b"null", 200)):
        server.status, server.code = body, code
        page.open(server.url)
        page.until("""document.getElementById("fresh").textContent !== "no figures yet" ||
          !document.getElementById("alarm").hidden""", PATIENCE)
        seen = page.js(TEXT)
        check("%s: no figure is made up" % what, all(seen[k] == "-" for k in ("round", "loss", "drift", "live", "sent")), seen)
        check("  and that is %s" % ("no alarm" if what == "an empty object" else "an alarm"),
              (seen["alarm"] == "") == (what == "an empty object"), seen["alarm"])
    server.status, server.code = made_up(4, False), 200
    check("it goes on when there are figures again", page.until("""document.getElementById("round").textContent === "1,995" """, PATIENCE))
    check("no dialog was opened", not any("dialog" in c for c in page.complaints), page.complaints)


def check_gap(page, server):
    """Checks that 2,000 rounds without a value are a gap in the curve, not a straight line."""
    status = made_up(4, False)
    last = status["history"][-1]
    status["history"] = [{**last, "round": r, "settle_rounds": 0, "loss": 1 / r, "relative_drift": 0.1, "drift_round": r}
                         for r in [*range(1, 400), *range(2400, 2800), 9000]]
    server.status, server.code = status, 200
    page.open(server.url)
    page.until("""document.querySelector("#chart_loss .curve") !== null""", PATIENCE)
    for chart in ("loss", "drift"):
        parts = page.js("""document.querySelector("#chart_%s .curve").getAttribute("d").split("M").length - 1""" % chart)
        check("rounds without figures are a gap: %s" % chart, parts == 3, parts)
    check("  and a point between two gaps is seen", page.js("""document.querySelectorAll("#chart_loss .dot").length""") >= 2)


def check_gathering(chromium, url):
    with Browser(chromium) as browser:
        page = browser.page()
        page.open(url)
        waits = """/^p0 waits for members: 1 of 4 are here, since /.test(document.getElementById("waits").textContent)"""
        check("for whom a peer waits that is alone", page.until(waits, PATIENCE))
        seen = page.js(TEXT)
        check("  it is joining, and has no figures yet", seen["phase"] == "joining" and seen["live"] == "1"
              and all(seen[k] == "-" for k in ("loss", "drift", "accuracy", "eta")), seen)
        check("  and draws itself", page.js("""document.querySelectorAll("#graph .node.self").length""") == 1)
        check("  the browser complains of nothing", page.complaints == [], page.complaints)


def main():
    if len(sys.argv) == 3:
        check_gathering(*sys.argv[1:])
        sys.exit(1 if failed else 0)
    chromium, url, lines, pid, name, other_pid, other_name = sys.argv[1:]
    with urllib.request.urlopen(url, timeout=30) as answer:
        html, policy = answer.read(), answer.headers["Content-Security-Policy"]
    with Browser(chromium) as browser:
        page = browser.page()
        page.size(1280, 1000)
        page.open(url)
        ready = """document.querySelector("#chart_drift .curve") && ["drift", "loss", "accuracy"].every((id) => document.getElementById(id).textContent !== "-")"""
        check("the page of %s has figures" % name, page.until(ready, PATIENCE))
        check_figures(page, url)
        check_against_file(page, lines)
        check_curves(page)
        check_keyboard(page)
        check_colours(page)
        check_widths(page, "the page")
        page.size(1280, 1000)
        first = page.js("document.getElementById('round').textContent")
        check("it goes on by itself", page.until("document.getElementById('round').textContent !== %s" % json.dumps(first), PATIENCE))
        check("the browser complains of nothing", page.complaints == [], page.complaints)
        for scheme in ("light", "dark"):
            page.media(prefers_color_scheme=scheme)
            shot(page, "four-" + scheme)
        page.media()
        check_deaths(page, int(pid), int(other_pid), other_name)
        server = Server(html, policy)
        check_many(page, server)
        check_gap(page, server)
        check_hostile(page, server)
    sys.exit(1 if failed else 0)


main()
