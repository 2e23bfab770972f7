"""hearsay.lab: experiments with hearsay, and reports of what runs have left.

    hearsay-lab compare FILE       arms, grids and seeds from one TOML file, with mean, spread and significance
    hearsay-lab sweep              one command with each value of one or more flags
    hearsay-lab report DIR...      one HTML page, CSV, PNG or SVG figures of finished runs
    hearsay-lab tensorboard DIR    event files for TensorBoard; wandb and mlflow likewise

All tools start `hearsay` as a child process, or read the `run.txt`, `summary.json` and `metrics.jsonl` files that a run
has written to its `--out` directory. They need numpy and matplotlib.
"""
from .cli import InputError
from .run import Run, load, load_all

__all__ = ["InputError", "Run", "load", "load_all"]
