"""hearsay.load(): the tensors of a model file, and the function that turns raw data into inputs of the model.

A safetensors file consists of a length (8 bytes), a JSON header and data. The key "input" in the header's "__metadata__"
is described in peer/run_log/input.h: the shape of an input, and means and deviations of channels or columns.
"""
import json
import math
import os
import re
import stat
import struct
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Union

HEADER_MAX = 100_000_000  # Largest header in bytes, a limit of the format.
FAR = 1e6  # Largest absolute value of a scaled input (nn/data/columns.h).
DECIMAL = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*\Z")  # Pattern of a number in a table, as in nn/math/number.h.
GAPS = ("", "?", "nan", "na", "n/a", "null")
# Type in the file -> numpy's type. numpy has no BF16: its bits are read as unsigned 16-bit numbers.
DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
          "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?"}


class Loaded(NamedTuple):
    """Result of load(). A Loaded can be unpacked: `tensors, transform, metadata = hearsay.load(path)`."""

    tensors: Dict[str, Any]
    """Name -> tensor, in the order of the file. With numpy, bfloat16 tensors become float32."""
    transform: Callable[[Any], Any]
    """Turns raw images, table rows or text into inputs of the model. Raises ValueError for data of another form."""
    metadata: Dict[str, Any]
    """Metadata of the file. "run", "data", "round", "name", "version" and so on are strings, "input" is a dict, and
    "classes" is a list with the label of each output. A file of another program has its own metadata, or none."""


def load(path: Union[str, "os.PathLike[str]"], framework: Optional[str] = None) -> Loaded:
    """Reads a model file in the safetensors format, written by hearsay or another program.

    `framework` is the type of tensors and inputs: "torch" or "numpy". None: "torch" if PyTorch is installed, else "numpy".

        tensors, transform, metadata = hearsay.load("out/model.safetensors")
        module.load_state_dict(tensors)
        logits = module(transform(images))  # images: uint8, [n, 28, 28]

    The transform takes the values in data files:

        images   whole numbers 0 to 255 of shape [height, width], [channels, height, width], [height, width, channels]
                 or [pixels], with any leading dimensions. The result is float32, [..., channels, height, width].
        rows     one row or a list of rows, without the label. A cell of a column of numbers is a number, or decimal text as
                 Python writes it: "1234.5", not "1.234,5" or "1_234". A cell of a column of categories is the text in the
                 file, or a whole number. None, NaN and the file's marks of a gap, such as "" and "NA", are missing values.
                 ValueError names any other cell. The result is float32, [n, inputs], or [inputs] for one row.
        sparse   a dense array [n, features], or a scipy.sparse matrix. The result is dense.
        text     bytes, or a str in UTF-8. The result is int64, [n].

    OSError: the file cannot be read. ValueError: the file is not a safetensors file; the message names file and field.
    """
    if framework not in (None, "torch", "numpy"):
        raise ValueError(f"framework: found {framework!r}, expected 'torch', 'numpy' or None")
    torch = _torch(framework)
    header, data = _read(os.fspath(path))
    texts = header.pop("__metadata__", {})
    tensors = {name: _tensor(path, name, t, data, torch)
               for name, t in sorted(header.items(), key=lambda item: item[1]["data_offsets"])}
    metadata: Dict[str, Any] = dict(texts)
    if "input" in texts:
        try:
            metadata["input"] = json.loads(texts["input"])
            names = metadata["input"]["classes"]
            metadata["classes"] = names if names is None else list(names)
        except (ValueError, KeyError, TypeError) as e:
            raise ValueError(f"{path}: metadata \"input\": {e}, expected the JSON that hearsay writes") from None
    return Loaded(tensors, _Transform(os.fspath(path), metadata.get("input"), torch), metadata)


def _torch(framework: Optional[str]) -> Any:
    if framework == "numpy":
        return None
    try:
        import torch
    except ImportError:
        if framework == "torch":
            raise
        return None
    return torch


# ---- Reading the model file. ----

def _read(path: str) -> Any:
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as f:  # Opening a named pipe must not block.
        if not stat.S_ISREG(os.fstat(f.fileno()).st_mode):
            raise ValueError(f"{path}: found another kind of file, expected a regular file")
        size = os.fstat(f.fileno()).st_size
        length = f.read(8)
        (n,) = struct.unpack("<Q", length) if len(length) == 8 else (0,)
        if n < 2 or n > min(HEADER_MAX, size - 8):
            raise ValueError(f"{path}: header length: found {n}, expected 2 to {max(min(HEADER_MAX, size - 8), 2)}: "
                             "not a safetensors file, or it is truncated")
        try:
            header = json.loads(f.read(n))
        except ValueError as e:
            raise ValueError(f"{path}: header: found no JSON: {e}") from None
        data = bytearray(f.read())
    if not isinstance(header, dict):
        raise ValueError(f"{path}: header: found {type(header).__name__}, expected an object")
    meta = header.get("__metadata__", {})
    if not isinstance(meta, dict) or not all(isinstance(v, str) for v in meta.values()):
        raise ValueError(f"{path}: __metadata__: expected a map of strings")
    for name, t in header.items():
        if name != "__metadata__":
            _check(path, name, t, len(data))
    return header, data


def _check(path: str, name: str, t: Any, n_data: int) -> None:
    def whole(values: Any) -> bool:
        return isinstance(values, list) and all(type(v) is int and v >= 0 for v in values)

    if not isinstance(t, dict) or not whole(t.get("shape")):
        raise ValueError(f"{path}: shape of {name}: expected a list of whole numbers")
    if t.get("dtype") not in DTYPES:
        raise ValueError(f"{path}: dtype of {name}: found {t.get('dtype')!r}, expected one of {', '.join(DTYPES)}")
    offsets = t.get("data_offsets")
    if not whole(offsets) or len(offsets) != 2 or not offsets[0] <= offsets[1] <= n_data:
        raise ValueError(f"{path}: data_offsets of {name}: found {offsets!r}, expected [begin, end] within {n_data} bytes")
    width = {"?": 1, "1": 1, "2": 2, "4": 4, "8": 8}[DTYPES[t["dtype"]][-1]]
    if offsets[1] - offsets[0] != width * math.prod(t["shape"]):
        raise ValueError(f"{path}: data_offsets of {name}: found {offsets[1] - offsets[0]} bytes, "
                         f"expected {width * math.prod(t['shape'])} for its shape")


def _tensor(path: Any, name: str, t: Any, data: bytearray, torch: Any) -> Any:
    import numpy as np
    begin, _ = t["data_offsets"]
    array = np.frombuffer(data, DTYPES[t["dtype"]], math.prod(t["shape"]), begin).reshape(t["shape"])
    if t["dtype"] == "BF16":
        array = (array.astype("<u4") << 16).view("<f4").astype(np.float32)
    if torch is None:
        return array
    if array.dtype.kind == "u" and array.dtype.itemsize > 1:
        raise ValueError(f"{path}: dtype of {name}: found {t['dtype']}, which PyTorch may not support: use framework=\"numpy\"")
    tensor = torch.from_numpy(array.copy())
    return tensor.bfloat16() if t["dtype"] == "BF16" else tensor


# ---- Converting raw data to inputs. ----

class _Transform:
    """Callable that converts raw images, table rows or text to inputs of a model, as load() describes."""

    def __init__(self, path: str, spec: Optional[Dict[str, Any]], torch: Any):
        self.path, self.spec, self._torch = path, spec, torch

    def __repr__(self) -> str:
        what = "unknown" if self.spec is None else f"{self.spec['form']} {'x'.join(map(str, self.spec['shape']))}"
        return f"<hearsay transform: {what}>"

    def __call__(self, raw: Any) -> Any:
        if self.spec is None:
            raise ValueError(f"{self.path}: the metadata has no \"input\", which describes how to make inputs: another program wrote "
                             "the file, or the model is not one of hearsay's")
        out = {"images": _images, "rows": _rows, "sparse": _sparse, "text": _text}[self.spec["form"]](self, raw)
        return out if self._torch is None else self._torch.from_numpy(out)

    def fail(self, found: str, expected: str) -> ValueError:
        return ValueError(f"inputs of {self.path}: found {found}, expected {expected}")


def _images(t: _Transform, raw: Any) -> Any:
    import numpy as np
    shape = tuple(t.spec["shape"])
    c, h, w = shape
    x = np.asarray(raw)
    if x.dtype.kind not in "iu" or (x.size > 0 and (x.min() < 0 or x.max() > 255)):
        raise t.fail(f"{x.dtype} values", "whole numbers from 0 to 255, as image files have them")
    if x.shape[-3:] == shape:
        pass
    elif c == 1 and x.shape[-2:] == (h, w):
        x = x[..., None, :, :]
    elif x.shape[-3:] == (h, w, c):
        x = np.moveaxis(x, -1, -3)
    elif x.shape[-1:] == (c * h * w,):
        x = x.reshape(x.shape[:-1] + shape)
    else:
        raise t.fail(f"shape {x.shape}", f"[..., {c}, {h}, {w}]")
    # The normalised value of each byte 0 to 255, computed in double as in nn/data/dataset.c.
    byte = np.arange(256) / 255.0
    table = np.stack([((byte - float(np.float32(m))) / float(np.float32(s))).astype(np.float32)
                      for m, s in zip(t.spec["mean"], t.spec["std"])])
    return np.stack([table[i][x[..., i, :, :]] for i in range(c)], axis=-3)


def _mix(key: int, i: int) -> int:
    """Returns the i-th number of SplitMix64 with this key, as nn/math/rng.h does."""
    mask = (1 << 64) - 1
    z = (key + (i + 1) * 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


def _category(text: bytes) -> int:
    """Returns the 18-bit hash of a category, as nn/data/columns.c does."""
    h = _mix(len(text), 0)
    for i, b in enumerate(text):
        h = _mix(h ^ b, i)
    return h >> 46


def _is_gap(cell: Any) -> bool:
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return True
    return isinstance(cell, str) and cell.strip().lower() in GAPS


def _number(t: _Transform, cell: Any, place: str) -> float:
    try:
        if isinstance(cell, (str, bytes)) and not DECIMAL.match(cell if isinstance(cell, str) else cell.decode()):
            raise ValueError
        return float(cell)
    except (TypeError, ValueError):
        raise t.fail(f"{cell!r} in {place}", "a number, such as 1234.5") from None


def _numbers(t: _Transform, cells: Sequence[Any], i: int, column: Dict[str, Any]) -> Any:
    import numpy as np
    divide, scale = t.spec["divide"], t.spec["scale"]
    v = np.array([math.nan if _is_gap(c) else _number(t, c, f"column {i + 1}, row {k + 1}") for k, c in enumerate(cells)])
    v = v / divide
    if "mean" not in column:
        return v.astype(np.float32)[:, None]
    v = np.where(np.isnan(v), column["mean"], v)
    if scale == "none":
        return v.astype(np.float32)[:, None]
    v = (v - (column["mean"] if scale == "standard" else 0)) / column["scale"]
    return np.clip(v, -FAR, FAR).astype(np.float32)[:, None]


def _categories(t: _Transform, cells: Sequence[Any], i: int, column: Dict[str, Any]) -> Any:
    import numpy as np
    places = {h: i for i, h in enumerate(column.get("hashes", ()))}
    out = np.zeros((len(cells), len(places) if column["form"] == "categories" else column["inputs"]), np.float32)
    for k, cell in enumerate(cells):
        if _is_gap(cell):
            continue
        if isinstance(cell, (bool, float)) or not isinstance(cell, (str, bytes)) and not hasattr(cell, "__index__"):
            raise t.fail(f"{cell!r} in column {i + 1}, row {k + 1}", "a category as text, as the file has it")
        text = cell if isinstance(cell, bytes) else str(cell).strip().encode()
        h = _category(text)
        at = places.get(h) if column["form"] == "categories" else h % column["inputs"]
        if at is not None:
            out[k, at] = 1
    return out


def _cells(raw: Any) -> List[Any]:
    """Returns rows as lists of cells. `raw` is a list of rows, or an array or table of numpy, PyTorch or pandas."""
    if hasattr(raw, "to_numpy"):  # `raw` is a DataFrame of pandas.
        raw = raw.to_numpy()
    return raw.tolist() if hasattr(raw, "tolist") else [row.tolist() if hasattr(row, "tolist") else row for row in raw]


def _rows(t: _Transform, raw: Any) -> Any:
    import numpy as np
    n_inputs, columns = t.spec["shape"][0], t.spec["columns"]
    if columns is None and "columns_hash" in t.spec:
        raise ValueError(f"{t.path}: the table has too many columns for a run description, so that the scales of the columns are "
                         "not in the file")
    if columns is None:
        columns = [{"form": "numbers"}] * n_inputs
    rows = _cells(raw)
    one = len(rows) > 0 and not isinstance(rows[0], (list, tuple))
    rows = [rows] if one else rows
    for k, row in enumerate(rows):
        if len(row) != len(columns):
            raise t.fail(f"{len(row)} cells in row {k + 1}", f"{len(columns)}: the columns of the training files, without the label")
    parts = []
    for i, column in enumerate(columns):
        cells = [row[i] for row in rows]
        parts.append(_numbers(t, cells, i, column) if column["form"] == "numbers" else _categories(t, cells, i, column))
    out = np.concatenate(parts, axis=1)
    return out[0] if one else out


def _sparse(t: _Transform, raw: Any) -> Any:
    import numpy as np
    x = np.asarray(raw.toarray() if hasattr(raw, "toarray") else raw, np.float64)
    n, columns = t.spec["shape"][0], t.spec["columns"]
    if x.shape[-1:] != (n,):
        raise t.fail(f"shape {x.shape}", f"[..., {n}], with feature 1 of the file at index 0")
    if "columns_hash" in t.spec:
        raise ValueError(f"{t.path}: the rows have too many columns for a run description, so that the scales of the columns are not in the file")
    x = x / t.spec["divide"]
    if columns is not None:
        x = np.clip(x / np.array([c["scale"] for c in columns]), -FAR, FAR)
    return x.astype(np.float32)


def _text(t: _Transform, raw: Any) -> Any:
    import numpy as np
    if isinstance(raw, str):
        raw = raw.encode()
    if not isinstance(raw, (bytes, bytearray, memoryview)):
        raise t.fail(type(raw).__name__, "bytes or str")
    return np.frombuffer(raw, np.uint8).astype(np.int64)
