"""hearsay.h as a reader sees it: comments, and what stands behind them."""
import re

PART = re.compile(r"^-{4,} (.*?) -{4,}$")  # A comment that begins a part of the header.
RULE = re.compile(r"^\*\*(\w+)\.\*\*")  # A paragraph that holds for all functions behind it.


def pieces(text):
    """(the lines of a comment, without what makes them one; the line behind it), or (None, a line of anything else)."""
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
    """The whole declaration of a function that begins with the line `behind`, on one line."""
    at = text.index(behind)
    return " ".join(text[at:text.index(";", at) + 1].removeprefix("HEARSAY_EXPORT ").split())
