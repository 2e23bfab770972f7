"""What a checkpoint holds beside the model: the optimizer's state, and whatever else a program names.

The bytes are pickled, by torch.save() where there is PyTorch. They are read from the peer's own directory
only, never from the network.
"""
import io
import pickle
import random
import sys
import time
from typing import Any, Callable, Dict, Mapping, Tuple

SHARE = 0.05  # Of the time at most so much goes into keeping.


def _save(state: Any) -> bytes:
    torch = sys.modules.get("torch")
    if torch is None:
        return b"P" + pickle.dumps(state, protocol=4)
    out = io.BytesIO()
    torch.save(state, out)
    return b"T" + out.getvalue()


def _load(raw: bytes) -> Any:
    if raw[:1] == b"P":
        return pickle.loads(raw[1:])
    import torch

    return torch.load(io.BytesIO(raw[1:]), map_location="cpu")


def _accessors(name: str, thing: Any) -> Tuple[Callable[[], Any], Callable[[Any], Any]]:
    if hasattr(thing, "state_dict") and hasattr(thing, "load_state_dict"):
        return thing.state_dict, thing.load_state_dict
    if isinstance(thing, (tuple, list)) and len(thing) == 2 and all(callable(one) for one in thing):
        return thing[0], thing[1]
    raise TypeError(f"keep: found {type(thing).__name__} as {name!r}, expected state_dict() and load_state_dict(), or (get, set)")


def _rng_state() -> Dict[str, Any]:
    state: Dict[str, Any] = {"random": random.getstate()}
    for module, get in (("numpy", lambda m: m.random.get_state()), ("torch", lambda m: m.get_rng_state())):
        if module in sys.modules:
            state[module] = get(sys.modules[module])
    return state


def _set_rng_state(state: Dict[str, Any]) -> None:
    random.setstate(state["random"])
    if "numpy" in state:
        import numpy

        numpy.random.set_state(state["numpy"])
    if "torch" in state:
        import torch

        torch.set_rng_state(state["torch"])


RNG = {"rng": (_rng_state, _set_rng_state)}  # For `keep`: the states of random, numpy and torch.


class Keeper:
    """Collects the state, but not so often that it costs more than SHARE of the time."""

    def __init__(self, optimizer: Any, keep: Mapping[str, Any], on: bool) -> None:
        things = dict(keep)
        if optimizer is not None:
            things = {"optimizer": optimizer, **things}
        self._things = {name: _accessors(name, thing) for name, thing in things.items()}
        self._on = on and bool(self._things)
        self._next = 0.0

    def due(self) -> bool:
        return self._on and time.monotonic() >= self._next

    def state(self) -> bytes:
        begun = time.monotonic()
        raw = _save({name: get() for name, (get, _) in self._things.items()})
        self._next = time.monotonic() + (time.monotonic() - begun) / SHARE
        return raw

    def restore(self, raw: bytes) -> None:
        """Of what the checkpoint has, that which is asked for now."""
        state = _load(raw)
        for name, (_, put) in self._things.items():
            if name in state:
                put(state[name])
