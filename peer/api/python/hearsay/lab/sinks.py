"""hearsay.lab.sinks: sends metrics to TensorBoard, Weights & Biases or MLflow.

    sink.on_round(peer, step, figures)    stores the metrics of one round, by their names in metrics.jsonl
    sink.restart(peer, step)              the peer will repeat this step and later ones
    sink.close(failed)                    stores all metrics and ends

A program can call a sink while it trains (`hearsay.Peer(..., on_round=sink.on_round)`). hearsay.lab.feed calls a sink with the
metrics in the files of a run. Values that are unknown, not finite or not numbers are left out. Names of metrics become tags:

    loss, accuracy, test_loss, gamma, rounds_skipped      the same names
    bytes_sent, bytes_received                            bytes/sent, bytes/received
    compute_s, wait_s, mix_s                              seconds/computing, seconds/waiting, seconds/mixing
    drift_excess                                          codec/drift_excess
    drift, relative_drift                                 the same names, once per estimate, at the round of the measurement
    end/...                                               final results of the run, with the peer name ALL
"""
import math
import os
import re
import time
from typing import Any, BinaryIO, Callable, Dict, List, Mapping, Optional, Protocol, Tuple

from . import events
from .cli import InputError
from .output import shown

ALL = "all"  # The peer name for final results of a run.
TAGS: Dict[str, str] = {
    "loss": "loss", "accuracy": "accuracy", "test_loss": "test_loss", "bytes_sent": "bytes/sent",
    "bytes_received": "bytes/received", "compute_s": "seconds/computing", "wait_s": "seconds/waiting", "mix_s": "seconds/mixing",
    "rounds_skipped": "rounds_skipped", "gamma": "gamma", "drift_excess": "codec/drift_excess"}
DRIFTS = ("drift", "relative_drift")

Figures = Mapping[str, Any]


class Sink(Protocol):
    """Interface of an object that stores metrics, such as TensorBoard below."""

    def on_round(self, peer: str, step: int, figures: Figures) -> None:
        """Store the metrics of one round. `wall_time` in `figures` is Unix time in seconds. Default: now."""

    def restart(self, peer: str, step: int) -> None:
        """The peer will repeat this step and later ones, so earlier values of these steps are no longer valid."""

    def close(self, failed: bool = False) -> None:
        """Store all metrics and close the sink. `failed`: an error ended the feed early."""


def _number(value: Any) -> float:
    """The value as a finite number. NaN: the value is something else."""
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else math.nan


class Scalars:
    """Converts the metrics of rounds to values with tags and steps."""

    def __init__(self) -> None:
        self._drift_round: Dict[str, float] = {}  # For each peer: round of the last consensus distance that was stored.
        self._floor: Dict[str, int] = {}  # For each restarted peer: consensus distances up to this round are stored already.

    def of(self, peer: str, step: int, figures: Figures) -> List[Tuple[int, List[Tuple[str, float]]]]:
        """The metrics of one round as a list of (step, [(tag, value), ...])."""
        evaluated = figures.get("accuracy_round", step) in (step, None)
        found = []
        for name, value in figures.items():
            tag = name if name.startswith("end/") else TAGS.get(name)
            if tag is not None and math.isfinite(_number(value)) and (evaluated or name not in ("accuracy", "test_loss")):
                found.append((tag, float(value)))
        parts = [(step, found)] if found else []
        of = _number(figures.get("drift_round"))
        drifts = [(name, _number(figures.get(name))) for name in DRIFTS]
        drifts = [(name, value) for name, value in drifts if math.isfinite(value)]
        if math.isfinite(of) and of > self._floor.get(peer, -1) and drifts and self._drift_round.get(peer) != of:
            self._drift_round[peer] = of
            parts.append((int(of), drifts))
        return parts

    def restart(self, peer: str, step: int) -> None:
        """The peer will repeat this step and later ones."""
        self._drift_round.pop(peer, None)
        self._floor[peer] = step - 1


class TensorBoard:
    """Event files, in one directory of LOGDIR per peer. `open_file(peer, wall_time)` opens a file. Default: a new file."""

    def __init__(self, logdir: str, open_file: Optional[Callable[[str, float], BinaryIO]] = None) -> None:
        events.backend()  # Missing packages are reported before the run starts.
        self.logdir = os.fspath(logdir)
        self._open_file = open_file or self._new_file
        self._files: List[BinaryIO] = []
        self._writers: Dict[str, events.Writer] = {}
        self._scalars = Scalars()

    def _new_file(self, peer: str, wall_time: float) -> BinaryIO:
        """Open a new file. The file name contains the process id, so that several runs and starts can share a directory."""
        directory = os.path.join(self.logdir, re.sub(r"^\.|[/\0]", "_", peer))
        os.makedirs(directory, exist_ok=True)
        return open(os.path.join(directory, f"events.out.tfevents.{int(wall_time):010d}.{os.getpid()}.hearsay"), "xb")

    def _writer(self, peer: str, wall_time: float) -> events.Writer:
        if peer not in self._writers:
            file = self._open_file(peer, wall_time)
            self._files.append(file)
            self._writers[peer] = events.Writer(file, wall_time)
        return self._writers[peer]

    def on_round(self, peer: str, step: int, figures: Figures) -> None:
        """Store the metrics of one round (Sink.on_round)."""
        wall_time = float(figures.get("wall_time", time.time()))
        parts = self._scalars.of(peer, step, figures)
        if not parts:
            return
        writer = self._writer(peer, wall_time)
        for at, scalars in parts:
            writer.scalars(wall_time, at, scalars)
        writer.flush()

    def restart(self, peer: str, step: int) -> None:
        """Prepare for a restarted peer that repeats steps (Sink.restart)."""
        self._scalars.restart(peer, step)
        if peer in self._writers:
            self._writers[peer].restart(time.time(), step)

    def close(self, failed: bool = False) -> None:
        """Store all metrics and close the sink (Sink.close)."""
        for file in self._files:
            file.close()
        self._files, self._writers = [], {}


class WandB:
    """One run of Weights & Biases: metrics PEER/TAG with the horizontal axis PEER/step. Offline unless WANDB_MODE is set."""

    def __init__(self, project: str = "hearsay", name: Optional[str] = None, config: Optional[Mapping[str, str]] = None,
                 directory: Optional[str] = None) -> None:
        try:
            import wandb  # type: ignore[import-untyped,import-not-found,unused-ignore]
        except ImportError as error:
            raise ImportError("wandb is not installed (pip install wandb)") from error
        self._run: Any = wandb.init(project=project, name=name, config=dict(config or {}), dir=directory,
                                    mode=None if "WANDB_MODE" in os.environ else "offline")
        self._scalars = Scalars()
        self._peers: Dict[str, str] = {}

    def on_round(self, peer: str, step: int, figures: Figures) -> None:
        """Store the metrics of one round (Sink.on_round)."""
        name = self._peers.get(peer)
        if name is None:
            name = self._peers[peer] = re.sub(r"[^\w.-]", "_", peer)
            self._run.define_metric(f"{name}/*", step_metric=f"{name}/step")
        for at, scalars in self._scalars.of(peer, step, figures):
            values: Dict[str, float] = {f"{name}/{tag}": value for tag, value in scalars}
            values[f"{name}/step"] = at
            self._run.log(values)

    def restart(self, peer: str, step: int) -> None:
        """Prepare for a restarted peer that repeats steps (Sink.restart).

        W&B keeps the earlier values, so a repeated step has two values.
        """
        self._scalars.restart(peer, step)

    def close(self, failed: bool = False) -> None:
        """Store all metrics and close the sink (Sink.close)."""
        self._run.finish(exit_code=int(failed))


class MLflow:
    """One run of MLflow: metrics PEER/TAG by step, settings as parameters."""

    BATCH = 500  # Maximum number of metrics that one request sends. MLflow accepts at most 1000.

    def __init__(self, uri: str, experiment: str = "hearsay", name: Optional[str] = None,
                 config: Optional[Mapping[str, str]] = None) -> None:
        try:
            from mlflow.entities import Metric, Param  # type: ignore[import-untyped,import-not-found,unused-ignore]
            from mlflow.exceptions import MlflowException  # type: ignore[import-untyped,import-not-found,unused-ignore]
            from mlflow.tracking import MlflowClient  # type: ignore[import-untyped,import-not-found,unused-ignore]
        except ImportError as error:
            raise ImportError("mlflow is not installed (pip install mlflow-skinny)") from error
        if "://" not in uri or uri.startswith("file:"):
            # Without this environment variable, MLflow 3 does not write to directories.
            os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
        self._metric: Any = Metric
        try:
            self._client: Any = MlflowClient(tracking_uri=uri)
            found = self._client.get_experiment_by_name(experiment)
        except MlflowException as error:
            raise InputError(f"mlflow: {shown(uri)}: {shown(str(error))}") from error
        number = found.experiment_id if found is not None else self._client.create_experiment(experiment)
        self._run = self._client.create_run(number, run_name=name).info.run_id
        self._waiting: List[Any] = []
        self._scalars = Scalars()
        params = [Param(_mlflow_name(key), value[:500]) for key, value in (config or {}).items() if value]
        for i in range(0, len(params), 100):
            self._client.log_batch(self._run, params=params[i:i + 100])

    def on_round(self, peer: str, step: int, figures: Figures) -> None:
        """Store the metrics of one round (Sink.on_round)."""
        at_ms = int(1000 * float(figures.get("wall_time", time.time())))
        for at, scalars in self._scalars.of(peer, step, figures):
            self._waiting += [self._metric(_mlflow_name(f"{peer}/{tag}"), value, at_ms, at) for tag, value in scalars]
        if len(self._waiting) >= self.BATCH:
            self._flush()

    def _flush(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[:self.BATCH], self._waiting[self.BATCH:]
            self._client.log_batch(self._run, metrics=batch)

    def restart(self, peer: str, step: int) -> None:
        """Prepare for a restarted peer that repeats steps (Sink.restart).

        MLflow keeps the earlier values, so a repeated step has two values.
        """
        self._scalars.restart(peer, step)

    def close(self, failed: bool = False) -> None:
        """Store all metrics and close the sink (Sink.close)."""
        self._flush()
        self._client.set_terminated(self._run, status="FAILED" if failed else "FINISHED")


def _mlflow_name(text: str) -> str:
    """A name that MLflow accepts."""
    return re.sub(r"[^0-9A-Za-z_./ -]", "_", shown(text))[:250].strip("/") or "_"
