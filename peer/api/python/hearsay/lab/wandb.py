"""Copies runs to Weights & Biases.

A metric is named PEER/TAG. The horizontal axis is the step counter. The settings of the run become the config.

  hearsay-lab wandb out                      offline: files below wandb/, which `wandb sync` sends
  WANDB_MODE=online hearsay-lab wandb out    to the server
"""
import argparse
from typing import Optional

from .feed import add_arguments as add_feed_arguments
from .feed import feed
from .run import Run
from .sinks import WandB

NAME = "wandb"
HELP = "copy the metrics of runs to Weights & Biases, offline by default"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    add_feed_arguments(parser)
    parser.add_argument("--project", metavar="NAME", default="hearsay", help="the project (default: hearsay)")
    parser.add_argument("--dir", metavar="DIR", dest="directory", help="where wandb writes its files (default: wandb's own)")


def run(arguments: argparse.Namespace) -> int:
    """Send the runs to the service, and return the exit code."""

    def make(one: Optional[Run], label: str, n: int) -> WandB:
        return WandB(arguments.project, label, one.settings if one is not None else None, arguments.directory)

    return feed(arguments, make)
