#!/usr/bin/python3
"""Tests of hearsay.simulate(): python_simulate.py CHECK runs the function CHECK. Exits with 0, or with an error message."""
import hashlib
import os
import signal
import sys
import threading

sys.dont_write_bytecode = True
import hearsay  # noqa: E402
import numpy as np  # noqa: E402

RUN = dict(rounds=40, compress="qsgd:4", local_steps=2)


def train(rank, connect, **more):
    """Solves least squares on the peer's own rows. Returns a hash of its model, and the figures of the run."""
    rng = np.random.default_rng(100 + rank)
    model = hearsay.packed({"w": np.zeros((20, 3)), "b": np.zeros(3)})
    peer = connect(model, **more)
    target = np.arange(60).reshape(20, 3) / 60
    while not peer.over:
        x = rng.standard_normal((16, 20))
        e = x @ model["w"] + model["b"] - x @ target
        model["w"] -= (0.05 * x.T @ e / 16).astype(np.float32)
        model["b"] -= (0.05 * e.mean(0)).astype(np.float32)
        peer.step(float((e**2).mean()), 16)
    bits = hashlib.sha256(model["w"].tobytes() + model["b"].tobytes()).hexdigest()
    return bits, peer.figures().bytes_copied, peer.exit_code, float(abs(model["w"] - target).max())


def train_named(rank, connect):
    return train(rank, connect, name=f"peer-{rank}")


def twice():
    a = hearsay.simulate(64, train, topology="torus", **RUN)
    assert a == hearsay.simulate(64, train, topology="torus", **RUN), "two runs differ"
    for bits, copied, code, far in a:
        assert copied == 0, f"{copied} bytes were copied"
        assert code == 0, f"exit code {code}"
        assert far < 0.2, f"a weight is {far} off"


def cluster():
    a = hearsay.simulate(4, train, topology="ring", **RUN)
    b = hearsay.local(4, train_named, topology="ring", **RUN)
    assert [one[0] for one in a] == [one[0] for one in b], "processes have other bits"


def network():
    a = hearsay.simulate(5, train, topology="ring", final_drift=0, **RUN)
    b = hearsay.simulate(5, train, topology="ring", final_drift=0, network="latency-us=90000 bandwidth=2e4 step-us=1", **RUN)
    assert [one[0] for one in a] == [one[0] for one in b], "the network has changed models"
    drawn = [hearsay.simulate(5, train, topology="ring", final_drift=0, seed=seed, **dict(RUN, compress="randk:0.3"))[0][0]
             for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2], "what the run's seed draws is another"


def outer():
    """With the training loop of the program, the mean of the models follows the recursion of DiLoCo: u <- 0.9 u + D, and
    x <- x + 0.7 (D + 0.9 u)."""
    n, rounds, steps = 4, 20, 3
    optima = np.random.default_rng(3).standard_normal((n, 50))
    begun = np.zeros((rounds, n, 50))

    def walk(rank, connect):
        model = {"w": np.zeros(50, np.float32)}
        peer = connect(model)
        k = 0
        while not peer.over:
            if k % steps == 0:
                begun[k // steps, rank] = model["w"]
            model["w"] -= (0.05 * (model["w"] - optima[rank])).astype(np.float32)
            peer.step()
            k += 1
        return k, peer.exit_code

    for compress in "none", "qsgd:4", "topk:0.1":
        found = hearsay.simulate(n, walk, rounds=rounds, local_steps=steps, topology="ring", compress=compress, outer="nesterov:0.7:0.9")
        assert found == [(rounds * steps, 0)] * n, found
        x, u = np.zeros(50), np.zeros(50)
        for t in range(rounds):
            off = float(abs(begun[t].mean(0) - x).max())
            assert off <= 1e-5, f"{compress}, round {t}: the mean is {off} off"
            d = -(1 - 0.95**steps) * (x - optima.mean(0))
            u = 0.9 * u + d
            x = x + 0.7 * (d + 0.9 * u)
        assert float(abs(begun[-1]).max()) > 0.5, "the models did not move"


def held():
    """The consensus distance of 16-bit models is that of the rounded arrays in the program, which the test computes exactly."""
    models = {}

    def half(rank, connect):
        rng = np.random.default_rng(rank)
        models[rank] = model = {"w": np.random.default_rng(7).standard_normal(4000).astype(np.float16)}
        peer = connect(model)
        while not peer.over:
            model["w"] += (0.02 * rng.standard_normal(4000)).astype(np.float16)
            peer.step()
        verdict = peer.finish()
        return verdict, peer.relative_drift, peer.exit_code

    for options in (dict(topology="ring", compress="none"), dict(topology="ring", compress="topk:0.1"), dict(topology="base:1", compress="none"),
                    dict(topology="complete", compress="none", final_drift=1e-5)):
        for n in (2, 5):
            found = hearsay.simulate(n, half, rounds=8, **options)
            x = np.array([models[i]["w"].astype(float) for i in range(n)])
            mean = x.mean(0)
            exact = float(np.sqrt(((x - mean)**2).sum(1).mean()) / np.linalg.norm(mean))
            for verdict, said, code in found:
                most = said if "at most" in verdict else 1.3 * said + 1e-7
                assert code == 0 and exact <= most, f"{n} peers, {options}: '{verdict}', found {exact:.2e} in the arrays"
            assert exact <= options.get("final_drift", 1e-3), (options, exact)


def expect(kind, cause, words, n, program, **options):
    before = threading.active_count()
    try:
        hearsay.simulate(n, program, **options)
    except kind as error:
        assert words in str(error), f"found '{error}', expected '{words}' in it"
        assert cause is None or isinstance(error.__cause__, cause), f"its cause is {error.__cause__!r}"
    else:
        raise AssertionError("nothing was raised")
    assert threading.active_count() == before, "threads were left"


def raises():
    def fails(rank, connect):
        peer = connect(hearsay.packed({"w": np.zeros(3)}))
        while peer.step():
            if rank == 2 and peer.round == 5:
                raise ValueError("oops")

    expect(hearsay.SimulationError, ValueError, "peer 2: ValueError('oops')", 5, fails, rounds=1000000)


def raises_early():
    def fails(rank, connect):
        if rank == 1:
            raise KeyError("data")
        connect(hearsay.packed({"w": np.zeros(3)}))

    expect(hearsay.SimulationError, KeyError, "peer 1", 3, fails, rounds=3)


def option():
    expect(hearsay.SimulationError, hearsay.UsageError, "did you mean ring?", 3, train, rounds=3, topology="rnig")
    expect(hearsay.SimulationError, hearsay.UsageError, "expected NAME=NUMBER", 3, train, rounds=3, network="latency=3")
    expect(hearsay.SimulationError, hearsay.UsageError, "rounds: not given", 3, train)


def shapes():
    def differ(rank, connect):
        peer = connect(hearsay.packed({"w": np.zeros(5 + (rank == 1))}))
        while peer.step():
            pass

    expect(hearsay.SimulationError, hearsay.UsageError, "peer-1 and peer-0 have different runs: ", 3, differ, rounds=10)


def interrupt():
    """Ctrl-C ends all peers while they are busy."""
    def endless(rank, connect):
        peer = connect(hearsay.packed({"w": np.zeros(5)}))
        while peer.step():
            if rank == 2 and peer.round == 50:
                os.kill(os.getpid(), signal.SIGINT)

    before = threading.active_count()
    try:
        hearsay.simulate(4, endless, rounds=100000000)
    except KeyboardInterrupt:
        pass
    else:
        raise AssertionError("nothing was raised")
    assert threading.active_count() == before, "threads were left"


def without():
    expect(hearsay.SimulationError, None, "connect()", 3, lambda rank, connect: None, rounds=3)
    for absent in range(3):
        def leaves_out(rank, connect):
            if rank != absent:
                connect(hearsay.packed({"w": np.zeros(3)}))

        expect(hearsay.SimulationError, None, f"peer {absent}: it returned without connect()", 3, leaves_out, rounds=3)


if __name__ == "__main__":
    try:
        globals()[sys.argv[1]]()
    except AssertionError as error:
        sys.exit(f"{sys.argv[1]}: {error}")
