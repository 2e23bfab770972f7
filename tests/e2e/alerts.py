#!/usr/bin/env python3
"""Writes tests of the alert rules in deploy/monitoring/alerts.yml, for `promtool test rules`.

  alerts.py RULES     prints a test file. Each test case is half an hour of the metrics of one peer with the name "a".

Each case lists its differences from a healthy peer (WELL), and the alerts that must fire at its end. No other alert may fire.
"""
import sys


def series(name, labels=""):
    return 'hearsay_%s{job="hearsay",instance="a"%s}' % (name, labels)


def phase(which):
    return {series("phase", ',phase="%s"' % p): "%dx120" % (p == which) for p in ("joining", "training", "consensus")}


UP = 'up{job="hearsay",instance="a"}'
OTHER_RUN = 'hearsay_run_info{job="hearsay",instance="b",run_id="%s"}'

WELL = {
    UP: "1x120",
    **phase("training"),
    **{
        series(name): values
        for name, values in {
            "round_age_seconds": "1x120",
            "drift_excess": "1.5x120",
            "drift_target": "1x120",
            "relative_drift": "0.01x120",
            "final_drift": "0.001x120",
            "rounds_skipped_total": "5x120",
            "below_quorum": "0x120",
            "live_members": "7x120",
            "run_min_peers": "8x120",
            "diverged": "0x120",
            "disk_free_bytes": "2e9x120",
            "checkpoints_failed": "0x120",
            "lines_missing": "0x120",
            "model_unstored": "0x120",
            "violations_total": "2x120",
            "distrusted_total": "0x120",
        }.items()
    },
    series("run_info", ',run_id="1"'): "1x120",
    series("codec_info", ',by="drift"'): "1x120",
}

# Each case: description, Prometheus series that differ from WELL, alerts that fire.
CASES = [
    ("all is well; one of eight has died, and rounds were skipped long ago", {}, []),
    ("a peer does not answer", {UP: "1x30 0x90"}, ["PeerDown"]),
    ("no round for two minutes", {series("round_age_seconds"): "0+15x120"}, ["NoProgress"]),
    ("no round, as the run has not begun",
     {**phase("joining"), series("round_age_seconds"): "0+15x120", series("live_members"): "8x120"}, []),
    ("drift is held at twice the target", {series("drift_excess"): "2x120"}, []),
    ("drift is over twice the target", {series("drift_excess"): "2.5x120"}, ["DriftOverTarget"]),
    ("drift is over that, as it is worth no more time",
     {series("drift_excess"): "2.5x120", series("codec_info", ',by="drift"'): "_x120",
      series("codec_info", ',by="price"'): "1x120"}, []),
    ("the consensus phase ends nowhere", phase("consensus"), ["NoConsensus"]),
    ("the consensus phase has ended", {**phase("consensus"), series("relative_drift"): "0.001x120"}, []),
    ("rounds are skipped now", {series("rounds_skipped_total"): "5x110 6x9"}, ["RoundsSkipped"]),
    ("a restart counts from nothing", {series("rounds_skipped_total"): "5x110 0x9"}, []),
    ("below the quorum", {series("below_quorum"): "1x120"}, ["BelowQuorum"]),
    ("members are missing from the start", phase("joining"), ["NotBegun"]),
    ("training diverged", {series("diverged"): "1x120"}, ["Diverged"]),
    ("the disk is nearly full", {series("disk_free_bytes"): "9e8x120"}, ["Disk"]),
    ("checkpoints fail", {series("checkpoints_failed"): "1x120"}, ["Disk"]),
    ("lines of metrics wait", {series("lines_missing"): "3x120"}, ["Disk"]),
    ("the model waits", {series("model_unstored"): "1x120"}, ["Disk"]),
    ("somebody breaks the protocol", {series("violations_total"): "2x110 3x9"}, ["Violations"]),
    ("somebody is distrusted", {series("distrusted_total"): "0x110 1x9"}, ["Violations"]),
    ("two runs", {OTHER_RUN % 2: "1x120"}, ["TwoRuns"]),
    ("two peers of one run", {OTHER_RUN % 1: "1x120"}, []),
]


def main():
    print("rule_files: ['%s']\nevaluation_interval: 15s\ntests:" % sys.argv[1])
    for name, changes, alerts in CASES:
        print("  - name: '%s'\n    interval: 15s\n    input_series:" % name)
        for one, values in {**WELL, **changes}.items():
            print("      - {series: '%s', values: '%s'}" % (one, values))
        print("    promql_expr_test:")
        print("      - expr: count by (alertname) (ALERTS{alertstate=\"firing\"})\n        eval_time: 30m")
        print("        exp_samples: [%s]" % ", ".join(
            "{labels: '{alertname=\"Hearsay%s\"}', value: 1}" % alert for alert in alerts))


main()
