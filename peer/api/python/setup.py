"""Copies libhearsay.so into the package: the file $HEARSAY_LIBRARY, or else the one that cmake builds from this checkout.

If deploy/quickstart has configured build/release, cmake builds there, and compiles only files that have changed. Otherwise
cmake compiles the whole library in build/python. `pip install -v` shows the progress.
"""
import os
import re
import shutil
import subprocess

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # Before setuptools 70.1, bdist_wheel was in the package wheel.
    from wheel.bdist_wheel import bdist_wheel

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "..", "..", ".."))
RELEASE = os.path.join(ROOT, "build", "release")
PYTHON = os.path.join(ROOT, "build", "python")


def version():
    with open(os.path.join(ROOT, "CMakeLists.txt")) as f:
        return re.search(r"^project\(hearsay VERSION ([0-9.]+)", f.read(), re.MULTILINE).group(1)


def say(text):
    print("hearsay: " + text, flush=True)


def release_is_usable():
    """Whether build/release is a release build of this checkout, without sanitizers, that this user may write to."""
    try:
        with open(os.path.join(RELEASE, "CMakeCache.txt")) as f:
            cache = dict(re.findall(r"^(\w+):\w+=(.*)$", f.read(), re.MULTILINE))
        return (
            os.path.samefile(cache["CMAKE_HOME_DIRECTORY"], ROOT)
            and cache["CMAKE_BUILD_TYPE"] == "Release"
            and not cache.get("SAN")
            and os.access(RELEASE, os.W_OK)
        )
    except (OSError, KeyError):
        return False


def modified(path):
    return os.stat(path).st_mtime_ns if os.path.exists(path) else None


def library():
    """Builds libhearsay.so if necessary, and returns its path."""
    given = os.environ.get("HEARSAY_LIBRARY")
    if given:
        say("using the library %s" % given)
        return os.path.realpath(given)
    build = RELEASE if release_is_usable() else PYTHON
    path = os.path.join(build, "libhearsay.so")
    before = modified(path)
    if before is None:
        say("compiles %s, which takes a minute or two" % path)
    if build == PYTHON:
        subprocess.run(["cmake", "-S", ROOT, "-B", build, "-DCMAKE_BUILD_TYPE=Release"], check=True)
    jobs = str(len(os.sched_getaffinity(0)))
    subprocess.run(["cmake", "--build", build, "-j", jobs, "--target", "libhearsay"], check=True)
    if modified(path) == before:
        say("%s is up to date" % path)
    return os.path.realpath(path)


class BuildWithLibrary(build_py):
    def run(self):
        super().run()
        # An editable install uses the package in the checkout, so the library is copied there.
        place = HERE if getattr(self, "editable_mode", False) else self.build_lib
        shutil.copyfile(library(), os.path.join(place, "hearsay", "libhearsay.so"))


class AnyPython(bdist_wheel):
    """A wheel for this machine, but for every version of Python 3: ctypes does not depend on it."""

    def get_tag(self):
        return ("py3", "none", super().get_tag()[2])


class WithLibrary(Distribution):
    def has_ext_modules(self):
        return True


setup(version=version(), distclass=WithLibrary, cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": AnyPython})
