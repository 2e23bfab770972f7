"""Splits the header hearsay.h into its comments and the declarations that follow them, for the generated reference."""
import re

PART = re.compile(r"^-{4,} (.*?) -{4,}$")  # A comment line that is the heading of a section of the header.
RULE = re.compile(r"^\*\*(\w+)\.\*\*")  # Start of a paragraph, such as "**Threads.**", for all functions after it.


def pieces(text):
    """Yields (lines of a comment without the comment signs, line after the comment), or (None, line) for other lines."""
    lines, i = text.split("\n"), 0
    while i < len(lines):
        if not lines[i].lstrip().startswith("/*"):
            yield None, lines[i]
            i += 1
            continue
        end = next(k for k in range(i, len(lines)) if lines[k].endswith("*/"))
        said = [re.sub(r"^\s*(/\*| \*(?!/)) ?", "", line) for line in lines[i:end + 1]]
        said[-1] = said[-1][:-2].rstrip()
        yield said if said[-1] else said[:-1], lines[end + 1]
        i = end + 1


def declaration(text, behind):
    """Returns the declaration of a function as one line. `behind`: the first line of the declaration in the header `text`."""
    at = text.index(behind)
    return " ".join(text[at:text.index(";", at) + 1].removeprefix("HEARSAY_EXPORT ").split())
