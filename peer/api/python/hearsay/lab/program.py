"""hearsay.lab.program: finds the program hearsay, and reads the names of its flags."""
import os
import re
import shutil
import subprocess
from typing import List, Optional

from .cli import InputError

# The root of a checkout. This file is peer/api/python/hearsay/lab/program.py.
_CHECKOUT = os.path.join(os.path.dirname(os.path.realpath(__file__)), *[".."] * 5)


def find(given: Optional[str] = None) -> str:
    """The path of hearsay: `given` (--hearsay), $HEARSAY, the first hearsay on PATH, or build/release of the checkout, in
    this order."""
    for name, asked in (("--hearsay", given), ("HEARSAY", os.environ.get("HEARSAY"))):
        if asked:
            found = shutil.which(asked)
            if found is None:
                raise InputError(f"{name}: found {asked!r}, expected the path of the program hearsay")
            return os.path.abspath(found)
    built = os.path.join(os.path.normpath(_CHECKOUT), "build", "release", "hearsay")
    found = shutil.which("hearsay") or shutil.which(built)
    if found is None:
        checkout = os.path.exists(os.path.join(os.path.normpath(_CHECKOUT), "CMakeLists.txt"))
        places = f"neither on PATH nor at {built}" if checkout else "not on PATH"
        raise InputError(f"cannot find the program hearsay: it is {places}. Build or install it, or give its path with --hearsay PATH "
                         "(such as build/release/hearsay) or HEARSAY=PATH")
    return os.path.abspath(found)


def environment() -> "dict[str, str]":
    """The environment of a run, without HEARSAY and HEARSAY_*: all settings of a run come from its command line."""
    return {name: value for name, value in os.environ.items() if name != "HEARSAY" and not name.startswith("HEARSAY_")}


def ignored() -> List[str]:
    """The names of the environment variables HEARSAY_* that would be settings and are not passed to the runs."""
    ours = ("HEARSAY_LIBRARY",)
    return sorted(name for name in os.environ if name.startswith("HEARSAY_") and name not in ours)


def flags(program: str, command: str) -> List[str]:
    """The names of all flags of a command, read from its help."""
    try:
        done = subprocess.run([program, command, "--help", "all"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env=environment(), timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"cannot run {program}: {error}") from error
    found = re.findall(r"^  (?:-\w, )?--([a-z0-9-]+)", done.stdout.decode("utf-8", "replace"), re.MULTILINE)
    if done.returncode != 0 or "check" not in found:
        raise InputError(f"{program}: `{command} --help` lists no flag --check, expected a program hearsay of this version")
    return found
