"""The program hearsay-lab: table of commands, parser of the command line, and handling of errors.

Each command is a module of this package with NAME, HELP, add_arguments(parser) and run(arguments), which returns the exit
code: 0 success, 1 failure, 2 bad usage or input, 3 a run without consensus, 130 interrupted.
"""
import argparse
import importlib
import io
import os
import signal
import sys
from typing import List, Optional

COMMANDS: List[str] = ["compare", "sweep", "report", "tensorboard", "wandb", "mlflow"]  # The module of each command, in the order of the help.


class InputError(Exception):
    """Wrong usage or input, exit code 2. The text names the file or flag, what was found and what was expected."""


def parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    top = argparse.ArgumentParser(prog="hearsay-lab", description="Runs experiments with hearsay, and draws finished runs.",
                                  epilog="Exit codes: 0 success, 1 failure, 2 bad usage or input, 3 a run without consensus, 130 interrupted.")
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    for name in COMMANDS:
        module = importlib.import_module("." + name, __package__)
        one = commands.add_parser(module.NAME, help=module.HELP, description=module.__doc__,
                                  formatter_class=argparse.RawDescriptionHelpFormatter)
        module.add_arguments(one)
        one.set_defaults(run=module.run)
    return top


def main(words: Optional[List[str]] = None) -> int:
    """Run one command line and return its exit code."""
    if sys.stderr is None:  # The program was started with stderr closed.
        sys.stderr = open(os.devnull, "w")
    if sys.stdout is None:
        print("hearsay-lab: cannot write to stdout: Bad file descriptor", file=sys.stderr)
        return 1
    for stream in (sys.stdout, sys.stderr):  # A name may have characters that the locale cannot encode.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    words = list(sys.argv[1:] if words is None else words)
    behind: List[str] = []
    if words[:1] == ["sweep"] and "--" in words:  # The command line of the runs follows the "--".
        at = words.index("--")
        words, behind = words[:at], words[at + 1:]
    arguments = parser().parse_args(words)
    arguments.behind = behind
    try:
        code: int = arguments.run(arguments)
        sys.stdout.flush()
        return code
    except InputError as error:
        print(f"hearsay-lab: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except OSError as error:
        text = error.strerror or str(error)
        print(f"hearsay-lab: {error.filename}: {text}" if error.filename else f"hearsay-lab: {text}", file=sys.stderr)
        return 1
