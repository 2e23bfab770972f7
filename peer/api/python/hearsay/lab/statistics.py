"""hearsay.lab.statistics: mean and spread over seeds, and the paired t-test between two arms.

    >>> spread([0.97, 0.98])
    Spread(n=2, mean=0.975, deviation=0.00707..., least=0.97, most=0.98)
    >>> paired([0.97, 0.98, 0.96], [0.95, 0.97, 0.95])
    Difference(n=3, mean=0.0133..., low=-0.001..., high=0.0276..., p=0.057..., kind="same")

Runs of two arms with the same seed begin with the same model and see the samples in the same order, so that their accuracies
are not independent. The test therefore uses the difference of each pair of runs with the same seed. A test for independent
samples would treat the differences between seeds as noise, and would miss small differences that occur with every seed.
"""
import dataclasses
import math
from typing import Sequence

NAN = float("nan")

UNKNOWN, SAME, DIFFERENT = "unknown", "same", "different"
LEVEL = 0.05  # Significance level of the test. The interval has the confidence 1 - LEVEL.


@dataclasses.dataclass(frozen=True)
class Spread:
    """Mean and spread of one measure over several runs that differ in their seeds. NaN: unknown."""

    n: int
    mean: float = NAN
    deviation: float = NAN  # Standard deviation of the sample (n - 1). NaN for fewer than two values.
    least: float = NAN
    most: float = NAN


def spread(values: Sequence[float]) -> Spread:
    """Mean and spread of the values. All fields but `n` are NaN if there is no value, or if one is not finite."""
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


def _beta_fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz's method (DLMF 8.17.22)."""
    tiny = 1e-300
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / (d if abs(d) > tiny else tiny)
    value = d
    for m in range(1, 400):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d, c = 1.0 + term * d, 1.0 + term / c
            d, c = 1.0 / (d if abs(d) > tiny else tiny), c if abs(c) > tiny else tiny
            value *= d * c
        if abs(d * c - 1.0) < 1e-15:
            break
    return value


def t_p_value(t: float, freedom: float) -> float:
    """The two-sided p-value of Student's t: the regularised incomplete beta function I_x(freedom / 2, 1 / 2)."""
    x = freedom / (freedom + t * t)
    a, b = freedom / 2, 0.5
    if x >= 1.0:
        return 1.0
    if x <= 0.0:
        return 0.0
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return front * _beta_fraction(a, b, x) / a
    return 1.0 - front * _beta_fraction(b, a, 1.0 - x) / b


def t_quantile(freedom: float, p: float = LEVEL) -> float:
    """The value t of Student's distribution that has the two-sided p-value p."""
    low, high = 0.0, 1.0
    while t_p_value(high, freedom) > p:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if t_p_value(middle, freedom) > p else (low, middle)
    return high


@dataclasses.dataclass(frozen=True)
class Difference:
    """The difference of two arms in one measure, over the seeds for which both arms have a value."""

    n: int  # Number of pairs.
    mean: float = NAN
    low: float = NAN  # Lower end of the confidence interval of the mean. NaN: unknown.
    high: float = NAN  # Upper end of the confidence interval of the mean. NaN: unknown.
    p: float = NAN  # Two-sided p-value of the paired t-test.
    kind: str = UNKNOWN  # DIFFERENT, SAME (no difference beyond seed noise) or UNKNOWN.


def paired(a: Sequence[float], b: Sequence[float]) -> Difference:
    """The paired t-test of a[i] - b[i] at LEVEL. Pairs with a value that is not finite are left out.

    The kind is UNKNOWN for fewer than two pairs, and for two pairs with equal differences, because the noise cannot be estimated.
    The function does not correct for several comparisons.
    """
    one = spread([x - y for x, y in zip(a, b) if math.isfinite(x) and math.isfinite(y)])
    if one.n < 2:
        return Difference(one.n, one.mean)
    error = one.deviation / math.sqrt(one.n)
    if not error > 1e-12 * abs(one.mean):  # All differences are equal up to rounding.
        if abs(one.mean) > 0 and one.n < 3:
            return Difference(one.n, one.mean)
        same = not abs(one.mean) > 0
        return Difference(one.n, one.mean, one.mean, one.mean, 1.0 if same else 0.0, SAME if same else DIFFERENT)
    half = t_quantile(one.n - 1) * error
    p = t_p_value(one.mean / error, one.n - 1)
    return Difference(one.n, one.mean, one.mean - half, one.mean + half, p, DIFFERENT if p < LEVEL else SAME)
