"""Checks of numbers that a program gives: TypeError or ValueError, which name the argument."""
import math
import operator
from typing import Any, Optional

WHOLE = 2**53  # The largest count that a double has exactly.


def whole(name: str, value: Any, least: int, most: int = WHOLE) -> int:
    """A whole number from `least` to `most`. Integers of numpy and PyTorch are whole numbers, True is none."""
    try:
        n = operator.index(value)
    except TypeError:
        n = None
    if n is None or isinstance(value, bool):
        raise TypeError(f"{name}: found {value!r}, expected a whole number")
    if not least <= n <= most:
        raise ValueError(f"{name}: found {n}, expected {least} to {most}")
    return n


def seconds(name: str, value: Any) -> Optional[float]:
    """A time from now; None: no limit. One that is over already is 0."""
    if value is None:
        return None
    try:
        s = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name}: found {value!r}, expected seconds, or None for no limit") from None
    if math.isnan(s):
        raise ValueError(f"{name}: found {s}, expected seconds, or None for no limit")
    return max(0.0, s)


def loss(value: Any) -> Any:
    """The loss of a step. A tensor of PyTorch stays one, so that it is not waited for."""
    if hasattr(value, "detach"):
        if value.numel() != 1 or value.is_complex():
            raise TypeError(f"loss: found a tensor of shape {tuple(value.shape)} and {value.dtype}, expected one number")
        return value.detach().reshape(()).float()  # 16 bits would overflow as they are added up.
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"loss: found {type(value).__name__}, expected one number") from None
