"""A program's model as tensors of libhearsay: which ones there are, and where they lie.

    PyTorch, float32, CPU     | conv.weight | conv.bias | ... | bn.running_mean | ... |   one flat buffer
                                    ^ param.data is a view: the library works in place, nothing is copied
    PyTorch, 16 bits, CPU     where they are
    PyTorch, on a GPU         a twin on the CPU, written before and read after each exchange
    numpy                     where they are; packed() lays them one behind the other

Parameters keep being the same objects, so that optimizers and hooks know them. The flat buffer belongs to
the views: it lives for as long as one of them does.
"""
import ctypes
import fnmatch
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from . import _lib
from ._lib import UsageError, lib

ALIGN = 64  # Bytes: a cache line, and the widest vector registers.
NUMPY_TYPES = {"float32": _lib.FLOAT32, "float16": _lib.FLOAT16}
TORCH_TYPES = {"torch.float32": _lib.FLOAT32, "torch.float16": _lib.FLOAT16, "torch.bfloat16": _lib.BFLOAT16}


class Item(NamedTuple):
    """One tensor as the library is told of it: `host` is the memory, of `owner` (the model's own tensor)."""

    name: str
    role: int
    owner: Any
    host: Any


def _is_torch(x: Any) -> bool:
    return type(x).__module__.partition(".")[0] == "torch" or hasattr(x, "data_ptr")


def _aligned(n: int) -> Any:
    """n float32 as numpy's, at a multiple of ALIGN bytes."""
    import numpy

    room = numpy.zeros(4 * n + ALIGN, numpy.uint8)
    skip = -room.ctypes.data % ALIGN
    return room[skip:skip + 4 * n].view(numpy.float32)


def packed(arrays: Mapping[str, Any]) -> Dict[str, Any]:
    """Copies of these arrays as float32, one behind the other in one buffer: a model on which the library works in place.

    Train what this returns: `model = hearsay.packed({"w": numpy.zeros((784, 10)), "b": numpy.zeros(10)})`.
    """
    import numpy

    flat = _aligned(sum(int(numpy.asarray(a).size) for a in arrays.values()))
    out: Dict[str, Any] = {}
    at = 0
    for name, a in arrays.items():
        a = numpy.asarray(a)
        out[name] = flat[at:at + a.size].reshape(a.shape)
        out[name][...] = a
        at += a.size
    return out


# ---- which tensors -------------------------------------------------------------


def _role(name: str) -> int:
    """Of a buffer: variances must not become negative."""
    last = name.rpartition(".")[2]
    return _lib.VARIANCE if last == "running_var" or last.endswith("variance") else _lib.STATISTIC


def _named_of_module(module: Any) -> List[Tuple[str, int, Any]]:
    """Parameters once each, tied ones by their first name; of the buffers those that are floats and are saved."""
    saved = set(module.state_dict().keys())
    named = [(name, _lib.TRAINED, p) for name, p in module.named_parameters()]
    seen = {id(p) for _, _, p in named}
    for name, b in module.named_buffers():
        if name in saved and id(b) not in seen and b.is_floating_point():
            seen.add(id(b))
            named.append((name, _role(name), b))
    return named


def _named(model: Any, buffers: Optional[Mapping[str, Any]]) -> List[Tuple[str, int, Any]]:
    if hasattr(model, "named_parameters"):
        if buffers is not None:
            raise TypeError("buffers: found some beside a torch module, which has its own; expected None")
        return _named_of_module(model)
    if not isinstance(model, Mapping):
        raise TypeError(f"model: found {type(model).__name__}, expected a torch.nn.Module or a dict of name -> array")
    return ([(name, _lib.TRAINED, a) for name, a in model.items()]
            + [(name, _role(name), a) for name, a in (buffers or {}).items()])


def _check(name: str, x: Any) -> None:
    if _is_torch(x):
        if "Uninitialized" in type(x).__name__ or x.device.type == "meta":
            raise UsageError(f"tensor {name}: found one without values, expected a model that is initialised")
        if str(x.layout) != "torch.strided":
            raise TypeError(f"tensor {name}: found layout {x.layout}, expected a dense one")
        found, types = str(x.dtype), TORCH_TYPES
    else:
        if not hasattr(x, "__array_interface__") or not hasattr(x, "flags"):
            raise TypeError(f"tensor {name}: found {type(x).__name__}, expected a numpy array or a torch tensor")
        if not x.flags["C_CONTIGUOUS"] or not x.flags["WRITEABLE"]:
            raise UsageError(f"tensor {name}: found an array that is not contiguous, or is read-only, expected one that "
                             "can be trained in place (hearsay.packed())")
        found, types = str(x.dtype), NUMPY_TYPES
    if found not in types:
        raise TypeError(f"tensor {name}: found {found}, expected one of {', '.join(types)}")


def _on_gpu(x: Any) -> bool:
    return bool(x.device.type != "cpu")


def _holders(model: Any, buffers: Optional[Mapping[str, Any]],
             ids: Set[int]) -> Tuple[List[Tuple[Any, Any, Any]], List[Tuple[Any, int]]]:
    """Who holds the tensors of these ids, and the layers around them, by which key; and how many parameters and layers
    each has: what is replaced or new is not what the library was told of."""
    if not hasattr(model, "named_parameters"):
        return [(m, key, x) for m in (model, buffers or {}) for key, x in m.items() if id(x) in ids], []
    held, counted = [], []
    for layer in model.modules():
        held += [(layer._modules, key, child) for key, child in layer._modules.items()]
        held += [(of, key, x) for of in (layer._parameters, layer._buffers) for key, x in of.items() if id(x) in ids]
        counted += [(layer._modules, len(layer._modules)), (layer._parameters, len(layer._parameters))]
    return held, counted


# ---- where they lie ---------------------------------------------------------------


class Model:
    """The tensors of a model, laid out for the library. `items` are in the order in which it is told of them."""

    def __init__(self, model: Any, buffers: Optional[Mapping[str, Any]] = None, skip: Sequence[str] = ()) -> None:
        named = [one for one in _named(model, buffers)
                 if not any(fnmatch.fnmatchcase(one[0], pattern) for pattern in skip)]
        for name, _, x in named:
            _check(name, x)
        self.flat: Any = None
        self._held, self._counted = _holders(model, buffers, {id(x) for _, _, x in named})
        self.items = self._lay([one for one in named if self._size(one[2]) > 0])
        self._staged = [(i.owner, i.host) for i in self.items if i.owner is not i.host]

    @staticmethod
    def _size(x: Any) -> int:
        return int(x.numel()) if _is_torch(x) else int(x.size)

    def _lay(self, named: List[Tuple[str, int, Any]]) -> List[Item]:
        """Float32 tensors of PyTorch get their places in the flat buffer, in this order."""
        n = sum(self._size(x) for _, _, x in named if _is_torch(x) and str(x.dtype) == "torch.float32")
        if n > 0:
            self.flat = _aligned(n)
        items, at = [], 0
        for name, role, x in named:
            host = x
            if _is_torch(x) and str(x.dtype) == "torch.float32":
                host = self._move(x, at)
                at += self._size(x)
            elif _is_torch(x):
                host = self._keep(x)
            items.append(Item(name, role, x, host))
        return items

    def _move(self, x: Any, at: int) -> Any:
        """x's values go to the flat buffer; x becomes a view of it, or gets a twin there."""
        import torch

        view = torch.from_numpy(self.flat[at:at + x.numel()]).view(x.shape)
        view.copy_(x.detach())
        if _on_gpu(x):
            return view
        x.data = view
        return x

    @staticmethod
    def _keep(x: Any) -> Any:
        if _on_gpu(x):
            return x.detach().cpu().contiguous()
        if not x.is_contiguous():
            x.data = x.detach().contiguous()
        return x

    def in_place(self) -> bool:
        """Is the model still where the library works? Not so after model.to(...), an assignment to .data, or where a
        layer, a parameter or an array of it was replaced by another."""
        return (all(x.data_ptr() == at for x, at in self._in_place)
                and all(holder.get(key) is held for holder, key, held in self._held)
                and all(len(holder) == n for holder, n in self._counted))

    def hand_over(self) -> None:
        """What lies on a GPU is written to its twin."""
        for owner, host in self._staged:
            host.copy_(owner.detach())

    def take_back(self) -> None:
        """And read from there."""
        for owner, host in self._staged:
            owner.detach().copy_(host)

    def tell(self, handle: Any) -> None:
        """hearsay_tensor() for each. UsageError names the tensor that was refused."""
        addresses = [_address(i.host) for i in self.items]
        self._in_place = [(i.host, at) for i, at in zip(self.items, addresses) if _is_torch(i.host) and i.owner is i.host]
        for i, at in zip(self.items, addresses):
            dims = tuple(int(d) for d in i.host.shape)
            types = TORCH_TYPES if _is_torch(i.host) else NUMPY_TYPES
            _lib.check(lib.hearsay_tensor(handle, i.name.encode(), at, types[str(i.host.dtype)], i.role, len(dims),
                                          (ctypes.c_uint64 * max(1, len(dims)))(*dims)),
                       _sentence(handle))


def _address(x: Any) -> int:
    return int(x.data_ptr()) if _is_torch(x) else int(x.__array_interface__["data"][0])


def _sentence(handle: Any) -> str:
    return (lib.hearsay_error(handle) or b"").decode(errors="replace")


def words(options: Iterable[Tuple[str, Any]]) -> Iterable[Tuple[str, str]]:
    """Options as the library takes them: True is "true", a list is joined by commas, None is not given."""
    for name, value in options:
        if value is None:
            continue
        if isinstance(value, bool):
            value = "true" if value else "false"
        elif isinstance(value, (list, tuple)):
            value = ",".join(str(one) for one in value)
        elif hasattr(value, "__fspath__"):
            value = value.__fspath__()
        elif not isinstance(value, (str, int, float)) and not hasattr(value, "__index__"):
            raise TypeError(f"option {name}: found {type(value).__name__}, expected text, a number, a path or a list")
        yield name.replace("_", "-"), str(value)
