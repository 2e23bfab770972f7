"""Metrics of a peer, and the result of an evaluation."""
import dataclasses
import inspect
import json
import math
from typing import Any, Callable, Tuple

from . import _check

NAN = float("nan")


@dataclasses.dataclass(frozen=True)
class Figures:
    """Metrics of a peer (figure_all[] in peer/node/figure.c). A float is NaN if it is not known."""

    # Made by deploy/man from figure_all[] of peer/node/figure.c. Do not edit: run deploy/man.
    round: int = 0  # Rounds of training that this peer has done or skipped, or that were over before it joined.
    rounds: int = 0  # Total number of training rounds of the run.
    settle_rounds: int = 0  # Rounds of the consensus phase that are done.
    rounds_done: int = 0  # Rounds whose local steps this peer did.
    rounds_skipped: int = 0  # Rounds that this peer skipped to catch up with the other peers.
    drift: float = NAN  # Estimated consensus distance of the models, absolute.
    relative_drift: float = NAN  # Estimated consensus distance, relative to the norm of the mean model.
    drift_round: int = 0  # Round of the drift estimate. Rounds of the consensus phase count, too.
    loss: float = NAN  # Mean training loss of the last local steps.
    accuracy: float = NAN  # Accuracy of the last evaluation on the test set, from 0 to 1.
    test_loss: float = NAN  # Mean loss of the last evaluation on the test set.
    accuracy_round: int = 0  # Round of the last evaluated model. Rounds of the consensus phase count, too.
    gamma: float = NAN  # Consensus step size, mean over the edges.
    n_live: int = 0  # Live members, this peer included.
    n_edges: int = 0  # Open edges of this peer.
    bytes_sent: int = 0  # Bytes sent through the sockets since this start. Unit: bytes.
    bytes_received: int = 0  # Bytes received through the sockets since this start. Unit: bytes.
    bytes_copied: int = 0  # Bytes copied between the program's tensors and the memory of libhearsay. Unit: bytes.
    compute_s: float = 0.0  # Total time of local steps. Unit: s.
    mix_s: float = 0.0  # Total time of applying, mixing and encoding deltas. Unit: s.
    wait_s: float = 0.0  # Total time of waiting for other peers. Unit: s.
    codec: str = ""  # Codec of this peer's present deltas.
    phase: str = ""  # Phase of this peer: joining, training, no-quorum, consensus, finishing or left.
    # End of the table.

    @classmethod
    def of(cls, text: str) -> "Figures":
        """Reads the JSON object that hearsay_figures_json() returns. Figures that a newer library adds are left out."""
        values = json.loads(text)
        return cls(**{name: values[name] for name in cls.__dataclass_fields__ if values.get(name) is not None})


def _called(evaluate: Callable[..., Any], model: Any, samples: int) -> Any:
    """Calls evaluate(model, samples), or evaluate(model) if it takes only one argument."""
    try:
        inspect.signature(evaluate).bind(model, samples)
    except TypeError:
        return evaluate(model)
    except ValueError:  # The callable has no signature, for example if it is written in C.
        return evaluate(model)
    return evaluate(model, samples)


def _in_eval_mode(evaluate: Callable[..., Any], model: Any, samples: int) -> Any:
    import torch

    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            return _called(evaluate, model, samples)
    finally:
        for module, training in modes:
            module.training = training


def _number(what: str, value: Any) -> float:
    """Converts a number that evaluate() returned to float. The TypeError for another value says what is expected."""
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, RuntimeError):  # float() of a PyTorch tensor with several values raises RuntimeError.
        raise TypeError(f"evaluate: found {value!r:.60} as {what}, expected a number; evaluate returns loss, (loss, accuracy), "
                        "(loss, accuracy, samples), or a dict with these keys") from None


def score_of(evaluate: Callable[..., Any], model: Any, samples: int, memory: Any) -> Tuple[float, float, int]:
    """Calls `evaluate` and returns (loss, accuracy, samples). During the call a torch module is in eval mode, and gradients
    are off.
    """
    memory.take_back()
    run = _in_eval_mode if hasattr(model, "modules") else _called
    found = run(evaluate, model, samples)
    if isinstance(found, dict):
        unknown = set(found) - {"loss", "accuracy", "samples"}
        if unknown:
            raise TypeError(f"evaluate: found {sorted(unknown)} in what it returned, expected loss, accuracy, samples")
        found = (found.get("loss", NAN), found.get("accuracy", NAN), found.get("samples", 1))
    elif not isinstance(found, (tuple, list)):
        found = (found,)
    if not 1 <= len(found) <= 3:
        raise TypeError(f"evaluate: found {len(found)} values, expected loss, accuracy and samples")
    loss, accuracy, n = (tuple(found) + (NAN, 1))[:3] if len(found) == 1 else (tuple(found) + (1,))[:3]
    loss, accuracy = _number("loss", loss), _number("accuracy", accuracy)
    if not (math.isnan(accuracy) or 0 <= accuracy <= 1):
        raise ValueError(f"evaluate: found an accuracy of {accuracy}, expected 0 to 1")
    return loss, accuracy, _check.whole("evaluate: samples", n, 0)
