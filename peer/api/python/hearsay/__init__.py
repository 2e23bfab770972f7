"""hearsay: gossip-based decentralised training, for programs that bring their own model.

    Peer          takes part in a run with your model, of PyTorch or numpy
    local         starts several peers as processes on this machine
    torchrun      makes the peer of one rank (process) of a torchrun, Slurm or mpirun job
    simulate      runs many peers in this process, over a simulated network in virtual time
    codecs()      lists all codecs
    Codec         compresses a numpy array or a PyTorch tensor with one codec
    load          reads a model file: its tensors, and a function that turns raw data into inputs
    ddp_hook      compresses the gradients of PyTorch's DistributedDataParallel

Importing the package needs only libhearsay.so. numpy and PyTorch are imported when they are used.
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
library: str = lib.path  # Path of the libhearsay.so that is loaded.


def __getattr__(name: str) -> Any:
    """Imports ddp_hook only when the program uses it, because the module ddp imports PyTorch."""
    if name == "ddp_hook":
        from .ddp import ddp_hook
        return ddp_hook
    raise AttributeError(f"module 'hearsay' has no attribute {name!r}")
