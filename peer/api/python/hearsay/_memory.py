"""Finds the address of the floats in an array of numpy, a tensor of PyTorch, or another object with a buffer. Copies
nothing.

numpy and PyTorch objects are recognised by their attributes, so that neither package needs to be installed.
"""
import ctypes
from typing import Any

FLOAT = 4  # Bytes of a float32.


def _of_torch(x: Any, name: str, n: int) -> int:
    if str(x.layout) != "torch.strided" or x.device.type != "cpu":
        raise TypeError(f"{name}: found a tensor of layout {x.layout} on {x.device}, expected a dense one on cpu")
    if str(x.dtype) != "torch.float32":
        raise TypeError(f"{name}: found {x.dtype}, expected torch.float32")
    if not x.is_contiguous():
        raise ValueError(f"{name}: found strides {tuple(x.stride())} of shape {tuple(x.shape)}, "
                         "expected a contiguous tensor (x.contiguous())")
    if x.is_neg():
        raise ValueError(f"{name}: found a tensor that is to be negated when it is read, expected its values "
                         "(x.resolve_neg())")
    _check_size(name, x.numel(), n)
    return int(x.data_ptr())


def _of_numpy(x: Any, name: str, n: int, writes: bool) -> int:
    if str(x.dtype) != "float32":
        raise TypeError(f"{name}: found dtype {x.dtype}, expected float32")
    if not x.flags["C_CONTIGUOUS"] or not x.flags["ALIGNED"]:
        raise ValueError(f"{name}: found strides {x.strides} of shape {x.shape}, "
                         "expected a contiguous array, row by row (numpy.ascontiguousarray(x))")
    if writes and not x.flags["WRITEABLE"]:
        raise ValueError(f"{name}: found an array that is read-only, expected one to add to")
    _check_size(name, x.size, n)
    return int(x.__array_interface__["data"][0])


def _of_buffer(x: Any, name: str, n: int) -> int:
    try:
        view = memoryview(x)
    except TypeError:
        raise TypeError(f"{name}: found {type(x).__name__}, expected float32 as a numpy array, a PyTorch tensor "
                        "or something else with a buffer, such as array.array('f')") from None
    if view.format != "f":
        raise TypeError(f"{name}: found items of format {view.format!r}, expected 'f' (float32)")
    if not view.c_contiguous:
        raise ValueError(f"{name}: found strides {view.strides} of shape {view.shape}, expected a contiguous buffer")
    if view.readonly:
        raise ValueError(f"{name}: found a buffer that is read-only, expected one that can be written")
    _check_size(name, view.nbytes // FLOAT, n)
    return ctypes.addressof(ctypes.c_char.from_buffer(view))


def _check_size(name: str, found: int, n: int) -> None:
    if found != n:
        raise ValueError(f"{name}: found {found} values, expected {n}")


def address(x: Any, name: str, n: int, writes: bool = False) -> int:
    """Returns the address of the n contiguous float32 of x. The address is valid while x exists and is not resized.

    TypeError or ValueError if x has another type, device, size or layout. The message begins with `name`.
    """
    if hasattr(x, "data_ptr") and hasattr(x, "layout"):
        return _of_torch(x, name, n)
    if hasattr(x, "__array_interface__") and hasattr(x, "flags"):
        return _of_numpy(x, name, n, writes)
    return _of_buffer(x, name, n)
