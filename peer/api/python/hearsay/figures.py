"""Metrics of a peer, and the result of an evaluation."""
import dataclasses
import inspect
import math
from typing import Any, Callable, Tuple

from . import _check

NAN = float("nan")


@dataclasses.dataclass(frozen=True)
class Figures:
    """Metrics of a peer (struct hearsay_figures). A float is NaN if it is not known."""

    # Rounds that are over; `rounds`: all rounds of the run; `settle_rounds`: rounds of the consensus phase.
    round: int = 0
    rounds: int = 0
    settle_rounds: int = 0
    rounds_done: int = 0  # Rounds in which this process did the local steps.
    rounds_skipped: int = 0  # Rounds that this process skipped to catch up.
    drift: float = NAN  # Estimated consensus distance Xi.
    relative_drift: float = NAN  # Xi / |mean|.
    drift_round: int = 0  # Round before whose local steps drift was measured.
    loss: float = NAN
    accuracy: float = NAN
    test_loss: float = NAN
    accuracy_round: int = 0  # Round after which the last evaluation was made.
    gamma: float = NAN  # Consensus step size, mean over the edges.
    n_live: int = 0  # Number of members that are alive.
    n_edges: int = 0  # Number of open edges.
    bytes_sent: int = 0  # Counted at the sockets, as bytes_received.
    bytes_received: int = 0
    bytes_copied: int = 0  # Bytes of tensors copied to and from the library's own memory.
    compute_s: float = 0.0  # Time of local steps, in seconds.
    mix_s: float = 0.0  # Time of applying, mixing and encoding, in seconds.
    wait_s: float = 0.0  # Time of waiting for other peers, in seconds.
    codec: str = ""  # Codec of the last deltas.
    phase: str = ""  # joining, training, consensus, finishing, no-quorum or left.

    @classmethod
    def of(cls, c: Any) -> "Figures":
        """Converts the ctypes struct."""
        values = {name: getattr(c, name) for name in cls.__dataclass_fields__}
        values["codec"], values["phase"] = (values[k].decode(errors="replace") for k in ("codec", "phase"))
        return cls(**values)


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
    """Returns a number that evaluate() returned. TypeError names it, and what is expected."""
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, RuntimeError):  # PyTorch: RuntimeError for a tensor with several values.
        raise TypeError(f"evaluate: found {value!r:.60} as {what}, expected a number; evaluate returns loss, (loss, accuracy), "
                        "(loss, accuracy, samples), or a dict with these keys") from None


def score_of(evaluate: Callable[..., Any], model: Any, samples: int, memory: Any) -> Tuple[float, float, int]:
    """Calls `evaluate` and returns (loss, accuracy, samples). A torch module is in eval mode and without gradients
    meanwhile.
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
