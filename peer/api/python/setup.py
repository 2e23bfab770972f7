"""Builds libhearsay.so into the package: with cmake from this checkout, or a copy of $HEARSAY_LIBRARY."""
import os
import re
import shutil
import subprocess

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # Before setuptools 70.1 it was wheel's.
    from wheel.bdist_wheel import bdist_wheel

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "..", "..", ".."))
BUILD = os.path.join(ROOT, "build", "python")


def version():
    with open(os.path.join(ROOT, "CMakeLists.txt")) as f:
        return re.search(r"^project\(hearsay VERSION ([0-9.]+)", f.read(), re.MULTILINE).group(1)


def library():
    """The path of a libhearsay.so that is built."""
    given = os.environ.get("HEARSAY_LIBRARY")
    if given:
        return os.path.realpath(given)
    jobs = str(len(os.sched_getaffinity(0)))
    subprocess.run(["cmake", "-S", ROOT, "-B", BUILD, "-DCMAKE_BUILD_TYPE=Release"], check=True)
    subprocess.run(["cmake", "--build", BUILD, "-j", jobs, "--target", "libhearsay"], check=True)
    return os.path.realpath(os.path.join(BUILD, "libhearsay.so"))


class BuildWithLibrary(build_py):
    def run(self):
        super().run()
        # An editable install runs the files where they are.
        place = HERE if getattr(self, "editable_mode", False) else self.build_lib
        shutil.copyfile(library(), os.path.join(place, "hearsay", "libhearsay.so"))


class AnyPython(bdist_wheel):
    """ctypes wants this machine, but no certain version of Python."""

    def get_tag(self):
        return ("py3", "none", super().get_tag()[2])


class WithLibrary(Distribution):
    def has_ext_modules(self):
        return True


setup(version=version(), distclass=WithLibrary, cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": AnyPython})
