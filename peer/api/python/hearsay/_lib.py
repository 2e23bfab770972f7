"""Binds libhearsay.so by ctypes: finds the library, declares its functions, and raises an exception for each error code.

All of peer/api/hearsay.h is here under its own names: `lib.hearsay_codec_open(...)`. ctypes releases the interpreter lock
during each call, so that other threads of the program continue.
"""
import ctypes
import ctypes.util
import os
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_double, c_float, c_int, c_size_t, c_uint16, c_uint32, c_uint64, c_void_p
from typing import Any, Dict, FrozenSet, List, Tuple, Type

API = 3  # Version HEARSAY_API of hearsay.h for which this file declares the functions.

# Values of enum hearsay_code in hearsay.h.
OK, OVER, TIMEOUT, INTERRUPTED = 0, 1, 2, 3
USAGE, SYSTEM, NOT_FINITE, CALLBACK, FORKED = -1, -2, -3, -4, -5
# Values of enum hearsay_type, values of enum hearsay_role, and limits, all as in hearsay.h.
FLOAT32, FLOAT16, BFLOAT16 = 0, 1, 2
TRAINED, STATISTIC, VARIANCE, OPAQUE = 0, 1, 2, 3
DIMS_MAX, NAME_MAX, CODEC_ERROR_MAX = 8, 95, 256


class HearsayError(Exception):
    """An error of libhearsay. The text is the library's own message, and `code` is its enum hearsay_code."""

    code = 0


class UsageError(HearsayError, ValueError):
    """An option, a tensor, a file or the order of calls is wrong."""

    code = USAGE


class ResourceError(HearsayError, OSError):
    """The system failed: memory, a thread, a socket or a disk."""

    code = SYSTEM


class NotFiniteError(HearsayError, ArithmeticError):
    """A tensor has a NaN or an infinity, so it was not sent."""

    code = NOT_FINITE


class CallbackError(HearsayError, RuntimeError):
    """A callback of the program failed."""

    code = CALLBACK


class ForkedError(HearsayError, RuntimeError):
    """The handle belongs to the parent process. This process is a fork, which must not use the handle."""

    code = FORKED


ERRORS: Dict[int, Type[HearsayError]] = {
    one.code: one for one in (UsageError, ResourceError, NotFiniteError, CallbackError, ForkedError)}


def check(code: int, sentence: str) -> int:
    """Returns `code` if it is not an error. Otherwise raises the exception for the code, with the message `sentence`."""
    if code >= 0:
        return code
    raise ERRORS.get(code, HearsayError)(sentence or f"libhearsay failed with code {code}")


def encoded(text: str, what: str) -> bytes:
    """Returns `text` as bytes for the library. UsageError if it contains a NUL, because a C
    string ends there. `what`: name of the text for the message."""
    if "\0" in text:
        raise UsageError(f"{what}: found a NUL character in {text!r:.60}, expected a text without it")
    return text.encode()


class Did(ctypes.Structure):
    """struct hearsay_did of hearsay.h: result of the local steps of a round."""

    _fields_ = [("loss", c_double), ("samples", c_uint64)]


class Score(ctypes.Structure):
    """struct hearsay_score of hearsay.h: result of an evaluation."""

    _fields_ = [("loss", c_double), ("accuracy", c_double), ("samples", c_uint64)]


class Layer(ctypes.Structure):
    """struct hearsay_layer of hearsay.h: a part of the vector that a codec compresses."""

    _fields_ = [("name", c_char_p), ("rows", c_uint64), ("cols", c_uint64)]


class Option(ctypes.Structure):
    """struct hearsay_option of hearsay.h: description of an option."""

    _fields_ = [("name", c_char_p), ("values", c_char_p), ("fallback", c_char_p), ("about", c_char_p), ("needs_model", c_int)]


NOTE = CFUNCTYPE(None, c_void_p, c_int, c_char_p)
EVALUATE = CFUNCTYPE(c_int, c_void_p, c_uint64, POINTER(Score))

# Result and arguments of each function. Handles and pointers to floats or bytes are c_void_p. A
# returned text is copied to bytes at once, because the next call may change it.
SIGNATURES: Dict[str, Tuple[object, List[object]]] = {
    "hearsay_api": (c_uint32, []),
    "hearsay_version": (c_char_p, []),
    "hearsay_new": (c_void_p, []),
    "hearsay_close": (None, [c_void_p]),
    "hearsay_set": (c_int, [c_void_p, c_char_p, c_char_p]),
    "hearsay_option_at": (c_int, [c_size_t, POINTER(Option)]),
    "hearsay_options": (c_int, [c_void_p, c_char_p]),
    "hearsay_tensor": (c_int, [c_void_p, c_char_p, c_void_p, c_int, c_int, c_uint32, POINTER(c_uint64)]),
    "hearsay_on_note": (c_int, [c_void_p, NOTE, c_void_p]),
    "hearsay_on_evaluate": (c_int, [c_void_p, EVALUATE, c_void_p]),
    "hearsay_open": (c_int, [c_void_p]),
    "hearsay_open_simulated": (c_int, [POINTER(c_void_p), c_size_t, c_char_p]),
    "hearsay_wait": (c_int, [c_void_p, c_double]),
    "hearsay_steps": (c_uint32, [c_void_p]),
    "hearsay_rounds_done": (c_uint64, [c_void_p]),
    "hearsay_rounds": (c_uint64, [c_void_p]),
    "hearsay_round": (c_int, [c_void_p, POINTER(Did), c_double]),
    "hearsay_interrupt": (None, [c_void_p]),
    "hearsay_leave": (c_int, [c_void_p, c_double]),
    "hearsay_keep": (c_int, [c_void_p, c_void_p, c_size_t]),
    "hearsay_kept": (c_void_p, [c_void_p, POINTER(c_size_t), POINTER(c_uint64)]),
    "hearsay_share": (c_uint64, [c_void_p, c_uint64, POINTER(c_uint64), c_uint64]),
    "hearsay_shares": (c_uint64, [c_void_p]),
    "hearsay_figures": (c_int, [c_void_p, c_void_p]),
    "hearsay_figures_json": (c_char_p, [c_void_p]),
    "hearsay_error": (c_char_p, [c_void_p]),
    "hearsay_verdict": (c_char_p, [c_void_p]),
    "hearsay_exit_code": (c_int, [c_void_p]),
    "hearsay_run": (c_char_p, [c_void_p]),
    "hearsay_port": (c_uint16, [c_void_p]),
    "hearsay_codec_open": (c_int, [POINTER(c_void_p), c_char_p, POINTER(Layer), c_size_t, c_char_p]),
    "hearsay_codec_close": (None, [c_void_p]),
    "hearsay_codec_spec": (c_char_p, [c_void_p]),
    "hearsay_codec_floats": (c_size_t, [c_void_p]),
    "hearsay_codec_bound": (c_size_t, [c_void_p]),
    "hearsay_codec_encode": (c_int, [c_void_p, c_void_p, c_void_p, c_uint64, c_uint64, c_void_p, c_size_t,
                                     POINTER(c_size_t), POINTER(c_double)]),
    "hearsay_codec_check": (c_int, [c_void_p, c_char_p, c_size_t]),
    "hearsay_codec_add": (c_int, [c_void_p, c_char_p, c_size_t, c_void_p]),
    "hearsay_codec_at": (c_int, [c_size_t, POINTER(c_char_p), POINTER(c_char_p)]),
}


class Library:
    """A loaded libhearsay.so. Each function of SIGNATURES is an attribute, looked up at its first use."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._dll = ctypes.CDLL(path)

    def __getattr__(self, name: str) -> Any:
        if name not in SIGNATURES:
            raise AttributeError(name)
        try:
            function = getattr(self._dll, name)
        except AttributeError:
            raise AttributeError(f"{self.path} has no function {name}: it is older than this package") from None
        function.restype, function.argtypes = SIGNATURES[name]
        setattr(self, name, function)
        return function


def places() -> List[Tuple[str, str]]:
    """Returns the places where the library is searched, in this order, each as (description, path). Path "": not
    available.
    """
    here = os.path.dirname(os.path.abspath(__file__))
    root = os.path.abspath(os.path.join(here, *[".."] * 4))
    checkout = os.path.join(root, "peer", "api", "python", "hearsay") == here
    return [
        ("the package's own folder", os.path.join(here, "libhearsay.so")),
        ("$HEARSAY_LIBRARY", os.environ.get("HEARSAY_LIBRARY", "")),
        *([("the checkout's build", os.path.join(root, "build", "release", "libhearsay.so"))] if checkout else []),
        ("the system's loader", "libhearsay.so.0"),
    ]


def load() -> Library:
    """Loads the first library that is found. ImportError lists the places that were searched and what was found there."""
    tried = []
    for what, path in places():
        if not path:
            tried.append(f"{what} is not set")
            continue
        if os.sep in path and not os.path.exists(path):
            tried.append(f"{what}: there is no {path}")
        else:
            try:
                library = Library(path)
                found = library.hearsay_api()
                if found >= API:
                    return library
                tried.append(f"{what}: {path} has API {found}, and this package needs {API} or more")
            except (OSError, AttributeError) as error:
                tried.append(f"{what}: {error}")
        if what == "$HEARSAY_LIBRARY":  # The user asked for this file, so no other file is tried.
            break
    raise ImportError("hearsay: libhearsay.so was not found: " + "; ".join(tried))


lib = load()


def needing_model() -> FrozenSet[str]:
    """Returns the names of the options that the library takes only with the option model."""
    option, names, i = Option(), set(), 0
    while lib.hearsay_option_at(i, ctypes.byref(option)) == OK:
        if option.needs_model:
            names.add(option.name.decode())
        i += 1
    return frozenset(names)


def defaults() -> Dict[str, str]:
    """Returns the default of each option that has one, as text."""
    option, found, i = Option(), {}, 0
    while lib.hearsay_option_at(i, ctypes.byref(option)) == OK:
        if option.fallback is not None:
            found[option.name.decode()] = option.fallback.decode()
        i += 1
    return found
