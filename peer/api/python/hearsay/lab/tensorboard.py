"""Writes the metrics of runs as event files for TensorBoard.

  hearsay-lab tensorboard out --logdir logs            a finished run
  hearsay-lab tensorboard out --logdir logs --follow   a run in progress, followed until it ends
  tensorboard --logdir logs

  LOGS/PEER/events.out.tfevents.TIME.hearsay           one run
  LOGS/RUN/PEER/...                                    several runs
  LOGS/RUN/...                                         a run of `train`, or the directory of one peer

The same command again replaces its own files. Files of other programs are not changed. A run that was interrupted and continued is
one curve. The package tensorboard writes the files if it is installed, otherwise python3-protobuf encodes them.

--follow ends when the run has written its summary.json. An interrupted run writes none: --follow then ends when no file has grown
for --idle seconds.
"""
import argparse
import os
from typing import BinaryIO, Dict, List, Optional

from . import events, output
from .feed import add_arguments as add_feed_arguments
from .feed import feed
from .run import Run
from .sinks import TensorBoard

NAME = "tensorboard"
HELP = "write the metrics of runs as event files for TensorBoard"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    add_feed_arguments(parser)
    parser.add_argument("--logdir", metavar="LOGS", required=True, help="directory for the event files")
    parser.add_argument("--force", action="store_true", help="overwrite event files even if hearsay-lab did not create them")


class _Files(TensorBoard):
    """Event files with fixed names. Files of a finished run are replaced atomically at the end. Files of a live run grow."""

    def __init__(self, logdir: str, run: Optional[Run], force: bool) -> None:
        super().__init__(logdir, self._open)
        self._new: List[output.Replacing] = []
        self._several = run is None or run.several
        self._live = run is None
        self._force = force
        self._began: Dict[str, int] = {}
        for peer in run.peers if run is not None else []:
            self._began[peer.name] = max(0, peer.starts[0].at_s) if peer.starts else 0

    def _open(self, peer: str, wall_time: float) -> BinaryIO:
        directory = os.path.join(self.logdir, peer) if self._several else self.logdir
        os.makedirs(directory, exist_ok=True)
        path = os.path.join(directory, f"events.out.tfevents.{self._began.get(peer, int(wall_time)):010d}.hearsay")
        output.check(path, events.WRITER.encode(), self._force)
        if self._live:
            return open(path, "wb")
        self._new.append(output.Replacing(path))
        return self._new[-1].file

    def close(self, failed: bool = False) -> None:
        """Replace the files of a finished run. After a failure, the old files stay."""
        try:
            for new in self._new:
                if not failed:
                    new.commit()
        finally:
            for new in self._new:
                new.close()
            super().close(failed)


def run(arguments: argparse.Namespace) -> int:
    """Write the event files of the runs."""

    def make(one: Optional[Run], label: str, n: int) -> TensorBoard:
        by_run = n > 1 or (one is not None and not one.several)
        return _Files(os.path.join(arguments.logdir, label) if by_run else arguments.logdir, one, arguments.force)

    code = feed(arguments, make)
    print(output.shown(arguments.logdir))
    return code
