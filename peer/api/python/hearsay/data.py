"""Whose samples are whose: shares of a set that all peers have, as ids, as a sampler, and as batches.

    epoch:  share (ids of this peer) -> an order by (the run's seed, this peer's name, round, epoch) -> batches
            ... until the share changes, because members came or went, or the run is over
"""
import ctypes
import hashlib
from typing import Any, Iterator, List, Optional

from . import _check
from ._lib import HearsayError, UsageError, lib


def samples(peer: Any, n: int) -> Any:
    """Peer.samples()."""
    import numpy

    peer._usable()
    n = _check.whole("n", n, 0, 2**32 - 1)
    count = int(lib.hearsay_share(peer._handle, n, None, 0))
    ids = numpy.zeros(count, numpy.uint64)
    if count > 0:
        count = min(count, int(lib.hearsay_share(peer._handle, n, ids.ctypes.data_as(ctypes.POINTER(ctypes.c_uint64)), count)))
    return ids[:count].astype(numpy.int64)


def _seed(peer: Any) -> int:
    """Of the next epoch's order."""
    peer._epochs += 1
    seed = next((word for word in peer.run.split() if word.startswith("seed")), "")
    text = f"{seed} {peer._given.get('name', '')} {peer._given.get('shard', '')} {peer.round} {peer._epochs}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


def epoch(peer: Any, n: int, shuffle: bool) -> Any:
    """This peer's ids, in the order of one epoch."""
    import numpy

    ids = samples(peer, n)
    if len(ids) == 0:
        raise UsageError(f"hearsay: found no sample of {n} that is this peer's")
    return numpy.random.default_rng(_seed(peer)).permutation(ids) if shuffle else ids


def sampler(peer: Any, n: int, shuffle: bool = True) -> Any:
    """Peer.sampler()."""
    from torch.utils.data import Sampler

    class ShareSampler(Sampler):  # type: ignore[type-arg]
        """The ids of a peer's share."""

        def __init__(self) -> None:
            pass

        def __iter__(self) -> Iterator[int]:
            return iter(epoch(peer, n, shuffle).tolist())

        def __len__(self) -> int:
            return len(samples(peer, n))

    return ShareSampler()


def _batches_of(peer: Any, arrays: List[Any], size: int, shuffle: bool, single: bool) -> Iterator[Any]:
    """One epoch, without PyTorch."""
    n = len(arrays[0])
    if any(len(a) != n for a in arrays):
        raise ValueError(f"shard: found arrays of {[len(a) for a in arrays]} samples, expected as many in each")
    ids = epoch(peer, n, shuffle)
    for at in range(0, len(ids), size):
        cut = tuple(a[ids[at:at + size]] for a in arrays)
        yield cut[0] if single else cut


def _loader(peer: Any, source: Any, batch_size: Optional[int], shuffle: bool) -> Any:
    """A DataLoader as the given one, of this peer's samples."""
    from torch.utils.data import DataLoader, IterableDataset

    if not isinstance(source, DataLoader):
        source = DataLoader(source, batch_size=batch_size or 32)
    if isinstance(source.dataset, IterableDataset):
        raise TypeError("shard: found an IterableDataset, whose samples have no numbers; expected one with len() and [i]")
    if source.batch_size is None:
        raise TypeError("shard: found a DataLoader with a batch_sampler or without batches, expected one with a batch_size")
    return DataLoader(
        source.dataset, batch_size=batch_size or source.batch_size, sampler=sampler(peer, len(source.dataset), shuffle),
        num_workers=source.num_workers, collate_fn=source.collate_fn, pin_memory=source.pin_memory,
        drop_last=source.drop_last, timeout=source.timeout, worker_init_fn=source.worker_init_fn,
        multiprocessing_context=source.multiprocessing_context, generator=source.generator,
        prefetch_factor=source.prefetch_factor, persistent_workers=source.num_workers > 0)


def _are_arrays(source: Any) -> bool:
    one = source[0] if isinstance(source, (tuple, list)) and len(source) > 0 else source
    return hasattr(one, "shape") and hasattr(one, "dtype") and hasattr(one, "__getitem__")


def shard(peer: Any, source: Any, batch_size: Optional[int], shuffle: bool) -> Iterator[Any]:
    """Peer.shard()."""
    if _are_arrays(source):
        single = not isinstance(source, (tuple, list))
        arrays = [source] if single else list(source)
        return _endless(peer, lambda: _batches_of(peer, arrays, batch_size or 32, shuffle, single))
    loader = _loader(peer, source, batch_size, shuffle)
    return _endless(peer, lambda: iter(loader))


def _endless(peer: Any, begin: Any) -> Iterator[Any]:
    while not peer.over:
        if not peer.wait():
            return
        share, n = peer.shares, 0
        for batch in begin():
            if peer.over or not peer.wait():
                return
            n += 1
            yield batch
            if peer.over:
                return
            if peer.shares != share:
                break
        if n == 0:
            raise HearsayError("shard: found no batch in an epoch, expected one: is drop_last set, and the share "
                               "smaller than a batch?")
