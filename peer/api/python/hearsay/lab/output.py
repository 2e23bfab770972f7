"""hearsay.lab.output: writes files. Regular files are replaced atomically.

    PATH is ...                     action
    absent, or a regular file       PATH.tmp-PID is written, synced and renamed to PATH
    a symbolic link                 the target of the link is replaced, the link is kept
    a device, a pipe or a socket    the bytes are written to it
    a directory, or an input        refused

An input is a file that this process has read, identified by device and inode. A file of hearsay-lab has a mark near its beginning
or its end. An existing file without the mark is refused unless the caller forces the write.
"""
import os
import socket
import stat
import sys
from typing import BinaryIO, Optional, Set, Tuple

from .cli import InputError

NEAR = 4096  # Number of bytes at the beginning and at the end of a file in which the mark of hearsay-lab is searched.

_inputs: Set[Tuple[int, int]] = set()


def add_input(fd: int) -> None:
    """Register an open file as an input, so that check() refuses to replace the file."""
    at = os.fstat(fd)
    _inputs.add((at.st_dev, at.st_ino))


def shown(text: str) -> str:
    """An untrusted text, such as a path, as one printable line for a message. At most 512 characters."""
    safe = "".join(c if c.isprintable() else "?" for c in text)
    return safe if len(safe) <= 512 else "..." + safe[-509:]


def note(text: str) -> None:
    """Print a line for the user to stderr."""
    print(f"hearsay-lab: {text}", file=sys.stderr, flush=True)


def _stat(path: str) -> Optional[os.stat_result]:
    """The stat result of PATH, following links. None if PATH does not exist."""
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise InputError(f"cannot write {shown(path)}: {getattr(error, 'strerror', None) or error}") from error


def _is_stream(mode: int) -> bool:
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or stat.S_ISSOCK(mode) or stat.S_ISBLK(mode)


def check(path: str, mark: bytes, force: bool, remedy: str = "--force overwrites it") -> None:
    """InputError if PATH must not be written. Changes no file, so that all outputs can be checked before the first write."""
    there = _stat(path)
    if there is None:
        parent = os.path.dirname(os.path.realpath(path))
        if not os.path.isdir(parent):
            raise InputError(f"cannot write {shown(path)}: {shown(parent)} is not a directory")
        return
    if stat.S_ISDIR(there.st_mode):
        raise InputError(f"cannot write {shown(path)}: it is a directory")
    if (there.st_dev, there.st_ino) in _inputs:
        raise InputError(f"cannot write {shown(path)}: it is an input of this command")
    if force or _is_stream(there.st_mode) or there.st_size == 0 or _has_mark(path, mark):
        return
    raise InputError(f"{shown(path)} exists, and hearsay-lab did not create it; {remedy}")


def _has_mark(path: str, mark: bytes) -> bool:
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as f:
            head = f.read(NEAR)
            f.seek(max(0, os.fstat(f.fileno()).st_size - NEAR))
            return mark in head or mark in f.read(NEAR)
    except OSError:
        return False


def _connected(path: str) -> BinaryIO:
    """A file that writes to the socket at PATH."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.connect(path)
        except OSError as error:
            raise OSError(error.errno, error.strerror, path) from error
        return connection.makefile("wb")


class Replacing:
    """A temporary file next to PATH that commit() renames to PATH. If PATH is a device, pipe or socket, writes to it directly."""

    def __init__(self, path: str) -> None:
        there = _stat(path)
        self._temporary: Optional[str] = None
        if there is not None and _is_stream(there.st_mode):
            self.file: BinaryIO = _connected(path) if stat.S_ISSOCK(there.st_mode) else open(path, "wb")
            return
        self._target = os.path.realpath(path)
        temporary = f"{self._target}.tmp-{os.getpid()}"
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        self._temporary = temporary
        self.file = open(fd, "wb")
        if there is not None:
            os.fchmod(fd, stat.S_IMODE(there.st_mode))

    def commit(self) -> None:
        """Sync the temporary file and replace PATH. OSError: PATH keeps its old contents."""
        try:
            self.file.flush()
            if self._temporary is not None:
                os.fsync(self.file.fileno())
            self.file.close()
            if self._temporary is None:
                return
            os.replace(self._temporary, self._target)
            self._temporary = None
        finally:
            self.close()
        directory = os.open(os.path.dirname(self._target), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def close(self) -> None:
        """Remove the temporary file. Without commit() before, PATH keeps its old contents."""
        try:
            self.file.close()
        except OSError:  # Errors such as a full disk are ignored: the bytes are discarded anyway.
            pass
        if self._temporary is not None:
            os.unlink(self._temporary)
            self._temporary = None


def write(path: str, data: bytes) -> None:
    """Replace the file at PATH, or write to the stream at PATH. OSError: a file at PATH keeps its old contents."""
    try:
        new = Replacing(path)
        try:
            new.file.write(data)
            new.commit()
        finally:
            new.close()
    except OSError as error:
        raise OSError(error.errno, error.strerror, f"cannot write {shown(path)}") from error
