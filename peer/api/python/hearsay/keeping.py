"""Stores in checkpoints the state of optimizer, learning-rate scheduler and the objects in `keep`, and restores it.

_state.py defines the format. The model itself is stored by the library.
"""
import functools
import gc
import random
import sys
import time
import types
import weakref
from typing import Any, Callable, Dict, List, Mapping, Tuple

from . import _state

SHARE = 0.05  # Largest share of the run time that may go into collecting state.
FOUND = "(scheduler)"  # Name in checkpoints for a scheduler that schedulers_of() found and `keep` does not name.
FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, weakref.WeakMethod, functools.partial)


def _accessors(name: str, thing: Any) -> Tuple[Callable[[], Any], Callable[[Any], Any]]:
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(thing, _scheduler_types(torch)):
        return (lambda: _without_functions(thing.state_dict()),
                lambda state: thing.load_state_dict(_with_functions(state, thing.state_dict())))
    if hasattr(thing, "state_dict") and hasattr(thing, "load_state_dict"):
        return thing.state_dict, thing.load_state_dict
    if isinstance(thing, (tuple, list)) and len(thing) == 2 and all(callable(one) for one in thing):
        return thing[0], thing[1]
    raise TypeError(f"keep: found {type(thing).__name__} as {name!r}, expected state_dict() and load_state_dict(), or (get, set)")


def _rng_state() -> Dict[str, Any]:
    state: Dict[str, Any] = {"random": random.getstate()}
    if "numpy" in sys.modules:
        state["numpy"] = sys.modules["numpy"].random.get_state()
    torch = sys.modules.get("torch")
    if torch is not None:
        state["torch"] = torch.get_rng_state()
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            state["cuda"] = torch.cuda.get_rng_state_all()
    return state


def _set_rng_state(state: Dict[str, Any]) -> None:
    random.setstate(state["random"])
    if "numpy" in state:
        import numpy

        numpy.random.set_state(state["numpy"])
    if "torch" in state:
        import torch

        torch.set_rng_state(state["torch"])
        if "cuda" in state and torch.cuda.device_count() == len(state["cuda"]):
            torch.cuda.set_rng_state_all(state["cuda"])


RNG = {"rng": (_rng_state, _set_rng_state)}  # For `keep`: the random number generators of Python, numpy and PyTorch.


# ---- learning-rate schedulers ---------------------------------------------------


def _scheduler_types(torch: Any) -> Tuple[type, ...]:
    names = ("LRScheduler", "_LRScheduler", "ReduceLROnPlateau", "SequentialLR", "ChainedScheduler")
    found = (getattr(torch.optim.lr_scheduler, name, None) for name in names)
    return tuple(one for one in found if isinstance(one, type))


# The state of some schedulers contains functions: OneCycleLR and CyclicLR of PyTorch 1.13, and subclasses in programs. A function
# is code, which a checkpoint must not contain. A function is left out of the checkpoint. At a restart, load_state_dict()
# gets the function of the scheduler that the program has created. PyTorch treats the functions of LambdaLR in the same way.


def _without_functions(state: Dict[str, Any]) -> Dict[str, Any]:
    """Returns the state of a scheduler and of its parts without the entries that are functions."""
    kept = {name: value for name, value in state.items() if not isinstance(value, FUNCTIONS)}
    if isinstance(kept.get("_schedulers"), list):
        kept["_schedulers"] = [_without_functions(part) for part in kept["_schedulers"]]
    return kept


def _with_functions(kept: Dict[str, Any], now: Dict[str, Any]) -> Dict[str, Any]:
    """Returns the stored state `kept`, with the functions of `now`, the present state of the scheduler to restore."""
    state = {**{name: value for name, value in now.items() if isinstance(value, FUNCTIONS)}, **kept}
    parts, parts_now = kept.get("_schedulers"), now.get("_schedulers")
    if isinstance(parts, list) and isinstance(parts_now, list) and len(parts) == len(parts_now):
        state["_schedulers"] = [_with_functions(part, part_now) for part, part_now in zip(parts, parts_now)]
    return state


def schedulers_of(optimizer: Any) -> List[Any]:
    """Returns the PyTorch learning-rate schedulers of this optimizer, without schedulers that are parts of another one.

    An optimizer has no reference to its schedulers, so this function searches all objects of the garbage collector.
    """
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(optimizer, torch.optim.Optimizer):
        return []
    types = _scheduler_types(torch)
    found = [one for one in gc.get_objects() if issubclass(type(one), types)]
    parts = {id(part) for one in found for part in getattr(one, "_schedulers", ())}

    def moves(one: Any) -> bool:
        inner = getattr(one, "_schedulers", ())
        return getattr(one, "optimizer", None) is optimizer or any(moves(part) for part in inner)

    return [one for one in found if id(one) not in parts and moves(one)]


def _reached(thing: Any) -> List[Any]:
    """Returns the objects that an entry of `keep` refers to: the entry itself, its attributes, and the objects that its
    functions use."""
    if not isinstance(thing, (tuple, list)):
        return [thing, *getattr(thing, "__dict__", {}).values()]
    found: List[Any] = []
    for one in thing:
        found.append(getattr(one, "__self__", None))
        for cell in getattr(one, "__closure__", None) or ():
            try:
                found.append(cell.cell_contents)
            except ValueError:  # The variable of the closure has no value yet.
                pass
    return found


class Keeper:
    """Collects the state for checkpoints, so rarely that it takes at most the share SHARE of the time. `on`: the peer writes
    checkpoints."""

    def __init__(self, optimizer: Any, keep: Mapping[str, Any], on: bool, warn: Callable[[str], None]) -> None:
        self._optimizer, self._keep, self._warn = optimizer, dict(keep), warn
        things = self._keep if optimizer is None else {"optimizer": optimizer, **self._keep}
        self._things = {name: _accessors(name, thing) for name, thing in things.items()}
        self._on = on and bool(self._things)
        self._next = 0.0
        self._known: List[Any] = []  # All schedulers of the optimizer, named in `keep` or not.
        self._late = False  # True after look_for_late() has searched for schedulers.
        if keep and not on:
            warn("keep= has no effect without out=DIR, where checkpoints are")
        if self._on:
            self._find_schedulers()
            self.state()  # Raises TypeError before the run begins if a value cannot be kept.
            self._next = 0.0

    def _unnamed(self) -> List[Any]:
        """Returns the optimizer's schedulers that `keep` does not name."""
        self._known = schedulers_of(self._optimizer)
        # Some of several schedulers may be unused objects, for example from earlier cells of a
        # notebook.
        if len(self._known) > 1:
            self._known = []
            gc.collect()
            self._known = schedulers_of(self._optimizer)
        reached = {id(one) for thing in self._keep.values() for one in _reached(thing)}
        return [one for one in self._known if id(one) not in reached]

    def _find_schedulers(self) -> None:
        """If `keep` does not name the optimizer's only scheduler, stores it under the name FOUND. Warns if there are
        several schedulers: their order may differ after a restart."""
        unnamed = self._unnamed()
        if len(unnamed) == 1 and FOUND not in self._things:
            self._things[FOUND] = _accessors(FOUND, unnamed[0])
        elif unnamed:
            names = ", ".join(type(one).__name__ for one in unnamed)
            self._warn(f"keep: found {len(unnamed)} learning-rate schedulers of the optimizer that it does not name ({names}): they start "
                       'again after a restart; name each, as in keep={"warmup": first, "decay": second}')

    def look_for_late(self) -> None:
        """Warns once of a scheduler that was created after the Peer and so was not restored. Called before each round."""
        if not self._on or self._late or self._known or not _is_scheduled(self._optimizer):
            return
        self._late = True
        unnamed = self._unnamed()
        if unnamed:
            self._warn(f"keep: the scheduler {type(unnamed[0]).__name__} of the optimizer was made after the Peer: its state is not kept, "
                       "and it starts again after a restart; make it before the Peer")

    def due(self) -> bool:
        return self._on and time.monotonic() >= self._next

    def state(self) -> bytes:
        begun = time.monotonic()
        raw = _state.dump({name: get() for name, (get, _) in self._things.items()})
        self._next = time.monotonic() + (time.monotonic() - begun) / SHARE
        return raw

    def restore(self, raw: bytes) -> None:
        """Restores each object from the checkpoint. Warns about objects that are only in the checkpoint or only in `keep`."""
        state = _state.load(raw)
        for name, (_, put) in self._things.items():
            if name in state:
                put(state[name])
            else:
                what = "the learning-rate scheduler" if name == FOUND else repr(name)
                self._warn(f"keep: the checkpoint has no state of {what}, which keeps the state that the program gave it")
        for name in state:
            if name == FOUND and name not in self._things:
                self._warn("keep: the checkpoint has the state of a learning-rate scheduler, and the optimizer has none, or several: the "
                           "state is not used; make the scheduler before the Peer, or name it in keep=")
            elif name not in self._things:
                self._warn(f"keep: the checkpoint has a state of {name!r}, which keep= does not name: the state is not used")


def _is_scheduled(optimizer: Any) -> bool:
    """Returns True if a PyTorch scheduler has wrapped the optimizer's step() to count its calls."""
    step = getattr(optimizer, "step", None)
    return bool(getattr(step, "_wrapped_by_lr_sched", False) or getattr(step, "_with_counter", False))
