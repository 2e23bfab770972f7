"""truth_tasks.py -- the tasks of tests/bench/truth, their codecs, and the reduced data sets.

A task is a model, data, a number of peers and a number of local steps. A run adds a codec, the number H of local steps
between exchanges, and a seed. The number of rounds is steps / H. The amount of computing is therefore the same for
every H, and bytes decrease with H.

Published figures of these models take days. Here the data are reduced so that a run without compression takes one or two
minutes on a slow core: fewer training images, one to ten passes over them, a small transformer and a small LSTM.
VGG-11, which takes longest, has the batch size doubled, because each round moves 9 million parameters. At the end,
training has made much progress but has not converged. The table compares codecs at equal computing, and not models with
the best published ones. A reduced data set has the format of the whole set, so the program reads it as any other.

Test sets are not reduced. But all peers are evaluated on the first `glance` test images only, and the worst of them on
all test images. The models of the peers are nearly equal, and evaluating each on the whole set would cost as much as
the training.
"""
import dataclasses
import gzip
import os
import shutil
import zlib

DENSE = "none"
CODECS = (DENSE, "fp16", "qsgd:4", "sign", "tern", "topk:0.1+qsgd:4", "topk:0.05+qsgd:4", "topk:0.03+qsgd:4",
          "topk:0.01+qsgd:4", "lowrank:2", "auto")
LOCAL_STEPS = (1, 4, 10)
SEEDS = (1, 2)
# The number of local steps of a task is a multiple of this number. Every number of local steps per round divides this
# number.
STEPS_UNIT = 20
# Steps of the warm-up, at most a tenth of all steps. With H = 1, this number of steps is the program's default.
WARMUP = 100


@dataclasses.dataclass(frozen=True)
class Task:
    name: str
    title: str
    data: str  # Name of the data set's folder in the directory DATA.
    kind: str  # Kind of data, for --data.
    samples: int  # Number of training samples that are kept. 0: all.
    peers: int
    batch: int
    steps: int  # Number of local steps of each peer.
    # Seconds of a run without compression on one core of 2.5 GHz: the first estimate of the remaining time.
    seconds: float
    flags: str
    glance: int = 0  # Number of test images on which all peers are evaluated. 0: all.
    text: bool = False

    def steps_at(self, effort):
        return max(STEPS_UNIT, round(self.steps * effort / STEPS_UNIT) * STEPS_UNIT)


CIFAR = "--augment crop+flip --weight-decay"
TASKS = (
    Task("mnist-lenet5", "LeNet-5 on MNIST, 10,000 images, 8 peers in a ring", "mnist", "mnist", 10000, 8, 32, 400, 10,
         "--model lenet5 --lr 0.05", glance=1000),
    Task("cifar-resnet20", "ResNet-20 with batch norm on CIFAR-10, 10,000 images, 4 peers in a ring", "cifar-10",
         "cifar10", 10000, 4, 16, 800, 170, f"--model resnet:20 --lr 0.1 {CIFAR} 1e-4", glance=500),
    Task("cifar-resnet20-group", "ResNet-20 with group norm on CIFAR-10, 10,000 images, 4 peers in a ring", "cifar-10",
         "cifar10", 10000, 4, 16, 360, 88, f"--model resnet:20 --norm group --lr 0.05 {CIFAR} 1e-4", glance=500),
    Task("cifar-vgg11", "VGG-11 with batch norm on CIFAR-10, 5,000 images, 4 peers in a ring", "cifar-10", "cifar10",
         5000, 4, 32, 60, 140, f"--model vgg11:bn --lr 0.02 {CIFAR} 5e-4", glance=500),
    Task("text-gpt", "Transformer of 2 blocks of width 64 on Shakespeare, 4 peers in a ring", "tinyshakespeare",
         "text", 0, 4, 4, 1000, 45, "--model gpt:2x64 --optimiser adamw --lr 0.004", text=True),
    Task("text-lstm", "LSTM of width 128 on Shakespeare, 4 peers in a ring", "tinyshakespeare", "text",
         0, 4, 8, 600, 55, "--model lstm:128 --optimiser adamw --lr 0.006", text=True),
)
BY_NAME = {t.name: t for t in TASKS}


# ---- Cutting. ----

class Missing(Exception):
    """A data set does not exist, or does not have the format that its name says."""


def contents(folder, name):
    """Returns the bytes of a file, which may be compressed by gzip."""
    for path, how in ((os.path.join(folder, name + ".gz"), gzip.open), (os.path.join(folder, name), open)):
        if os.path.exists(path):
            try:
                with how(path, "rb") as f:
                    return f.read()
            except (OSError, EOFError, zlib.error) as e:
                raise Missing(f"{path}: {e}") from e
    raise Missing(f"there is no {os.path.join(folder, name)} and no {name}.gz")


def pack(folder, name, data):
    """Writes a .gz file. Equal data give equal files."""
    with open(os.path.join(folder, name + ".gz"), "wb") as f, gzip.GzipFile("", "wb", 6, f, 0) as z:
        z.write(data)


def idx_cut(data, n):
    """Returns the first n entries of an IDX file. The format is: two zero bytes, the type (unsigned bytes), the
    number of dimensions, and each dimension as four bytes, the number of entries first."""
    shape = [int.from_bytes(data[4 + 4 * i:8 + 4 * i], "big") for i in range(data[3])]
    n = min(n, shape[0])
    size = 1
    for d in shape[1:]:
        size *= d
    head = 4 + 4 * len(shape)
    return data[:4] + n.to_bytes(4, "big") + data[8:head] + data[head:head + n * size]


CIFAR_RECORD = 1 + 3 * 32 * 32  # Bytes of a CIFAR-10 record: label, then the planes of red, green and blue.


def cut_mnist(source, out, samples, glance):
    for stem, n in (("train", samples), ("t10k", glance)):
        for part in ("images-idx3-ubyte", "labels-idx1-ubyte"):
            data = contents(source, f"{stem}-{part}")
            if data[:3] != b"\0\0\x08":
                raise Missing(f"{os.path.join(source, f'{stem}-{part}')} is no IDX file of unsigned bytes")
            pack(out, f"{stem}-{part}", idx_cut(data, n) if n else data)


def cut_cifar10(source, out, samples, glance):
    """Writes the first records of the batch files, in the order of the numbers of the files."""
    left = samples or 50000
    for i in range(1, 6):
        if left > 0:
            data = contents(source, f"data_batch_{i}.bin")[:left * CIFAR_RECORD]
            pack(out, f"data_batch_{i}.bin", data)
            left -= len(data) // CIFAR_RECORD
    test = contents(source, "test_batch.bin")
    pack(out, "test_batch.bin", test[:glance * CIFAR_RECORD] if glance else test)


CUT = {"mnist": cut_mnist, "cifar10": cut_cifar10}


def prepare(task, root, out):
    """Makes the reduced data sets of a task in `out` if they do not exist. Returns the --data values for training
    and for evaluation. Raises Missing."""
    source = os.path.join(root, task.data)
    if task.kind == "text":
        path = os.path.join(source, "input.txt")
        if not os.path.isfile(path):
            raise Missing(f"there is no {path}")
        return (f"text:{path}",) * 2
    if not os.path.isdir(source):
        raise Missing(f"there is no {source}")

    def cut(glance):
        name = f"{task.data}-{task.samples or 'all'}-{glance or 'all'}"
        final, scratch = os.path.join(out, name), os.path.join(out, f"{name}.{os.getpid()}")
        if not os.path.isdir(final):
            os.makedirs(scratch)
            try:
                CUT[task.kind](source, scratch, task.samples, glance)
                os.rename(scratch, final)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
        return f"{task.kind}:{final}"
    return cut(task.glance), cut(0)
