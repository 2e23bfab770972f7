"""hearsay.lab: experiments with hearsay, and reports of finished runs.

    hearsay-lab compare FILE       compares configurations from one TOML file: means over seeds and significance
    hearsay-lab sweep              runs one command with each value of one or more flags
    hearsay-lab report DIR...      writes an HTML page, CSV, LaTeX and figures of finished runs
    hearsay-lab tensorboard DIR    writes event files for TensorBoard; also: wandb, mlflow

Each tool starts `hearsay` as a child process, or reads the files `run.txt`, `summary.json` and `metrics.jsonl` in the `--out`
directory of a run. The package needs numpy and matplotlib.
"""
from .cli import InputError
from .run import Run, load, load_all

__all__ = ["InputError", "Run", "load", "load_all"]
