#!/usr/bin/python3
"""Tests of hearsay.Peer with PyTorch: python_peer_torch.py CHECK runs the function check_CHECK."""
import gc
import io
import json
import struct
import pickle
import random
import sys
import tempfile
import threading

sys.dont_write_bytecode = True
import hearsay  # noqa: E402
import numpy  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from hearsay import _model, _state, keeping  # noqa: E402
from python_peer import alone, raises, together  # noqa: E402
from torch import nn  # noqa: E402

torch.set_num_threads(1)


class Tied(nn.Module):
    """A module with tied weights, batch statistics, a mask that is not saved, and an integer buffer."""

    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(6, 5, bias=False)
        self.bn = nn.BatchNorm1d(5)
        self.fc2 = nn.Linear(6, 5, bias=False)
        self.fc2.weight = self.fc1.weight
        self.register_buffer("mask", torch.ones(6), persistent=False)
        self.register_buffer("scale", torch.tensor(1.0))

    def forward(self, x):
        return self.bn(self.fc1(x * self.mask)) + self.fc2(x) * self.scale


lock = threading.Lock()


def made():
    with lock:  # The random seed belongs to the process, so only one thread may use it at a time.
        torch.manual_seed(1)
        return Tied()


def trained(model, peer, optimizer, seed):
    g = torch.Generator().manual_seed(seed)
    while not peer.over:
        optimizer.zero_grad()
        loss = model(torch.randn(8, 6, generator=g)).square().mean()
        loss.backward()
        optimizer.step()
        peer.step(loss, 8)


def flat(model):
    return torch.cat([t.detach().flatten().float().clone() for k, t in model.state_dict().items() if "num_batches" not in k])


def check_views():
    """Parameters stay the same Python objects, but become views of one buffer that the library uses, so nothing is copied."""
    def train(rank, connect):
        model = made()
        before = {k: t.clone() for k, t in model.state_dict().items()}
        objects = [id(p) for p in model.parameters()] + [id(b) for b in model.buffers()]
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        peer = connect(model, optimizer)
        assert objects == [id(p) for p in model.parameters()] + [id(b) for b in model.buffers()]
        assert all(torch.equal(t, before[k]) for k, t in model.state_dict().items())
        names = [i.name for i in peer._model.items]
        assert names == ["fc1.weight", "bn.weight", "bn.bias", "scale", "bn.running_mean", "bn.running_var", "mask",
                         "bn.num_batches_tracked"], names
        at = peer._model.flat.ctypes.data
        assert at % 64 == 0
        for i in peer._model.items[:6]:
            assert i.owner.data_ptr() == at and i.owner.is_contiguous(), i.name
            at += 4 * i.owner.numel()
        assert model.fc2.weight is model.fc1.weight
        trained(model, peer, optimizer, rank)
        assert peer.finish() and peer.exit_code == 0, peer.verdict
        copied, final = peer.figures().bytes_copied, flat(model)
        assert copied == 0, copied
        del peer
        gc.collect()
        assert torch.equal(final, flat(model))
        model(torch.randn(8, 6)).sum().backward()  # After the end of its Peer, the module can be trained like any other module.
        optimizer.step()
        return final

    a, b = together(2, train, rounds=20, compress="none", topology="complete")
    assert float((a - b).norm() / a.norm()) < 2e-3
    assert not torch.equal(a, flat(made()))


def check_staged():
    """A model on a GPU is exchanged through a copy on the CPU. The test has no GPU: it treats a model on the CPU as on a GPU."""
    _model._on_gpu = lambda x: True

    def train(rank, connect):
        model = made()
        at = [p.data_ptr() for p in model.parameters()]
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        peer = connect(model, optimizer)
        trained(model, peer, optimizer, rank)
        peer.finish()
        assert at == [p.data_ptr() for p in model.parameters()]
        return flat(model)

    a, b = together(2, train, rounds=20, compress="none", topology="complete")
    assert float((a - b).norm() / a.norm()) < 2e-3 and not torch.equal(a, flat(made()))


def check_half():
    """16-bit tensors are trained in place, together with float32 tensors."""
    def train(rank, connect):
        model = nn.Sequential(nn.Linear(4, 4).bfloat16(), nn.Linear(4, 2).half(), nn.Linear(2, 2))
        for p in model.parameters():
            p.data.zero_()
        at = model[0].weight.data_ptr()
        with connect(model) as peer:
            while not peer.over:
                for p in model.parameters():
                    p.data += 0.125 * (1 + 2 * rank)
                peer.step()
        assert at == model[0].weight.data_ptr() and model[1].weight.dtype == torch.float16
        return [float(p.flatten()[0]) for p in model.parameters()]

    a, b = together(2, train, rounds=6, compress="none", topology="complete")
    assert all(abs(x - 1.5) < 0.02 and abs(x - y) < 0.01 for x, y in zip(a, b)), (a, b)


def check_evaluate():
    """evaluate() runs in eval mode without gradients. Afterwards each module has its former mode."""
    model = made()
    model.bn.eval()
    seen = []

    def evaluate(model):
        seen.append((model.training, model.fc1.training, torch.is_grad_enabled()))
        return torch.tensor(0.5), torch.tensor(0.75), 10

    with alone(model, evaluate=evaluate, evaluate_every=1) as peer:
        trained(model, peer, torch.optim.SGD(model.parameters(), lr=0.01), 1)
    assert set(seen) == {(False, False, False)}, seen
    assert model.training and model.fc1.training and not model.bn.training
    assert peer.accuracy == 0.75, peer.figures()


def check_moved():
    """A tensor whose memory has moved causes an error with its name.

    Otherwise the program would train another memory than the library mixes.
    """
    model = made()
    peer = alone(model)
    model.fc1.weight.data = model.fc1.weight.data.clone()
    raises(hearsay.UsageError, "tensor fc1.weight: found its values in other memory (on cpu)", peer.step)
    peer.leave()
    model = made()
    peer = alone(model)
    model.half()
    raises(hearsay.UsageError, "tensor fc1.weight: found its values in other memory", peer.step)
    peer.leave()
    raises(TypeError, "float64", lambda: alone(made().double()))
    raises(TypeError, "buffers", lambda: alone(made(), buffers={}))


def check_replaced():
    """A layer, parameter or array that is added or replaced after the start causes an error, because it would not be mixed."""
    def layer(m):
        m.fc2 = nn.Linear(4, 6)

    def parameter(m):
        m.fc1.bias = nn.Parameter(torch.zeros(4))

    def buffer(m):
        m.bn.running_mean = torch.zeros(4)

    def more(m):
        m.fc3 = nn.Linear(1, 1)

    def normed(m):
        nn.utils.weight_norm(m.fc1)

    for change, words in ((layer, "fc2: found another Linear"), (parameter, "fc1.bias: found another Parameter"),
                          (buffer, "bn.running_mean: found another Tensor"), (more, "the model: found the new part 'fc3'"),
                          (normed, "fc1.weight: found nothing")):
        model = nn.Sequential()
        model.add_module("fc1", nn.Linear(6, 4))
        model.add_module("fc2", nn.Linear(4, 6))
        model.add_module("bn", nn.BatchNorm1d(4))
        with alone(model) as peer:
            assert peer.step()
            change(model)
            raises(hearsay.UsageError, f"hearsay: {words}, expected it as it was when the Peer was made", peer.step)
    arrays = {"w": numpy.ones(3, numpy.float32)}
    with alone(arrays) as peer:
        arrays["w"] = arrays["w"] - 1
        raises(hearsay.UsageError, "hearsay: w: found another ndarray", peer.step)


class Buffered(nn.Module):
    """A module with all kinds of buffers that are not mixed, with different values at each peer."""

    def __init__(self, seed):
        super().__init__()
        g = torch.Generator().manual_seed(seed)
        self.fc = nn.Linear(6, 6)
        self.register_buffer("perm", torch.randperm(300, generator=g)[:6])
        self.register_buffer("mask", torch.rand(5, 7, generator=g) < 0.5)
        self.register_buffer("cache", torch.rand(3, generator=g), persistent=False)
        self.register_buffer("turn", torch.randn(2, 2, generator=g, dtype=torch.complex64))
        self.register_buffer("bytes", torch.randint(0, 256, (3,), generator=g, dtype=torch.uint8).expand(2, 3))
        self.register_buffer("wide", torch.randn(4, generator=g, dtype=torch.float64).t())
        self.register_buffer("big", torch.randint(-2**62, 2**62, (), generator=g))
        self.register_buffer("none", torch.zeros(0, dtype=torch.int64))
        self.register_buffer("a_name_of_a_buffer_that_is_longer_than_a_name_in_a_run_can_be_" * 2, torch.randint(0, 9, (2,), generator=g))

    def others(self):
        return [(k, b.clone()) for k, b in self.named_buffers()]


def buffered(rank, connect, **more):
    model = Buffered(rank)
    before = model.others()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    peer = connect(model, optimizer, **more)
    given = model.others()
    g = torch.Generator().manual_seed(rank)
    while not peer.over:
        optimizer.zero_grad()
        model.fc(torch.randn(8, 6, generator=g)).square().mean().backward()
        optimizer.step()
        peer.step()
    peer.finish()
    return before, given, model.others(), peer.exit_code, peer.figures().bytes_copied


def check_opaque():
    """All peers begin with the non-float buffers of one peer, bit for bit."""
    def same(a, b):
        return all(k == j and x.dtype == y.dtype and torch.equal(x, y) for (k, x), (j, y) in zip(a, b))

    for many in (lambda: hearsay.local(2, buffered, rounds=6), lambda: hearsay.simulate(3, buffered, rounds=40, topology="ring"),
                 lambda: hearsay.simulate(3, buffered, rounds=6, compress="topk:0.1")):
        found = many()
        assert not same(found[0][0], found[1][0])
        for _, given, final, code, copied in found:
            assert same(given, found[0][0]) and same(final, found[0][0]) and code == 0 and copied == 0, (found[0][0], given, final)
    found = hearsay.simulate(2, lambda rank, connect: buffered(rank, connect, skip=["mask"]), rounds=3)
    assert torch.equal(dict(found[1][0])["mask"], dict(found[1][1])["mask"]) and torch.equal(dict(found[0][0])["perm"], dict(found[1][1])["perm"])


def check_opaque_stored():
    """A model file contains no non-float buffers. A restarted peer gets the buffers with which the run began."""
    directory = tempfile.mkdtemp()
    key = hearsay.keygen(directory + "/key")
    out = dict(key=key, out=directory + "/out", checkpoint="0.05", rounds=100000)
    model = Buffered(1)
    peer = alone(model, **out)
    for _ in range(40):
        peer.step()
    peer.leave()
    again = Buffered(2)
    peer = alone(again, **out)
    assert peer.round > 0 and all(torch.equal(x, y) for (_, x), (_, y) in zip(model.others(), again.others()))
    peer.leave()
    with alone(Buffered(3), out=directory + "/other", rounds=2) as peer:
        while peer.step():
            pass
    with open(directory + "/other/model.safetensors", "rb") as f:
        text = f.read(4000)
    assert b"fc.weight" in text and b"perm" not in text, text


def check_opaque_changed():
    """A non-float buffer that changes in training causes one warning, but the batch counter of a batch norm causes none."""
    notes = []
    model = Buffered(1)
    model.bn = nn.BatchNorm1d(6)
    with alone(model, on_note=lambda level, text: notes.append((level, text))) as peer:
        while not peer.over:
            model.bn(torch.randn(4, 6))
            model.perm += 1
            model.cache = model.cache + 1
            peer.step()
    said = [one for one in notes if "changed in training" in one[1]]
    assert len(said) == 2 and all(level == 1 for level, _ in said), said
    assert "buffer perm (int64)" in said[0][1] and "buffer cache (float32)" in said[1][1], said


def check_opaque_differs():
    """Peers whose buffers have other types or shapes are refused, with the name of the buffer."""
    def other(value):
        def train(rank, connect):
            model = Buffered(rank)
            if rank == 1:
                model.perm = value
            connect(model, timeout=30)  # One of the two peers is refused. The other peer waits in vain, so it has a time limit.

        return train

    for value in (torch.zeros(6, dtype=torch.int32), torch.zeros(2, 3, dtype=torch.int64), torch.zeros(7, dtype=torch.int64)):
        raises(hearsay.SimulationError, "different runs", lambda: hearsay.simulate(2, other(value), rounds=3))
    error = raises(hearsay.UsageError, "the tensors differ", lambda: together(2, other(torch.zeros(7, dtype=torch.int64)), rounds=300))
    assert "perm:int64:" in str(error), error


def check_shared():
    """Parameters that share all their memory stay tied.

    Tensors that share only a part of their memory, or share it with an attribute, are refused, and the error names both.
    """
    def tied(dtype):
        model = nn.ModuleDict({"a": nn.Linear(4, 4), "b": nn.Linear(4, 4)}).to(dtype)
        model["b"].weight = nn.Parameter(model["a"].weight.data)
        assert model["b"].weight is not model["a"].weight
        return model

    for dtype in (torch.float32, torch.bfloat16):
        model = tied(dtype)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with alone(model) as peer:
            assert [i.name for i in peer._model.items] == ["a.weight", "a.bias", "b.bias"]
            while not peer.over:
                optimizer.zero_grad()
                model["b"](model["a"](torch.ones(2, 4, dtype=dtype))).sum().backward()
                optimizer.step()
                assert torch.equal(model["a"].weight, model["b"].weight) and model["a"].weight.data_ptr() == model["b"].weight.data_ptr()
                peer.step()
    model = tied(torch.float32)
    with alone(model) as peer:
        model["b"].weight.data = model["b"].weight.data.clone()
        raises(hearsay.UsageError, "that was tied to another: found its values in other memory", peer.step)

    def part(m):
        m["b"].weight = nn.Parameter(m["a"].weight.data[1:3])

    def turned(m):
        m["b"].weight = nn.Parameter(m["a"].weight.data.t())

    def buffer(m):
        m["b"].register_buffer("copy", m["a"].weight.data[0])

    def attribute(m):
        m["b"].copy = m["a"].weight.detach()

    def bits(m):
        m["b"].register_buffer("copy", m["a"].weight.data.view(torch.int32))

    for change, words in ((part, "a.weight and b.weight"), (turned, "a.weight and b.weight"), (buffer, "b.copy"), (attribute, "b.copy"), (bits, "b.copy")):
        model = nn.ModuleDict({"a": nn.Linear(4, 4), "b": nn.Linear(4, 4)})
        change(model)
        error = raises(hearsay.UsageError, "found shared memory", lambda: alone(model))
        assert words in str(error) and "a.weight" in str(error), error
    model = nn.ModuleDict({"a": nn.Linear(4, 4)})
    model["a"].weight = nn.Parameter(torch.ones(1).expand(4, 4))
    raises(hearsay.UsageError, "tensor a.weight: found elements that share memory", lambda: alone(model))
    rnn = nn.LSTM(3, 4)  # An LSTM also keeps its parameters in a list of its own.
    alone(rnn).leave()
    # The first peer has put all weights into one storage, at different offsets. Such tensors are accepted.
    alone(rnn).leave()


def check_kinds():
    """Scripted, traced, compiled and wrapped modules train like the plain module.

    Kinds of modules that cannot be used are refused by name.
    """
    def plain():
        torch.manual_seed(3)
        return nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5))

    def compiled(m):
        return torch.compile(m, backend="eager")

    def layer(m):
        return nn.Sequential(compiled(m[0]), m[1])

    finals = {}
    wraps = [lambda m: m, torch.jit.script, lambda m: torch.jit.trace(m, torch.ones(3, 6)), nn.DataParallel]
    for wrap in wraps + ([compiled, layer] if hasattr(torch, "compile") else []):  # PyTorch 1.13 has no torch.compile.
        wrapped = wrap(plain())
        optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.1)
        g = torch.Generator().manual_seed(5)

        def train(rank, connect):
            model = wrapped if rank == 0 else plain()
            peer = connect(model, optimizer if rank == 0 else None, evaluate=(lambda m: 0.5) if rank == 0 else None, evaluate_every=2)
            while not peer.over:
                if rank == 0:
                    optimizer.zero_grad()
                    wrapped(torch.randn(8, 6, generator=g)).square().mean().backward()
                    optimizer.step()
                peer.step()
            assert peer.finish() and peer.exit_code == 0 and wrapped.training
            return [p.detach().clone() for p in model.parameters()]

        a, b = hearsay.simulate(2, train, rounds=6, compress="none")
        assert all(torch.allclose(x, y, atol=1e-3) for x, y in zip(a, b)), wrap
        finals[len(finals)] = a
    assert all(torch.equal(x, y) for one in finals.values() for x, y in zip(one, finals[0])), finals

    def sparse(m):
        m[0].weight = nn.Parameter(m[0].weight.data.to_sparse())

    def double(m):
        m[0].double()

    def complex_(m):
        m[0].weight = nn.Parameter(torch.zeros(5, 6, dtype=torch.complex64))

    def meta(m):
        m[1].to("meta")

    def meta_buffer(m):
        m.register_buffer("b", torch.zeros(3, dtype=torch.int64, device="meta"))

    def inference(m):
        with torch.inference_mode():
            b = torch.zeros(3, dtype=torch.int64)
        m.register_buffer("b", b)

    def lazy(m):
        m.add_module("z", nn.LazyLinear(3))

    for change, kind, words in ((sparse, TypeError, "tensor 0.weight: found layout torch.sparse_coo"), (double, TypeError, "tensor 0.weight: found torch.float64"),
                                (complex_, TypeError, "tensor 0.weight: found torch.complex64"), (meta, hearsay.UsageError, "tensor 1.weight: found one without values"),
                                (meta_buffer, hearsay.UsageError, "tensor b: found one without values"), (lazy, hearsay.UsageError, "tensor z.weight: found one without values"),
                                (inference, hearsay.UsageError, "tensor b: found one that was made in torch.inference_mode()")):
        model = plain()
        change(model)
        raises(kind, words, lambda: alone(model, bootstrap="127.0.0.1:1", min_peers=2, timeout=1))
    model = nn.Sequential(nn.Linear(6, 5), nn.Linear(5, 5))
    model[1] = torch.ao.quantization.quantize_dynamic(nn.Sequential(model[1]), {nn.Linear}, dtype=torch.qint8)[0]
    raises(TypeError, "module 1._packed_params: found dtype", lambda: alone(model))
    raises(hearsay.UsageError, "found no tensor", lambda: alone(torch.jit.freeze(torch.jit.script(plain().eval()))))

    class DistributedDataParallel(nn.Module):
        pass

    raises(TypeError, "found a DistributedDataParallel", lambda: alone(DistributedDataParallel()))


def check_places():
    """Empty, frozen, strided and negated tensors are accepted. `skip` also accepts a single pattern instead of a list."""
    model = nn.Sequential(nn.Linear(6, 5), nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last))
    model[0].weight = nn.Parameter(torch.randn(6, 5).t())
    model[0].bias.requires_grad_(False)
    model.register_parameter("empty", nn.Parameter(torch.zeros(0, 3)))
    before = {k: x.clone() for k, x in model.state_dict().items()}
    with alone(model) as peer:
        assert all(torch.equal(x, before[k]) for k, x in model.state_dict().items())
        while peer.step():
            pass
    assert all(torch.equal(x, before[k]) for k, x in model.state_dict().items()) and not model[0].bias.requires_grad
    with alone(model, skip="0.*") as peer:
        assert [i.name for i in peer._model.items] == ["1.weight", "1.bias"]


def check_skip():
    """Tensors that are skipped keep each peer's own values."""
    def train(rank, connect):
        model = made()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        with connect(model, optimizer, skip=["bn.*"]) as peer:
            trained(model, peer, optimizer, rank)
        return model

    a, b = together(2, train, rounds=10, compress="none", topology="complete")
    assert not torch.allclose(a.bn.running_mean, b.bn.running_mean, atol=1e-4)
    assert torch.allclose(a.fc1.weight, b.fc1.weight, atol=1e-3)


def check_workers():
    """A DataLoader with forked workers: batches are from the shard, and the workers do not disturb the peer."""
    from torch.utils.data import DataLoader, TensorDataset

    def train(rank, connect):
        model = made()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        loader = DataLoader(TensorDataset(torch.arange(40), torch.randn(40, 6)), batch_size=6, num_workers=2, drop_last=True)
        seen = set()
        with connect(model, optimizer) as peer:
            mine = set(peer.samples(40).tolist())
            for ids, x in peer.shard(loader):
                assert len(ids) == 6
                seen |= set(ids.tolist())
                optimizer.zero_grad()
                model(x).square().mean().backward()
                optimizer.step()
                peer.step()
            assert seen <= mine and len(seen) > 12, (seen, mine)
        assert peer.exit_code == 0, peer.verdict
        raises(hearsay.HearsayError, "no batch", lambda: small())

    def small():
        with alone(made()) as peer:
            next(peer.shard(DataLoader(TensorDataset(torch.arange(4)), batch_size=6, drop_last=True)))

    together(1, train, rounds=12)


def check_sampler():
    """Peers train on the samples that the loader's sampler draws (subset, weights, order), each peer on its own shard."""
    from torch.utils.data import (BatchSampler, DataLoader, DistributedSampler, IterableDataset, RandomSampler, Sampler, SequentialSampler,
                                  SubsetRandomSampler, TensorDataset, WeightedRandomSampler)

    data = TensorDataset(torch.arange(200), torch.randn(200, 6))

    class Odd(Sampler):
        def __init__(self):
            pass

        def __iter__(self):
            return iter(range(199, 0, -2))

    def drawn(rounds=40, **loading):
        """Returns the samples of each peer, and the sample numbers of its batches."""
        def train(rank, connect):
            with connect(made()) as peer:
                mine, batches = set(peer.samples(200).tolist()), []
                for batch in peer.shard(DataLoader(data, **loading)):
                    batches.append(batch[0].tolist())
                    peer.step()
            return mine, batches

        return hearsay.simulate(2, train, rounds=rounds)

    def refused(words, source, kind=TypeError, **more):
        with alone(made()) as peer:
            raises(kind, words, lambda: next(peer.shard(source, **more)))

    def flat_of(batches):
        return [i for one in batches for i in one]

    for loading, allowed in ((dict(sampler=SubsetRandomSampler(range(0, 200, 4))), set(range(0, 200, 4))), (dict(sampler=Odd()), set(range(1, 200, 2))),
                             (dict(shuffle=True), set(range(200))), (dict(), set(range(200))),
                             (dict(sampler=SubsetRandomSampler(range(50), generator=torch.Generator().manual_seed(3))), set(range(50))),
                             (dict(sampler=WeightedRandomSampler([1.0] * 60 + [0.0] * 140, 200)), set(range(60)))):
        found = drawn(batch_size=8, **loading)
        for mine, batches in found:
            assert set(flat_of(batches)) <= mine & allowed, (loading, set(flat_of(batches)) - allowed)
        assert len(set(flat_of(found[0][1])) | set(flat_of(found[1][1]))) >= 0.9 * len(allowed), loading
    assert drawn(batch_size=8, sampler=SubsetRandomSampler(range(100))) == drawn(batch_size=8, sampler=SubsetRandomSampler(range(100)))

    mine, batches = drawn(batch_size=8)[0]  # The loader's default shuffle=False: samples are in the order of the data set.
    assert flat_of(batches)[:len(mine)] == sorted(mine)
    mine, batches = drawn(batch_size=8, sampler=Odd())[1]  # The order in which the sampler Odd draws samples is kept.
    mine = [i for i in range(199, 0, -2) if i in mine]
    assert flat_of(batches)[:len(mine)] == mine
    mine, batches = drawn(batch_size=8, shuffle=True)[0]
    assert flat_of(batches)[:len(mine)] != sorted(mine) and sorted(flat_of(batches)[:len(mine)]) == sorted(mine)
    heavy = [9.0] * 100 + [1.0] * 100
    for mine, batches in drawn(rounds=200, batch_size=8, sampler=WeightedRandomSampler(heavy, 200)):
        ids = flat_of(batches)
        share = sum(heavy[i] for i in mine if i < 100) / sum(heavy[i] for i in mine)
        assert abs(sum(i < 100 for i in ids) / len(ids) - share) < 0.05, (share, len(ids))
    for mine, batches in drawn(batch_sampler=BatchSampler(SequentialSampler(data), 7, True)):
        assert all(len(one) == 7 for one in batches) and set(flat_of(batches)) <= mine
    assert all(isinstance(one, int) for one in flat_of([[b] if isinstance(b, int) else b for b in drawn(batch_size=None)[0][1]]))

    class Own(DataLoader):
        def __iter__(self):
            return iter([])

    class Buckets(BatchSampler):
        pass

    class Stream(IterableDataset):
        def __iter__(self):
            return iter(range(9))

    refused("found a DistributedSampler", DataLoader(data, sampler=DistributedSampler(data, 2, 0)))
    refused("found the batch_sampler Buckets", DataLoader(data, batch_sampler=Buckets(SequentialSampler(data), 3, False)))
    refused("found a Own, which", Own(data, batch_size=3))
    refused("found an IterableDataset", DataLoader(Stream()))
    refused("found an IterableDataset", Stream())
    refused("found shuffle=False beside a DataLoader with the sampler SubsetRandomSampler", DataLoader(data, sampler=SubsetRandomSampler([1])), shuffle=False)
    refused("found 'a' drawn by the sampler list", DataLoader(data, sampler=["a"]))
    refused("found 200 drawn by the sampler list", DataLoader(data, sampler=[200]))
    refused("found no sample of this peer's", DataLoader(data, sampler=[]), kind=hearsay.UsageError)
    refused("beside a DataLoader without batches", DataLoader(data, batch_size=None), batch_size=3)
    for n in (0, -1, 2**70):
        refused("batch_size: found", data, kind=ValueError, batch_size=n)
    with alone(made()) as peer:
        batch = next(peer.shard(DataLoader(data, batch_size=4, sampler=RandomSampler(data, replacement=True, num_samples=50)), batch_size=16))
        assert len(batch[0]) == 16


def kept(directory, notes=None, make=lambda o: torch.optim.lr_scheduler.StepLR(o, 3), **more):
    """Makes a peer with checkpoints in a directory, its model, optimizer and scheduler."""
    keeping.SHARE = 1e9  # Collects the state in each round, even if this takes a large share of the time.
    model = made()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    scheduler = make(optimizer)
    told = (lambda level, text: notes.append(text)) if notes is not None else keeping_quiet
    peer = alone(model, optimizer, key=directory + "/key", out=directory + "/out", checkpoint="0.05", rounds=100000, on_note=told, **more)
    return model, optimizer, scheduler, peer


def keeping_quiet(level, text):
    pass


def kept_directory():
    directory = tempfile.mkdtemp()
    hearsay.keygen(directory + "/key")
    return directory


def steps(model, optimizer, scheduler, peer, n=60, each=lambda i: None):
    for i in range(n):
        optimizer.zero_grad()
        model(torch.randn(8, 6)).square().mean().backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        each(i)
        peer.step()
    peer.leave()


def check_keep():
    """A checkpoint restores the state of the optimizer, of the objects in `keep`, and of random number generators."""
    directory, box, draws = kept_directory(), {}, {}

    def keep():
        return {"box": (lambda: dict(box), box.update), **hearsay.RNG}

    def each(i):
        box["i"] = i
        state = keeping._rng_state()
        draws[i] = (random.random(), float(numpy.random.rand()), float(torch.rand(1)))
        keeping._set_rng_state(state)

    model, optimizer, scheduler, peer = kept(directory, keep=keep())
    assert peer.round == 0 and not optimizer.state
    steps(model, optimizer, scheduler, peer, each=each)
    before, box = box, {}
    again, optimizer2, scheduler2, peer2 = kept(directory, keep=keep())
    assert peer2.round > 0 and box["i"] > 0, (peer2.round, box)
    found = (random.random(), float(numpy.random.rand()), float(torch.rand(1)))
    assert found == draws[box["i"]], (found, draws[box["i"]])
    assert scheduler2.last_epoch == box["i"] + 1, (scheduler2.last_epoch, box)
    momentum = optimizer2.state[again.fc1.weight]["momentum_buffer"]
    assert momentum.shape == again.fc1.weight.shape and float(momentum.abs().max()) > 0
    peer2.leave()


def check_keep_scheduler():
    """A learning-rate scheduler that `keep` does not name is restored if it is the only one.

    In other cases a warning names the schedulers that start from the beginning.
    """
    def warned(notes, words):
        assert [text for text in notes if words in text], notes

    lr, notes = torch.optim.lr_scheduler, []
    directory = kept_directory()
    steps(*kept(directory, notes))
    assert not [text for text in notes if "keep" in text], notes
    *_, scheduler, peer = kept(directory, notes)
    assert scheduler.last_epoch > 0 and peer.round > 0 and not [text for text in notes if "keep" in text], (scheduler.last_epoch, notes)
    peer.leave()
    # A chained scheduler counts as one scheduler.
    directory = kept_directory()
    chain = (lambda o: lr.SequentialLR(o, [lr.ConstantLR(o, 0.1, 4), lr.ExponentialLR(o, 0.9)], [5]))
    steps(*kept(directory, notes, chain))
    *_, scheduler, peer = kept(directory, notes, chain)
    assert scheduler.last_epoch > 0 and not [text for text in notes if "keep" in text], (scheduler.last_epoch, notes)
    peer.leave()
    # Each restart differs from the first start: no scheduler, two schedulers, a scheduler that is made too late, or other
    # names in `keep`.
    del notes[:]
    kept(directory, notes, lambda o: None)[3].leave()
    warned(notes, "make the scheduler before the Peer")
    both = []
    kept(directory, notes, lambda o: both.extend([lr.StepLR(o, 3), lr.StepLR(o, 4)]))[3].leave()
    warned(notes, "found 2 learning-rate schedulers of the optimizer that it does not name (StepLR, StepLR)")
    kept(directory, notes, chain, keep=hearsay.RNG)[3].leave()
    warned(notes, "the checkpoint has no state of 'rng'")
    model, optimizer, _, peer = kept(kept_directory(), notes, lambda o: None)
    late = lr.StepLR(optimizer, 3)
    steps(model, optimizer, late, peer, 5)
    warned(notes, "the scheduler StepLR of the optimizer was made after the Peer")
    assert sum("after the Peer" in text for text in notes) == 1, notes
    # The checkpoint has no scheduler, but the restarted program has one.
    directory = kept_directory()
    steps(*kept(directory, notes, lambda o: None))
    kept(directory, notes)[3].leave()
    warned(notes, "the checkpoint has no state of the learning-rate scheduler")
    # A scheduler that `keep` names, directly or by functions, causes no warning. A peer without the option `out` stores nothing.
    del notes[:]
    made_one = []
    kept(kept_directory(), notes, lambda o: made_one.extend([lr.StepLR(o, 3), lr.StepLR(o, 4)]),
         keep={"a": Late(made_one, 0), "b": (lambda one=made_one: one[1].state_dict(), print)})[3].leave()
    with alone(made(), torch.optim.SGD(made().parameters(), 0.1), keep=hearsay.RNG, on_note=lambda level, text: notes.append(text)):
        warned(notes, "keep= has no effect without out=")


class Late:
    """An entry of `keep` whose functions look up the scheduler only when they are called."""

    def __init__(self, made_one, i):
        self.made_one, self.i = made_one, i

    def state_dict(self):
        return self.made_one[self.i].state_dict()

    def load_state_dict(self, state):
        self.made_one[self.i].load_state_dict(state)


def same(a, b):
    if isinstance(a, torch.Tensor):
        if not isinstance(b, torch.Tensor) or a.dtype != b.dtype or a.shape != b.shape:
            return False
        return torch.equal(*(x.detach().reshape(-1).contiguous().view(torch.uint8) for x in (a, b)))
    if isinstance(a, numpy.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, dict):
        return type(a) is type(b) and list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and (a == b or a != a)


def check_keep_format():
    """States of PyTorch's optimizers and schedulers are restored bit for bit. Any other state with a function is refused."""
    def round_trip(state):
        found = _state.load(_state.dump({"x": state}))["x"]
        assert same(state, found), (state, found)

    round_trip({"n": None, 1: [True, 2**70, -0.0, float("inf"), float("nan"), "\u00e9"], (1, "a"): {3, 4}, 2.5: b"\x00\xff", "c": 1j,
                "e": [torch.empty(0, 3), torch.tensor(2.0), torch.ones(2, 3).T, torch.ones(3).bfloat16() / 3, torch.zeros(2, dtype=torch.bool)],
                "a": [numpy.arange(6).reshape(2, 3), numpy.float64(0.1), numpy.uint32(7), numpy.array(["a", "bc"])], "t": (), "d": torch.float16,
                "s": torch.Size([2, 3]), "v": torch.device("cpu")})
    keeping._set_rng_state(_state.load(_state.dump({"x": keeping._rng_state()}))["x"])
    optimizers = [one for one in vars(torch.optim).values() if isinstance(one, type) and issubclass(one, torch.optim.Optimizer)
                  and one.__name__ not in ("Optimizer", "SparseAdam", "LBFGS", "Muon")]
    assert len(optimizers) > 8, optimizers
    for kind in optimizers:
        w = nn.Parameter(torch.ones(3, 2))
        optimizer = kind([w], lr=0.01)
        w.square().sum().backward()
        optimizer.step()
        round_trip(optimizer.state_dict())
    lr = torch.optim.lr_scheduler

    # A scheduler whose state contains functions. Its load_state_dict() fails if the functions are missing.
    class Shaped(lr.LambdaLR):
        def __init__(self, optimizer):
            self.shapes = {"state": 1}
            self.rise, self.fall = max, self.halved
            super().__init__(optimizer, self.halved)

        def halved(self, n):
            return 0.5**n

        def load_state_dict(self, state):
            assert state["rise"] is max and state["fall"](1) == 0.5, state
            super().load_state_dict(state)

    def stepped(optimizer, one):
        optimizer.step()
        one.step(1.0) if isinstance(one, lr.ReduceLROnPlateau) else one.step()
        return [(group["lr"], group["momentum"]) for group in optimizer.param_groups]

    def scheduled(make):
        optimizer = torch.optim.SGD([nn.Parameter(torch.ones(2))], lr=0.1, momentum=0.9)
        return optimizer, make(optimizer)

    for make in (lambda o: lr.MultiStepLR(o, [3, 3, 5]), lambda o: lr.OneCycleLR(o, 0.1, 10), lambda o: lr.CosineAnnealingWarmRestarts(o, 3),
                 lambda o: lr.OneCycleLR(o, 0.1, 10, anneal_strategy="linear"), lambda o: lr.CyclicLR(o, 0.05, 0.1, 3, mode="triangular2"),
                 lambda o: lr.CyclicLR(o, 0.05, 0.1, 3, scale_fn=lambda n: 0.5), lr.ReduceLROnPlateau, lambda o: lr.LambdaLR(o, lambda n: 0.9**n),
                 lambda o: lr.ChainedScheduler([lr.StepLR(o, 2), lr.ExponentialLR(o, 0.9)]), Shaped,
                 lambda o: lr.SequentialLR(o, [lr.ConstantLR(o, 0.5, 2), lr.OneCycleLR(o, 0.1, 20, cycle_momentum=False)], [3])):
        optimizer, one = scheduled(make)
        for _ in range(4):
            stepped(optimizer, one)
        state = keeping._accessors("x", one)[0]()
        round_trip(state)
        again, other = scheduled(make)
        again.load_state_dict(optimizer.state_dict())
        keeping._accessors("x", other)[1](_state.load(_state.dump({"x": state}))["x"])
        after = [[stepped(*pair) for _ in range(4)] for pair in ((optimizer, one), (again, other))]
        assert after[0] == after[1], (one, after)
    if hasattr(torch, "amp") and hasattr(torch.amp, "GradScaler"):
        round_trip(torch.amp.GradScaler("cpu").state_dict())
    for bad, words in ((print, "builtin_function_or_method"), (check_keep, "function check_keep"), (object(), "object"),
                       (torch.ones(2).to_sparse(), "sparse"), (torch.empty(2, device="meta"), "on meta"), (numpy.array([object()]), "array of object")):
        raises(TypeError, "keep: mine['a'][1]: found ", lambda: _state.dump({"mine": {"a": [0, bad]}}))
        raises(TypeError, words, lambda: _state.dump({"mine": {"a": [0, bad]}}))
    cycle = []
    cycle.append(cycle)
    raises(TypeError, "contains itself in mine", lambda: _state.dump({"mine": cycle}))
    conjugate = torch.tensor([1 + 2j]).conj()
    assert torch.equal(_state.load(_state.dump({"x": conjugate}))["x"], torch.tensor([1 - 2j])), "a conjugate is a view of other bytes"
    raises(TypeError, "keep: mine: found object", lambda: kept(kept_directory(), keep={"mine": (object, print)}))
    raises(TypeError, "state_dict()", lambda: kept(kept_directory(), keep={"mine": 3}))


def check_keep_old():
    """Checkpoints of an older version are pickles. Pickles that contain only data are read without running code.

    All other pickles are refused.
    """
    def saved(what, save=torch.save):
        out = io.BytesIO()
        save(what, out)
        return b"T" + out.getvalue()

    state = {"rng": {"random": random.getstate(), "numpy": numpy.random.get_state(), "torch": torch.get_rng_state()}, "o": {"a": [1, None]}}
    tensors = {"b": torch.ones(3).bfloat16(), "e": torch.zeros(0, 2), "p": nn.Parameter(torch.ones(2, 3).T), "d": torch.float16,
               "s": torch.Size([2]), "v": torch.device("cpu")}
    found = _state.load(saved(tensors))
    assert same(tensors, found), found
    torch_file = saved(state)
    del state["rng"]["torch"]
    for raw in (torch_file, b"P" + pickle.dumps(state, protocol=4)):
        found = _state.load(raw)
        assert found["o"] == {"a": [1, None]} and same(found["rng"]["numpy"], numpy.random.get_state()), found
    good = _state.dump({"a": torch.ones(3), "b": [1, {"c": 2}]})
    script = saved(torch.jit.script(nn.Linear(1, 1)), torch.jit.save)
    def h1(tensor):
        """Returns a state in the present format with one tensor: [type, shape, offset, bytes]."""
        header = json.dumps({"a": {"tensor": tensor}}).encode()
        return b"H1" + struct.pack("<Q", len(header)) + header + bytes(16)

    for raw in (h1(["quint8", [16], 0, 16]), h1(["float32", [-1], 0, 4]), b"P" + pickle.dumps({"a": Runs()}), saved({"a": Runs()}), saved({"a": nn.Linear(1, 1)}), script, b"T" + good, torch_file[:-9], b"", b"H1", b"X" + good, b"P", *(good[:n] for n in range(len(good))),
                good[:10] + b"\xff" * len(good)):
        raises(hearsay.UsageError, "cannot be read", lambda: _state.load(raw))


class Runs:
    def __reduce__(self):
        return exec, ("raise SystemExit('a checkpoint ran code')",)


def unseeded(rank, connect):
    """Trains without a seed. Returns the initial values that the peer drew, those that it got, and the final ones."""
    torch.manual_seed(100 + rank)
    model = Tied()
    drawn = flat(model).tolist()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    with connect(model, optimizer) as peer:
        given = flat(model).tolist()
        trained(model, peer, optimizer, rank)
    return drawn, given, flat(model).tolist(), peer.exit_code, peer.verdict


def check_unseeded():
    """Peers that draw different models begin with the model of rank 0, and reach a consensus."""
    found = hearsay.local(2, unseeded, rounds=30, compress="topk:0.2", topology="ring")
    assert found[0][0] != found[1][0], "the seeds differ"
    assert found[0][1] == found[0][0] and found[1][1] == found[0][0], found
    assert [one[3] for one in found] == [0, 0] and "consensus of 2 of 2" in found[0][4], found
    a, b = torch.tensor(found[0][2]), torch.tensor(found[1][2])
    assert float((a - b).norm() / a.norm()) < 1e-2, (a, b)
    # All peers have a bootstrap list with all peers, so any of them may provide the initial model.
    found = together(3, unseeded, rounds=5, compress="none")
    given = [one[1] for one in found]
    assert given[0] == given[1] == given[2] and given[0] in [one[0] for one in found], found


def check_torchrun():
    """One rank of torchrun. (python_peer.sh starts the ranks.)"""
    model = Tied()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    with hearsay.torchrun(model, optimizer, rounds=5, compress="none", timeout=120) as peer:
        trained(model, peer, optimizer, 1)
    assert peer.exit_code == 0 and "2 of 2" in peer.verdict, peer.verdict


def check_model():
    """With the option model=, names and shapes of the tensors must be those of hearsay's model."""
    from pytorch_models import model as textbook

    torch.manual_seed(1)
    net = textbook("lenet5", "batch", (1, 28, 28), 10, 1)
    with alone(net, model="lenet5", data="mnist", rounds=2) as peer:
        while not peer.over:
            peer.step()
    assert peer.exit_code == 0 and peer.figures().bytes_copied == 0 and "lenet5" in peer.run, peer.run
    raises(hearsay.UsageError, "conv1.weight", lambda: alone(made(), model="lenet5", data="mnist"))


def main():
    sys.path.insert(0, __file__.rpartition("/")[0] + "/..")
    checks = {name[6:]: f for name, f in globals().items() if name.startswith("check_")}
    if sys.argv[1:] == ["--list"]:
        for name, f in checks.items():
            print(name, f.__doc__.splitlines()[0])
        return
    checks[sys.argv[1]]()


if __name__ == "__main__":
    main()
