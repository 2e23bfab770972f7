#!/usr/bin/python3
"""hearsay.Peer with PyTorch, by what a program sees of it: python_peer_torch.py CHECK."""
import gc
import sys
import tempfile
import threading

sys.dont_write_bytecode = True
import hearsay  # noqa: E402
import numpy  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from hearsay import _model, keeping  # noqa: E402
from python_peer import alone, raises, together  # noqa: E402
from torch import nn  # noqa: E402

torch.set_num_threads(1)


class Tied(nn.Module):
    """Tied weights, batch statistics, a mask that is not saved, and an integer."""

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
    with lock:  # The seed is the process's.
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
    """Parameters stay the objects that they were, as views of one buffer that the library works on: nothing is copied."""
    def train(rank, connect):
        model = made()
        before = {k: t.clone() for k, t in model.state_dict().items()}
        objects = [id(p) for p in model.parameters()] + [id(b) for b in model.buffers()]
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        peer = connect(model, optimizer)
        assert objects == [id(p) for p in model.parameters()] + [id(b) for b in model.buffers()]
        assert all(torch.equal(t, before[k]) for k, t in model.state_dict().items())
        names = [i.name for i in peer._model.items]
        assert names == ["fc1.weight", "bn.weight", "bn.bias", "scale", "bn.running_mean", "bn.running_var"], names
        at = peer._model.flat.ctypes.data
        assert at % 64 == 0
        for i in peer._model.items:
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
        model(torch.randn(8, 6)).sum().backward()  # It is a model like any other.
        optimizer.step()
        return final

    a, b = together(2, train, rounds=20, compress="none", topology="complete")
    assert float((a - b).norm() / a.norm()) < 2e-3
    assert not torch.equal(a, flat(made()))


def check_staged():
    """A model on another device has a twin on the CPU: here the CPU itself stands for it."""
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
    """Tensors of 16 bits are trained where they are, beside float32 ones."""
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
    """In eval mode and without gradients; modes are as before afterwards, of each module its own."""
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
    """A model that lies elsewhere is refused, instead of being trained beside the one that is exchanged."""
    model = made()
    peer = alone(model)
    model.fc1.weight.data = model.fc1.weight.data.clone()
    raises(hearsay.UsageError, "lies elsewhere", peer.step)
    peer.leave()
    raises(TypeError, "float64", lambda: alone(made().double()))
    raises(TypeError, "buffers", lambda: alone(made(), buffers={}))


def check_replaced():
    """A layer, a parameter or an array that the library was not told of would never be mixed."""
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

    for change in (layer, parameter, buffer, more, normed):
        model = nn.Sequential()
        model.add_module("fc1", nn.Linear(6, 4))
        model.add_module("fc2", nn.Linear(4, 6))
        model.add_module("bn", nn.BatchNorm1d(4))
        with alone(model) as peer:
            assert peer.step()
            change(model)
            raises(hearsay.UsageError, "or has other parts", peer.step)
    arrays = {"w": numpy.ones(3, numpy.float32)}
    with alone(arrays) as peer:
        arrays["w"] = arrays["w"] - 1
        raises(hearsay.UsageError, "or has other parts", peer.step)


def check_skip():
    """What is left out stays each peer's own."""
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
    """A DataLoader whose workers are forked: batches are of the share, and the peer is unharmed."""
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


def check_keep():
    """A checkpoint has the optimizer's state, and what else was named, and gives it back."""
    directory = tempfile.mkdtemp()
    key = hearsay.keygen(directory + "/key")
    keeping.SHARE = 1e9  # In each round, however long the first takes on a busy machine.

    def begin():
        model = made()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3)
        box = {}
        peer = alone(model, optimizer, key=key, out=directory + "/out", checkpoint="0.05", rounds=100000,
                     keep={"scheduler": scheduler, "box": (lambda: dict(box), box.update), **hearsay.RNG})
        return model, optimizer, scheduler, box, peer

    model, optimizer, scheduler, box, peer = begin()
    assert peer.round == 0 and not optimizer.state
    for i in range(60):
        optimizer.zero_grad()
        model(torch.randn(8, 6)).square().mean().backward()
        optimizer.step()
        scheduler.step()
        box["i"] = i
        peer.step()
    peer.leave()
    again, optimizer2, scheduler2, box2, peer2 = begin()
    assert peer2.round > 0 and box2["i"] > 0, (peer2.round, box2)
    assert scheduler2.last_epoch == box2["i"] + 1, (scheduler2.last_epoch, box2)
    momentum = optimizer2.state[again.fc1.weight]["momentum_buffer"]
    assert momentum.shape == again.fc1.weight.shape and float(momentum.abs().max()) > 0
    peer2.leave()


def unseeded(rank, connect):
    """Without a seed: what it drew, what it was given, and what came of it."""
    torch.manual_seed(100 + rank)
    model = Tied()
    drawn = flat(model).tolist()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    with connect(model, optimizer) as peer:
        given = flat(model).tolist()
        trained(model, peer, optimizer, rank)
    return drawn, given, flat(model).tolist(), peer.exit_code, peer.verdict


def check_unseeded():
    """Peers that draw different models begin with rank 0's, and train to a consensus."""
    found = hearsay.local(2, unseeded, rounds=30, compress="topk:0.2", topology="ring")
    assert found[0][0] != found[1][0], "the seeds differ"
    assert found[0][1] == found[0][0] and found[1][1] == found[0][0], found
    assert [one[3] for one in found] == [0, 0] and "consensus of 2 of 2" in found[0][4], found
    a, b = torch.tensor(found[0][2]), torch.tensor(found[1][2])
    assert float((a - b).norm() / a.norm()) < 1e-2, (a, b)
    # Everybody names all: one of them gives its model.
    found = together(3, unseeded, rounds=5, compress="none")
    given = [one[1] for one in found]
    assert given[0] == given[1] == given[2] and given[0] in [one[0] for one in found], found


def check_torchrun():
    """A rank of torchrun. (Called by one.)"""
    model = Tied()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    with hearsay.torchrun(model, optimizer, rounds=5, compress="none", timeout=120) as peer:
        trained(model, peer, optimizer, 1)
    assert peer.exit_code == 0 and "2 of 2" in peer.verdict, peer.verdict


def check_model():
    """With option model= the tensors have to be those of ours, by name and shape."""
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
