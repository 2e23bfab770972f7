"""The parts of tests/e2e/python_codec.sh that are written in Python: python_codec.py PART [ARGUMENT...]

Each part is a function below. The function raises an exception if a check fails.
"""
import array
import ctypes
import pickle
import sys
import threading

import hearsay
from hearsay import _lib

N = 5000


def raises(kind, words, call):
    try:
        call()
    except kind as error:
        assert words in str(error), f"expected a sentence with {words!r}, found {error}"
        return
    raise AssertionError(f"nothing was raised, expected {kind.__name__} with {words!r}")


def declared(path):
    """Checks that the Python binding declares the same functions as the header hearsay.h."""
    with open(path) as f:
        names = set(f.read().split())
    assert names == set(_lib.SIGNATURES), names ^ set(_lib.SIGNATURES)


STRUCTS = dict(did=_lib.Did, score=_lib.Score, layer=_lib.Layer, option=_lib.Option)
NAMES = ("OK OVER TIMEOUT INTERRUPTED USAGE SYSTEM NOT_FINITE CALLBACK FORKED FLOAT32 FLOAT16 BFLOAT16 TRAINED STATISTIC "
         "VARIANCE DIMS_MAX NAME_MAX CODEC_ERROR_MAX API").split()


def layout_program():
    """Prints a C program that prints the layout of the header's structs, and the values of its constants."""
    print("#include <hearsay.h>\n#include <stdio.h>\nint main(void)\n{")
    for one, struct in STRUCTS.items():
        print(f'    printf("{one} %zu\\n", sizeof(struct hearsay_{one}));')
        for name, *_ in struct._fields_:
            print(f'    printf("{one}.{name} %zu %zu\\n", offsetof(struct hearsay_{one}, {name}), '
                  f"sizeof ((struct hearsay_{one} *)0)->{name});")
    for name in NAMES:
        print(f'    printf("{name} %d\\n", (int)HEARSAY_{name});')
    print("    return 0;\n}")


def layout(path):
    """Checks that structs and constants of the Python binding equal those that the C program of layout_program() printed."""
    expected = []
    for one, struct in STRUCTS.items():
        expected.append(f"{one} {ctypes.sizeof(struct)}")
        fields = [(name, getattr(struct, name)) for name, *_ in struct._fields_]
        expected += [f"{one}.{name} {field.offset} {field.size}" for name, field in fields]
    expected += [f"{name} {getattr(_lib, name)}" for name in NAMES]
    with open(path) as f:
        found = f.read().splitlines()
    assert found == expected, [pair for pair in zip(found, expected) if pair[0] != pair[1]]


def bare():
    """Checks that codecs work with array.array if numpy and PyTorch are missing."""
    assert "numpy" not in sys.modules and "torch" not in sys.modules
    sys.modules["numpy"] = sys.modules["torch"] = None
    codec = hearsay.Codec("topk:0.5", 4)
    out = codec.decode(codec.encode(array.array("f", [1, -3, 4, 0])))
    assert list(out) == [0, -3, 4, 0] and isinstance(out, array.array)


def numpy():
    """Checks each codec: adding the message to the replica gives the vector, up to the relative error that encode() reports
    in `left`."""
    import numpy as np
    rng = np.random.default_rng(1)
    known = hearsay.codecs()
    assert len(known) > 20 and all(one.about for one in known)
    for preset, _ in known:
        codec, other = hearsay.Codec(preset, [(50, 100)]), hearsay.Codec(preset, {"fc.weight": (50, 100)})
        x_hat = np.zeros((50, 100), np.float32)
        for round in range(3):
            x = rng.standard_normal((50, 100)).astype(np.float32)
            before = x - x_hat
            message = codec.encode(x, x_hat, seed=5, round=round)
            assert message == other.encode(x, x_hat, seed=5, round=round), preset
            assert len(message) <= codec.bound and other.check(message), preset
            assert np.array_equal(codec.decode(message), other.decode(message)), preset
            other.add(message, x_hat)
            left = ((x - x_hat).astype(float) ** 2).sum() / (before.astype(float) ** 2).sum()
            assert abs(left - codec.left) <= 1e-4 * (left + 1e-3), (preset, left, codec.left)
        assert codec.spec == preset and codec.floats == N


def refusals():
    import numpy as np
    x = np.zeros(N, np.float32)
    codec = hearsay.Codec("qsgd:4", N)
    good = codec.encode(x + 1)
    fixed = x.copy()
    fixed.flags.writeable = False
    assert codec.encode(fixed + 1) == good and isinstance(codec.encode(fixed), bytes)
    raises(TypeError, "found dtype float64, expected float32", lambda: codec.encode(x.astype(float)))
    raises(TypeError, "expected float32", lambda: codec.encode(x.astype(x.dtype.newbyteorder())))
    raises(ValueError, "expected a contiguous array", lambda: codec.encode(np.zeros(2 * N, np.float32)[::2]))
    raises(ValueError, "found 4999 values, expected 5000", lambda: codec.encode(x[1:]))
    raises(ValueError, "x_hat: found 4999 values", lambda: codec.encode(x, x[1:]))
    raises(ValueError, "read-only", lambda: codec.add(good, fixed))
    raises(TypeError, "found list", lambda: codec.encode([0.0] * N))
    raises(TypeError, "format 'B'", lambda: codec.encode(bytearray(4 * N)))
    raises(ValueError, "found 4 values", lambda: codec.encode(array.array("f", [0] * 4)))
    raises(ValueError, "seed: found -1", lambda: codec.encode(x, seed=-1))
    raises(ValueError, "round: found", lambda: codec.encode(x, round=1 << 64))
    raises(hearsay.NotFiniteError, "not finite", lambda: codec.encode(x + np.nan))
    for bad in (b"", good[:-1], good + b"\0", b"\2" + good[1:]):
        assert not codec.check(bad)
        raises(hearsay.UsageError, "no message of qsgd:4:512:max for 5000 values", lambda: codec.add(bad, x))
        assert not x.any()
    raises(hearsay.UsageError, "unknown compressor", lambda: hearsay.Codec("tpok:0.01", N))
    raises(ValueError, "topk:2", lambda: hearsay.Codec("topk:2", N))
    raises(hearsay.HearsayError, "no layer", lambda: hearsay.Codec("none", []))
    raises(hearsay.UsageError, "(3, 0)", lambda: hearsay.Codec("none", [(3, 0)]))
    raises(hearsay.UsageError, "longer than 4294967295", lambda: hearsay.Codec("none", [(1 << 31, 4)]))
    raises(TypeError, "pickled", lambda: pickle.dumps(codec))


def threads():
    """Checks that four threads can share one codec: each message equals the message of a single thread."""
    import numpy as np
    codec = hearsay.Codec("randk:0.1+qsgd:4", 100 * N)
    x = np.random.default_rng(2).standard_normal(100 * N).astype(np.float32)
    expected = [codec.encode(x, seed=i) for i in range(4)]
    wrong = []

    def work(i):
        for _ in range(30):
            if codec.encode(x, seed=i) != expected[i] or not codec.check(expected[i]):
                wrong.append(i)
    workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    assert not wrong, wrong


def torch():
    import numpy as np
    import torch
    codec = hearsay.Codec("topk:0.1", [(50, 100)])
    x = torch.randn(50, 100, generator=torch.Generator().manual_seed(3))
    message = codec.encode(x)
    assert message == codec.encode(x.numpy())
    parameter = torch.nn.Parameter(torch.zeros(50, 100))
    codec.add(message, parameter)
    assert np.array_equal(parameter.detach().numpy().ravel(), codec.decode(message))
    raises(TypeError, "found torch.float16, expected torch.float32", lambda: codec.encode(x.half()))
    raises(ValueError, "contiguous", lambda: codec.encode(x.t()))
    raises(ValueError, "found 4900 values, expected 5000", lambda: codec.encode(x[1:]))
    raises(TypeError, "expected a dense one on cpu", lambda: codec.encode(x.to("meta")))
    raises(TypeError, "expected a dense one on cpu", lambda: codec.encode(x.to_sparse()))
    raises(ValueError, "negated", lambda: codec.encode(torch._neg_view(x)))


PARTS = dict(declared=declared, layout_program=layout_program, layout=layout, bare=bare, numpy=numpy, refusals=refusals,
             threads=threads, torch=torch)

if __name__ == "__main__":
    PARTS[sys.argv[1]](*sys.argv[2:])
