"""pictures.py -- imports hearsay.lab.drawing for the scripts that draw. If this fails, `drawing` is None, and WHY
has the reason."""
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "peer/api/python"))
os.environ.setdefault("HEARSAY_LIBRARY", os.path.join(ROOT, "build/release/libhearsay.so"))
try:
    from hearsay.lab import drawing
    WHY = "no pictures: matplotlib is not installed (Debian: python3-matplotlib)" if drawing.matplotlib is None else None
except ImportError as missing:
    drawing, WHY = None, f"no pictures: {missing}"
if WHY:
    drawing = None


def save(fig, path, title):
    with open(path, "w", encoding="utf-8") as f:
        f.write(drawing.file_svg(fig, title))
    return path
