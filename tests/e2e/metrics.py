#!/usr/bin/env python3
"""Compares the values that peers serve over HTTP with the files that they wrote.

  metrics.py get URL [METHOD]                 prints the status, then the body
  metrics.py field URL PATH                   prints a value of a JSON object ("edges.0.name"; "members.#": number of members)
  metrics.py lines URL FILE                   compares history and values of /status.json with metrics.jsonl
  metrics.py text BASE                        compares /metrics with /status.json of the same snapshot
  metrics.py timers URL FILE                  compares the timers of /status.json with those of `hearsay status --json`
  metrics.py edges BASE BASE...               compares bytes of edges with the totals, and both ends of each edge
  metrics.py queries PROMETHEUS DASHBOARD RULES   checks that every query parses and returns series
  metrics.py value PROMETHEUS QUERY FILE      checks that the query's value is a relative_drift of metrics.jsonl
"""
import json
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request


def get(url, method="GET"):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=30) as r:
            return r.status, r.read().decode()
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode()


def load(url):
    return json.loads(get(url)[1])


def look_up(value, path):
    for key in path.split("."):
        value = len(value) if key == "#" else value[int(key)] if isinstance(value, list) else value[key]
    return value


def rounds(path):
    """Returns a dict from step counter to the line of this round in a metrics.jsonl."""
    all_lines = [json.loads(t) for t in open(path, encoding="utf-8").read().split("\n")[:-1]]
    return {line["round"] + line["settle_rounds"]: line for line in all_lines if not line.get("start")}


def check_lines(url, path):
    s = load(url)
    lines = rounds(path)
    history = s["history"]
    assert 1 <= len(history) <= 1000, len(history)
    names = ["round", "settle_rounds", "time_s", "loss", "accuracy", "accuracy_round", "relative_drift", "drift_round",
             "bytes_sent"]
    seen = 0
    for point in history:
        assert sorted(point) == sorted(names), point
        line = lines.get(point["round"] + point["settle_rounds"])
        assert line is not None or point is history[-1], "no line of round %d" % point["round"]
        for name in names if line else []:
            # Even the byte counts are equal, because the node counts bytes for both the history and metrics.jsonl.
            assert point[name] == line[name], (name, point, line)
        seen += line is not None
    assert any(p["accuracy"] is not None for p in history)
    assert any(p["relative_drift"] is not None for p in history)
    deadline = time.time() + 120
    # Retries until the last line of metrics.jsonl is of the round in /status.json: a round may end between the two reads.
    while True:
        s = load(url)
        line = rounds(path).get(s["round"] + s["settle_rounds"])
        if line is not None:
            break
        assert time.time() < deadline
    for name in ("rounds", "loss", "relative_drift", "drift", "drift_round", "own_distance", "rung",
                 "drift_excess", "steps_done", "rounds_done", "rounds_skipped", "joined_round"):
        assert s[name] == line[name], (name, s[name], line[name])
    tested = lines_tested(rounds(path))
    assert tested[s["accuracy_round"]] == s["accuracy"], s["accuracy_round"]
    print("%d points of %d rounds" % (seen, len(lines)))


def lines_tested(lines):
    return {line["accuracy_round"]: line["accuracy"] for line in lines.values() if line["accuracy"] is not None}


def samples(text):
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            series, value = line.rsplit(" ", 1)
            found[series] = float(value)
    return found


def near(a, b, by=1e-8):
    return abs(a - b) <= by * max(abs(a), abs(b))


def check_text(base):
    names = {
        "hearsay_round": "round", "hearsay_run_rounds": "rounds", "hearsay_rounds_done_total": "rounds_done",
        "hearsay_rounds_skipped_total": "rounds_skipped", "hearsay_loss": "loss", "hearsay_accuracy_ratio": "accuracy",
        "hearsay_accuracy_round": "accuracy_round", "hearsay_drift": "drift", "hearsay_gamma": "gamma",
        "hearsay_relative_drift": "relative_drift", "hearsay_drift_round": "drift_round",
        "hearsay_drift_age_rounds": "drift_age", "hearsay_own_distance": "own_distance", "hearsay_live_members": "live",
        "hearsay_open_edges": "open_edges", "hearsay_local_steps_done_total": "steps_done",
        "hearsay_violations_total": "violations", "hearsay_checkpoints_total": "checkpoints",
        'hearsay_bytes_total{direction="sent"}': "bytes_sent", 'hearsay_bytes_total{direction="received"}': "bytes_received",
        'hearsay_activity_seconds_total{activity="compute"}': "compute_s",
        'hearsay_activity_seconds_total{activity="wait"}': "wait_s", 'hearsay_activity_seconds_total{activity="mix"}': "mix_s",
    }
    for _ in range(200):  # Retries until the snapshot's number is the same before and after, so all answers are of one snapshot.
        before, text, behind = load(base + "/status.json"), get(base + "/metrics")[1], load(base + "/status.json")
        if before["time_s"] == behind["time_s"]:
            break
    assert before["time_s"] == behind["time_s"]
    found = samples(text)
    for series, name in names.items():
        assert near(found[series], before[name]), (series, found[series], before[name])
    assert found['hearsay_phase{phase="%s"}' % before["phase"]] == 1
    assert any(s.startswith('hearsay_codec_info{codec="%s"' % before["codec"]) for s in found), before["codec"]
    for edge in before["edges"]:
        labels = 'neighbour="%s",id="%s"' % (edge["name"], edge["id"])
        assert found['hearsay_edge_bytes_total{%s,direction="sent"}' % labels] == edge["bytes_sent"]
        assert found["hearsay_edge_round{%s}" % labels] == edge["round"]
    print("%d series" % len(found))


def check_timers(url, path):
    served, printed = load(url)["timers"], json.load(open(path, encoding="utf-8"))["timers"]
    assert served == printed, (served, printed)
    assert all(sorted(t) == ["name", "purpose", "seconds"] for t in printed)
    seconds = {t["name"]: t["seconds"] for t in printed}
    assert len(seconds) == len(printed)
    assert seconds["HEARTBEAT_US"] == 0.5 and seconds["SILENT_US"] == 3 and seconds["EDGE_CLOSED_MAX_US"] == 82800
    print("%d timers" % len(printed))


def check_edges(bases):
    peers = [load(b + "/status.json") for b in bases]
    ends = {}
    for p in peers:
        assert len(p["members"]) == len(bases) and sum(m["self"] for m in p["members"]) == 1
        assert {m["name"] for m in p["members"]} == {q["name"] for q in peers}
        assert {m["id"] for m in p["members"]} == {q["id"] for q in peers}
        for way in ("bytes_sent", "bytes_received"):
            of_edges = sum(e[way] for e in p["edges"])
            assert 0.5 * p[way] <= of_edges <= p[way], (p["name"], way, of_edges, p[way])
        for e in p["edges"]:
            assert e["state"] == "open", e
            ends[p["name"], e["name"]] = e
    for (a, b), e in ends.items():  # The two ends were read up to a second apart, so their bytes may differ a little.
        assert near(e["bytes_sent"], ends[b, a]["bytes_received"], 0.3), (a, b, e, ends[b, a])
    print("%d ends" % len(ends))


def query(prometheus, text):
    code, body = get(prometheus + "/api/v1/query?" + urllib.parse.urlencode({"query": text}))
    answer = json.loads(body)
    assert code == 200 and answer["status"] == "success", (text, body)
    return answer["data"]["result"]


def dashboard_queries(path):
    d = json.load(open(path, encoding="utf-8"))
    for panel in d["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"].replace("$__rate_interval", "10s").replace("$instance", ".*")


def check_queries(prometheus, dashboard, rules):
    n = 0
    for title, text in dashboard_queries(dashboard):
        assert query(prometheus, text), "%s: no series: %s" % (title, text)
        n += 1
    groups = load(prometheus + "/api/v1/rules")["data"]["groups"]
    loaded = [r for g in groups for r in g["rules"]]
    assert len(loaded) == len(re.findall(r"^ *- alert:", open(rules, encoding="utf-8").read(), re.M)) > 0
    for rule in loaded:
        assert rule["health"] == "ok", rule
        assert rule["state"] != "firing", rule
        for name in set(re.findall(r"\b(?:hearsay_[a-z_]+|up)\b(?=[{\[ )]|$)", rule["query"])):
            assert query(prometheus, name), "%s: no series: %s" % (rule["name"], name)
            n += 1
    print("%d queries" % n)


def check_value(prometheus, text, path):
    deadline = time.time() + 60
    while True:
        value = float(query(prometheus, text)[0]["value"][1])
        if any(near(value, line["relative_drift"]) for line in rounds(path).values() if line["relative_drift"]):
            break
        assert time.time() < deadline, value
    print(value)


def main():
    what, args = sys.argv[1], sys.argv[2:]
    if what == "get":
        print(*get(*args), sep="\n", end="")
    elif what == "field":
        print(look_up(load(args[0]), args[1]))
    elif what == "edges":
        check_edges(args)
    else:
        {"lines": check_lines, "text": check_text, "timers": check_timers, "queries": check_queries,
         "value": check_value}[what](*args)


main()
