"""hearsay.lab.statistics: mean and spread over seeds, and Welch's t-test between two arms.

    >>> spread([0.97, 0.98])
    Spread(n=2, mean=0.975, deviation=0.00707..., least=0.97, most=0.98)
    >>> differ(a, b)                 # DIFFERENT, SAME (no difference beyond seed noise) or UNKNOWN
"""
import dataclasses
import math
from typing import Sequence

NAN = float("nan")

UNKNOWN, SAME, DIFFERENT = "unknown", "same", "different"

# Two-sided 5 % quantiles of Student's t for 1 to 30 degrees of freedom. For more than 30 that of 30 is used, which is too
# large by at most 4 %.
_QUANTILES = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
              2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042)


@dataclasses.dataclass(frozen=True)
class Spread:
    """A figure of several runs that differ in their seeds."""

    n: int
    mean: float = NAN
    deviation: float = NAN  # Standard deviation of the sample (n - 1). NaN for fewer than two values.
    least: float = NAN
    most: float = NAN


def spread(values: Sequence[float]) -> Spread:
    """The spread of the values. All NaN where there is no value, or one of them is not finite."""
    n = len(values)
    total = 0.0
    for x in values:
        total += x
    mean = total / n if n > 0 else NAN
    if not math.isfinite(mean):
        return Spread(n)
    squares = 0.0
    for x in values:
        squares += (x - mean) * (x - mean)
    return Spread(n, mean, math.sqrt(squares / (n - 1)) if n > 1 else NAN, min(values), max(values))


def _quantile(freedom: float) -> float:
    return _QUANTILES[max(1, int(min(freedom, len(_QUANTILES)))) - 1]


def differ(a: Spread, b: Spread) -> str:
    """Welch's two-sided t-test at 5 %: DIFFERENT, SAME, or UNKNOWN for fewer than two values.

    The degrees of freedom of Satterthwaite are rounded down (Welch, "The generalization of 'Student's' problem when several
    different population variances are involved", Biometrika 34, 1947). There is no correction for several comparisons.
    """
    if not math.isfinite(a.deviation) or not math.isfinite(b.deviation):
        return UNKNOWN
    u, v = a.deviation * a.deviation / a.n, b.deviation * b.deviation / b.n
    distance = abs(a.mean - b.mean)
    if not u + v > 0:
        return DIFFERENT if distance > 0 else SAME
    freedom = (u + v) * (u + v) / (u * u / (a.n - 1) + v * v / (b.n - 1))
    return DIFFERENT if distance > _quantile(freedom) * math.sqrt(u + v) else SAME
