"""tests/e2e/fields.py -- checks that a command prints every --json field that peer/docs/json.md names for the command.

    fields.py PAGE COMMAND FILE...     PAGE: json.md; FILE: output of COMMAND, one JSON object or one per line

Prints the fields that no file has, and then exits with 1. Exits with 2 if the page names no field for the command.
"""
import json
import re
import sys


def section(text, title):
    """Returns the text below a heading of level 2."""
    return re.search(r"^## %s$(.*?)^## " % re.escape(title), text, re.M | re.S).group(1)


def outside(text):
    """Returns a text without the parts in parentheses, except parentheses that contain a list of fields."""
    depth, kept, out = 0, [], []
    for i, c in enumerate(text):
        if c == "(":
            kept.append(not out[-1:] or text[i + 1:].startswith(("a list of", "the canonical text) of")))
        if all(kept):
            out.append(c)
        if c == ")" and kept:
            kept.pop()
    return "".join(out)


def names(text):
    return set(re.findall(r"`([a-z][a-z0-9_]*(?:_[a-z0-9-]+)?)`", outside(text)))


def rows(text):
    """Returns (first cell, second cell) of each row of all tables in a text."""
    return re.findall(r"^\| (.*?) \| (.*) \|$", text, re.M)


def table_fields(text, command):
    """Returns the field names in the first column of a table. A row whose second column
    begins with "`local` only" or "`sim` only" is left out for other commands."""
    found = set()
    for first, about in rows(text):
        only = re.match(r"`(local|sim)` only", about)
        if not only or only.group(1) == command:
            found |= names(first)
    return found


def made(text, output):
    """Returns the field names in the part of the page that deploy/man writes for `output`."""
    return names(text.split("<!-- Made by deploy/man: %s -->" % output)[1].split("<!-- End -->")[0])


def wanted(page, command):
    if command in ("local", "sim"):
        part = section(page, "local and sim")
        fields = table_fields(part, command)
        # The lines of the page are joined, because a line may end anywhere in a sentence.
        peers = " ".join(part.split("```")[0].split())
        of_local, of_sim = peers.split("A peer of `local` has")[1].split("A peer of `sim` has")
        fields |= names(of_local) if command == "local" else names(of_sim) - {"metrics"}
        return fields
    if command == "peer":
        return made(page, "metrics.jsonl") | made(page, "summary.json") | table_fields(section(page, "summary.json"), command)
    # The page of hearsay.lab has no section "Output by command". The section "JSON" of the page is used instead.
    part = section(page, "Output by command" if "\n## Output by command\n" in page else "JSON")
    tables = re.search(r"^### (?:`{0}`|Fields of {0})$(.*?)(^### |\Z)".format(re.escape(command)), part, re.M | re.S)
    if tables:
        return table_fields(tables.group(1), command)
    fields = set()
    for first, about in rows(part):
        if first == "`%s`" % command:
            fields |= names(about)
    return fields | made(page, "status") if command == "status" else fields


def keys(value, found):
    if isinstance(value, dict):
        found |= set(value)
        for v in value.values():
            keys(v, found)
    if isinstance(value, list):
        for v in value:
            keys(v, found)


def main():
    page, command, files = open(sys.argv[1]).read(), sys.argv[2], sys.argv[3:]
    # Removes names of commands, files and values, which are no fields.
    fields = wanted(page, command) - {"local", "sim", "train", "auto", "summary"}
    found = set()
    for name in files:
        text = open(name).read()
        try:
            keys(json.loads(text), found)
        except ValueError:
            for line in text.splitlines():
                keys(json.loads(line), found)
    missing = sorted(fields - found)
    if len(fields) < 5:
        print("the page names only %s of %s" % (sorted(fields), command))
        return 2
    for field in missing:
        print("%s --json has no %s" % (command, field))
    print("# %s: %d fields" % (command, len(fields)))
    return 1 if missing else 0


sys.exit(main())
