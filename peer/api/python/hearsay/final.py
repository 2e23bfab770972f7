"""Exact consensus distance between the final models of local() and simulate()."""
import math
import os
from typing import Any, Iterator, List, Sequence, Tuple

from . import _lib

CHUNK = 1 << 20  # Number of floats of each model that are in memory at a time.


class Results(List[Any]):
    """Result of local() and simulate(): a list by rank, with the exact distance between the final models.

    drift           sqrt(mean |x_i - x_mean|^2) over the trained parameters, in double precision; NaN: unknown
    relative_drift  drift / |x_mean|
    models          number of models compared, one for each rank that called connect()
    """

    drift: float = math.nan
    relative_drift: float = math.nan
    models: int = 0


def trained(model: Any) -> Iterator[Any]:
    """Yields the current values of the trained tensors of a _model.Model, flat, as float32 (exact for 16-bit types)."""
    import numpy

    for item in model.items:
        if item.role == _lib.TRAINED:
            x = item.owner
            x = x.detach().cpu().float().numpy() if hasattr(x, "detach") else x
            yield numpy.ascontiguousarray(x, numpy.float32).reshape(-1)


def write(path: str, model: Any) -> None:
    """Writes trained(model) to the file `path`. After a failure, writes `path`.missing instead; exact() then returns NaN."""
    try:
        with open(path, "wb") as f:
            for x in trained(model):
                f.write(x.data)
    except OSError:
        if os.path.exists(path):
            os.unlink(path)
            open(path + ".missing", "w").close()


def distance(models: Sequence[Any]) -> Tuple[float, float]:
    """Returns the consensus distance of vectors of the same length, and the distance divided by the norm of their mean."""
    import numpy

    apart = size = 0.0
    for at in range(0, len(models[0]), CHUNK):
        x = numpy.stack([numpy.asarray(one[at:at + CHUNK], numpy.float64) for one in models])
        mean = x.mean(axis=0)
        apart += float(numpy.square(x - mean).sum()) / len(models)
        size += float(numpy.square(mean).sum())
    drift = math.sqrt(apart)
    return drift, drift / math.sqrt(size) if size > 0 else (0.0 if drift == 0 else math.inf)


def exact(paths: Sequence[str]) -> Tuple[int, float, float]:
    """Returns (number of models, consensus distance, relative consensus distance) of the files that exist."""
    there = [path for path in paths if os.path.exists(path)]
    if not there or any(os.path.exists(path + ".missing") for path in paths):
        return 0, math.nan, math.nan
    import numpy

    models: List[Any] = [numpy.fromfile(path, numpy.float32) if os.path.getsize(path) == 0 else numpy.memmap(path, numpy.float32, "r")
                         for path in there]
    if len({len(one) for one in models}) > 1:
        return 0, math.nan, math.nan  # Models of different sizes, from peers that were in different runs.
    return (len(models), *distance(models))
