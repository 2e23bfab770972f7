"""truth_tasks.py -- what tests/bench/truth trains: the tasks, the codecs, and the cut-down data sets.

A task fixes the model, the data, the peers and the number of local steps; a run of it adds a codec, the
local steps between exchanges (H) and a seed. Rounds are steps / H: for every H the same computing is
done, and bytes fall with H.

The sets are cut so that one dense run takes a minute or two of one slow core, where the published
figures of these models take days: fewer training images, one to ten passes over them (VGG-11, the dearest,
has its batch doubled, since every round moves 9 million parameters), a small transformer and a small LSTM.
Learning is well under way at the end, not over. What the table compares is codecs at equal computing, not
models with the state of the art. A cut set keeps the format of the whole one, so that the program reads it
as any other.

Test sets are whole. But all peers are looked at on the first `glance` test images only, and the one
that does worst there is then evaluated on all of them: the peers hold the same model but for the drift,
so that evaluating each on the whole set would cost as much as the training and say nothing new.
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
STEPS_UNIT = 20  # Of a task's steps: what every number of local steps above divides.
WARMUP = 100  # Local steps, and at most a tenth of all: what the program itself takes where H is 1.


@dataclasses.dataclass(frozen=True)
class Task:
    name: str
    title: str
    data: str  # Folder below DATA.
    kind: str  # Of --data.
    samples: int  # Kept of the training set; 0: all.
    peers: int
    batch: int
    steps: int  # Local steps of each peer.
    seconds: float  # Of a dense run on one core of 2.5 GHz: the first guess of what a grid takes.
    flags: str
    glance: int = 0  # Test images on which all peers are looked at; 0: all.
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
    """A set that is not there, or is not what its name says."""


def contents(folder, name):
    """A file's bytes, be it packed or not."""
    for path, how in ((os.path.join(folder, name + ".gz"), gzip.open), (os.path.join(folder, name), open)):
        if os.path.exists(path):
            try:
                with how(path, "rb") as f:
                    return f.read()
            except (OSError, EOFError, zlib.error) as e:
                raise Missing(f"{path}: {e}") from e
    raise Missing(f"there is no {os.path.join(folder, name)} and no {name}.gz")


def pack(folder, name, data):
    """Writes a .gz that is the same bytes each time."""
    with open(os.path.join(folder, name + ".gz"), "wb") as f, gzip.GzipFile("", "wb", 6, f, 0) as z:
        z.write(data)


def idx_cut(data, n):
    """The first n entries of an IDX file: two zero bytes, the type (unsigned bytes), the number of dimensions, then
    each dimension as four bytes, the entries' number first."""
    shape = [int.from_bytes(data[4 + 4 * i:8 + 4 * i], "big") for i in range(data[3])]
    n = min(n, shape[0])
    size = 1
    for d in shape[1:]:
        size *= d
    head = 4 + 4 * len(shape)
    return data[:4] + n.to_bytes(4, "big") + data[8:head] + data[head:head + n * size]


CIFAR_RECORD = 1 + 3 * 32 * 32  # Label, then planes of red, green and blue.


def cut_mnist(source, out, samples, glance):
    for stem, n in (("train", samples), ("t10k", glance)):
        for part in ("images-idx3-ubyte", "labels-idx1-ubyte"):
            data = contents(source, f"{stem}-{part}")
            if data[:3] != b"\0\0\x08":
                raise Missing(f"{os.path.join(source, f'{stem}-{part}')} is no IDX file of unsigned bytes")
            pack(out, f"{stem}-{part}", idx_cut(data, n) if n else data)


def cut_cifar10(source, out, samples, glance):
    """The first records, taken from the batches in turn as they are numbered."""
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
    """Makes the task's sets below `out` where they are not yet there. Returns the --data of training and that of the
    evaluation afterwards. Raises Missing."""
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
