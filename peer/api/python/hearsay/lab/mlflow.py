"""Copies runs to MLflow.

A metric is named PEER/TAG. The step of a metric is the step counter of the run. The settings of the run become
parameters.

  hearsay-lab mlflow out --uri file:///tmp/mlruns      a directory of files
  hearsay-lab mlflow out --uri sqlite:///mlflow.db     a local database (not with mlflow-skinny)
  hearsay-lab mlflow out --uri http://server:5000      a server
"""
import argparse
from typing import Optional

from .feed import add_arguments as add_feed_arguments
from .feed import feed
from .run import Run
from .sinks import MLflow

NAME = "mlflow"
HELP = "copy the metrics of runs to MLflow"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    add_feed_arguments(parser)
    parser.add_argument("--uri", metavar="URI", required=True, help="the tracking store")
    parser.add_argument("--experiment", metavar="NAME", default="hearsay", help="the experiment (default: hearsay)")


def run(arguments: argparse.Namespace) -> int:
    """Send the runs to the service, and return the exit code."""

    def make(one: Optional[Run], label: str, n: int) -> MLflow:
        return MLflow(arguments.uri, arguments.experiment, label, one.settings if one is not None else None)

    return feed(arguments, make)
