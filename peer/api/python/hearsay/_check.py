"""Checks numbers that a program passes as arguments. Raises TypeError or ValueError with the name of the argument."""
import math
import operator
from typing import Any, Optional

WHOLE = 2**53  # Largest count that a double represents exactly.


def whole(name: str, value: Any, least: int, most: int = WHOLE) -> int:
    """Returns `value` as an int from `least` to `most`. Accepts integers of numpy and PyTorch, refuses bool."""
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
    """Returns a time limit in seconds, or None for no limit. A negative limit becomes 0."""
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
    """Returns the loss of a step. A PyTorch tensor stays a tensor, so that the call does not wait for a GPU."""
    if hasattr(value, "detach"):
        if value.numel() != 1 or value.is_complex():
            raise TypeError(f"loss: found a tensor of shape {tuple(value.shape)} and {value.dtype}, expected one number")
        return value.detach().reshape(()).float()  # float32, because a sum of losses in float16 could overflow.
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"loss: found {type(value).__name__}, expected one number") from None
