"""hearsay: gossip-based decentralised training, for programs that bring their own model.

    Peer          takes part in a run, with a model of yours: PyTorch's, or numpy's
    local         several of them as processes on this machine; torchrun: as ranks of a job
    simulate      many of them in this process, over a simulated network in virtual time
    codecs()      the catalogue of compressors
    Codec         one of them, on a numpy array or a PyTorch tensor of yours
    load          reads a model file: its tensors, and a function that turns raw data into inputs
    ddp_hook      compresses the gradients of PyTorch's DistributedDataParallel

Importing needs libhearsay.so and nothing else: numpy and PyTorch are asked for when they are used.
"""
from typing import Any

from ._lib import CallbackError, ForkedError, HearsayError, NotFiniteError, ResourceError, UsageError, lib
from ._model import packed
from .codec import Codec, CodecInfo, codecs
from .figures import Figures
from .final import Results
from .keeping import RNG
from .load import Loaded, load
from .launch import LocalError, from_env, keygen, local, torchrun
from .peer import Peer
from .simulate import SimulationError, simulate

__all__ = ["Peer", "Figures", "Results", "local", "LocalError", "torchrun", "from_env", "simulate", "SimulationError", "keygen",
           "packed", "RNG", "load", "Loaded", "Codec", "CodecInfo", "codecs", "ddp_hook", "HearsayError", "UsageError", "ResourceError",
           "NotFiniteError", "CallbackError", "ForkedError", "library"]
__version__: str = lib.hearsay_version().decode()
library: str = lib.path  # Which libhearsay.so this is.


def __getattr__(name: str) -> Any:
    """ddp_hook, with which PyTorch comes."""
    if name == "ddp_hook":
        from .ddp import ddp_hook
        return ddp_hook
    raise AttributeError(f"module 'hearsay' has no attribute {name!r}")
