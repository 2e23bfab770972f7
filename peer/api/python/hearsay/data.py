"""Divides a data set among peers: a peer's shard as sample numbers, as a sampler, and as batches.

    epoch:  shard (sample numbers of this peer) -> random order from (seed of the run, name of this peer, round, epoch)
            -> batches, until the shard changes because members joined or left, or until the run is over
"""
import copy
import ctypes
import hashlib
import operator
import time
from typing import Any, Iterator, List, Optional, Tuple

from . import _check
from ._lib import HearsayError, UsageError, lib

# shard() warns if the program draws more batches than this, in more than this time in seconds, and does not call step().
WITHOUT_STEP = 100
WITHOUT_STEP_S = 5.0


def samples(peer: Any, n: int) -> Any:
    """Implements Peer.samples(): the numbers of the samples in this peer's shard."""
    import numpy

    peer._usable()
    n = _check.whole("n", n, 0, 2**32 - 1)
    count = int(lib.hearsay_share(peer._handle, n, None, 0))
    ids = numpy.zeros(count, numpy.uint64)
    if count > 0:
        count = min(count, int(lib.hearsay_share(peer._handle, n, ids.ctypes.data_as(ctypes.POINTER(ctypes.c_uint64)), count)))
    return ids[:count].astype(numpy.int64)


def _seed(peer: Any) -> int:
    """Returns the seed for the order of the next epoch."""
    peer._epochs += 1
    seed = next((word for word in peer.run.split() if word.startswith("seed")), "")
    text = f"{seed} {peer._given.get('name', '')} {peer._given.get('shard', '')} {peer.round} {peer._epochs}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


def epoch(peer: Any, n: int, shuffle: bool) -> Any:
    """Returns the numbers of this peer's samples, in the order in which one epoch uses them."""
    import numpy

    ids = samples(peer, n)
    if len(ids) == 0:
        raise UsageError(f"hearsay: found no sample of {n} that is this peer's")
    return numpy.random.default_rng(_seed(peer)).permutation(ids) if shuffle else ids


def sampler(peer: Any, n: int, shuffle: bool = True) -> Any:
    """Implements Peer.sampler(): a sampler of PyTorch that draws this peer's shard."""
    try:
        from torch.utils.data import Sampler
    except ImportError as error:
        raise ImportError("sampler() makes a torch Sampler, and PyTorch is not installed; samples() returns the sample numbers as a "
                          "numpy array") from error

    class ShareSampler(Sampler):  # type: ignore[type-arg]
        """Yields the sample numbers of a peer's shard."""

        def __init__(self) -> None:
            pass

        def __iter__(self) -> Iterator[int]:
            return iter(epoch(peer, n, shuffle).tolist())

        def __len__(self) -> int:
            return len(samples(peer, n))

    return ShareSampler()


def _batches_of(peer: Any, arrays: List[Any], size: int, shuffle: bool, single: bool) -> Iterator[Any]:
    """Yields the batches of one epoch of arrays, without PyTorch."""
    n = len(arrays[0])
    if any(len(a) != n for a in arrays):
        raise ValueError(f"shard: found arrays of {[len(a) for a in arrays]} samples, expected as many in each")
    ids = epoch(peer, n, shuffle)
    for at in range(0, len(ids), size):
        cut = tuple(a[ids[at:at + size]] for a in arrays)
        yield cut[0] if single else cut


# ---- a DataLoader's samples ------------------------------------------------------------


def _order_of(source: Any, shuffle: Optional[bool]) -> Tuple[Any, bool]:
    """Returns how to draw the samples of a DataLoader. (sampler, False): its sampler selects or
    orders the samples in its own way. (None, shuffle): each sample is drawn once, shuffled or in
    order.

    TypeError if the samples of this sampler cannot be divided among peers.
    """
    from torch.utils.data import BatchSampler, DistributedSampler, RandomSampler, SequentialSampler

    own = source.sampler if source.batch_sampler is None else getattr(source.batch_sampler, "sampler", None)
    if source.batch_sampler is not None and type(source.batch_sampler) is not BatchSampler:
        raise TypeError(f"shard: found the batch_sampler {type(source.batch_sampler).__name__}, which draws from the samples of all peers; "
                        "expected a DataLoader with a batch_size, or shard=\"own\" and the loader itself in place of peer.shard()")
    if isinstance(own, DistributedSampler):
        raise TypeError("shard: found a DistributedSampler, which shares out the samples itself; expected a DataLoader without one")
    if type(own) is SequentialSampler and len(own) == len(source.dataset):
        return None, bool(shuffle)
    if type(own) is RandomSampler and not own.replacement and own.generator is None and own.num_samples == len(source.dataset):
        return None, shuffle is None or shuffle
    if shuffle is not None:
        raise TypeError(f"shard: found shuffle={shuffle} beside a DataLoader with the sampler {type(own).__name__}, which defines "
                        "the order; expected no shuffle argument")
    return own, False


def _seeded(peer: Any, own: Any) -> Any:
    """Returns the sampler, with a random generator of this peer and epoch if it has none.

    The peers of simulate() share one process. If the peers used the random generator of the process, a repeated run would
    draw other samples.
    """
    import torch

    if getattr(own, "generator", own) is not None:
        return own
    own = copy.copy(own)
    own.generator = torch.Generator().manual_seed(_seed(peer) >> 1)
    return own


def _share_of(peer: Any, own: Any, n: int) -> List[int]:
    """Returns the samples of one epoch that the sampler draws and that are in this peer's shard."""
    mine = set(samples(peer, n).tolist())
    drawn = list(_seeded(peer, own))
    for i in drawn:
        if not hasattr(i, "__index__") or not 0 <= operator.index(i) < n:
            raise TypeError(f"shard: found {i!r} drawn by the sampler {type(own).__name__}, expected numbers of samples from 0 to {n - 1}")
    ids = [operator.index(i) for i in drawn if operator.index(i) in mine]
    if not ids:
        raise UsageError(f"hearsay: found no sample of this peer's among the {len(drawn)} that the sampler {type(own).__name__} draws")
    return ids


def _filtered(peer: Any, own: Any, n: int) -> Any:
    """Returns a sampler that draws with the sampler `own` and yields only the samples of this peer's shard.

    The weights, the subset and the order of `own` are kept.
    """
    from torch.utils.data import Sampler

    class OwnShare(Sampler):  # type: ignore[type-arg]
        """Yields the sample numbers that _share_of() returns, in the same order."""

        def __init__(self) -> None:
            pass

        def __iter__(self) -> Iterator[int]:
            return iter(_share_of(peer, own, n))

    return OwnShare()


def _loader(peer: Any, source: Any, batch_size: Optional[int], shuffle: Optional[bool]) -> Any:
    """Returns a DataLoader with the settings of `source` that loads only the samples of this peer's shard."""
    from torch.utils.data import DataLoader, IterableDataset

    if not isinstance(source, DataLoader):
        if isinstance(source, IterableDataset):
            raise TypeError("shard: found an IterableDataset, whose samples have no numbers; expected one with len() and [i]")
        source = DataLoader(source, batch_size=batch_size or 32, shuffle=shuffle is None or shuffle)
        shuffle = None
    if isinstance(source.dataset, IterableDataset):
        raise TypeError("shard: found an IterableDataset, whose samples have no numbers; expected one with len() and [i]")
    if type(source).__iter__ is not DataLoader.__iter__:
        raise TypeError(f"shard: found a {type(source).__name__}, which makes its batches itself; expected a torch DataLoader")
    if source.batch_size is None and source.batch_sampler is None and batch_size is not None:
        raise TypeError(f"shard: found batch_size={batch_size} beside a DataLoader without batches, expected none")
    own, shuffles = _order_of(source, shuffle)
    batches = source if source.batch_sampler is None else source.batch_sampler
    n = len(source.dataset)
    more = {name: getattr(source, name) for name in ("in_order", "pin_memory_device") if getattr(source, name, None) is not None}
    return DataLoader(
        source.dataset, batch_size=batch_size or batches.batch_size,
        sampler=sampler(peer, n, shuffles) if own is None else _filtered(peer, own, n),
        num_workers=source.num_workers, collate_fn=source.collate_fn, pin_memory=source.pin_memory,
        drop_last=batches.drop_last, timeout=source.timeout, worker_init_fn=source.worker_init_fn,
        multiprocessing_context=source.multiprocessing_context, generator=source.generator,
        prefetch_factor=source.prefetch_factor, persistent_workers=source.persistent_workers, **more)


def _are_arrays(source: Any) -> bool:
    one = source[0] if isinstance(source, (tuple, list)) and len(source) > 0 else source
    return hasattr(one, "shape") and hasattr(one, "dtype") and hasattr(one, "__getitem__")


def shard(peer: Any, source: Any, batch_size: Optional[int], shuffle: Optional[bool]) -> Iterator[Any]:
    """Implements Peer.shard(): batches of this peer's shard, epoch after epoch."""
    if batch_size is not None:
        batch_size = _check.whole("batch_size", batch_size, 1, 2**32 - 1)
    if _are_arrays(source):
        single = not isinstance(source, (tuple, list))
        arrays = [source] if single else list(source)
        return _endless(peer, lambda: _batches_of(peer, arrays, batch_size or 32, shuffle is None or shuffle, single))
    loader = _loader(peer, source, batch_size, shuffle)
    return _endless(peer, lambda: iter(loader))


class _StepReminder:
    """Warns once if a program draws batches but does not call step(). Without step() the run makes no progress, so the
    loop of the program does not end.
    """

    def __init__(self, peer: Any) -> None:
        self.peer, self.warned = peer, False
        self.calls, self.batches, self.begin_s = -1, 0, 0.0

    def batch_drawn(self) -> None:
        if self.calls != self.peer._step_calls:
            self.calls, self.batches, self.begin_s = self.peer._step_calls, 0, time.monotonic()
        self.batches += 1
        silent_s = time.monotonic() - self.begin_s
        if not self.warned and self.batches > WITHOUT_STEP and silent_s > WITHOUT_STEP_S:
            self.warned = True
            self.peer._warn(f"shard: {self.batches} batches in {silent_s:.0f} s without a call of peer.step(): the run makes no progress "
                            "without it, and the loop does not end; call peer.step(loss, samples) after each step of the optimizer")


def _endless(peer: Any, begin: Any) -> Iterator[Any]:
    reminder = _StepReminder(peer)
    while not peer.over:
        if not peer.wait():
            return
        share, n = peer.shares, 0
        for batch in begin():
            if peer.over or not peer.wait():
                return
            n += 1
            reminder.batch_drawn()
            yield batch
            if peer.over:
                return
            if peer.shares != share:
                break
        if n == 0:
            raise HearsayError("shard: found no batch in an epoch, expected one: is drop_last set, and the share "
                               "smaller than a batch?")
