#!/usr/bin/env python3
"""Compares the reference of libhearsay with its header: api_docs.py HEADER MAN [HTML]. Prints one line per difference.

Each function that the header declares must have a manual page and an entry in the HTML page. The manual page and the
HTML entry have the text of the function's comment, describe its errors, and link to the rules for all functions on
threads, errors and memory.
"""
import html
import os
import re
import sys

RULES = ("Threads", "Fork", "Errors", "Memory")


def words(text):
    """Returns a text without backticks and with single blanks, so that texts of header, manual and HTML can be compared."""
    return " ".join(text.replace("`", "").split())


def comments(header):
    """Returns (name, return type, comment) of each function that the header declares."""
    pattern = re.compile(r"/\*((?:(?!\*/).)*)\*/\nHEARSAY_EXPORT ([^;(]*?)\b(hearsay_\w+)\(", re.DOTALL)
    return [(m[3], m[2].strip(), words(re.sub(r"\n \*", "\n", m[1]))) for m in pattern.finditer(header)]


def of_roff(path):
    """Returns a dict from the headings of a manual page to the plain text of their sections."""
    sections, name = {}, ""
    with open(path) as f:
        for line in f.read().splitlines():
            if line.startswith(".SH "):
                name = line[4:]
            elif not line.startswith("."):
                line = re.sub(r"\\fB(hearsay_\w+)\\fR\(3\)", r"\1()", line)
                line = re.sub(r"\\f[BR]|\\&", "", line).replace(r"\-", "-").replace(r"\e", "\\")
                sections[name] = sections.get(name, "") + " " + line
    return {name: words(text) for name, text in sections.items()}


def of_html(path):
    """Returns a dict from the name of a function to the text of its entry."""
    with open(path) as f:
        entries = f.read().split('<h2 class="memtitle">')[1:]
    texts = [re.sub(r"</?(p|br|div|dl|dt|dd|td|tr|h2|li)\b[^>]*>", " ", one) for one in entries]
    texts = [words(html.unescape(re.sub(r"<[^>]*>", "", one))) for one in texts]
    return {name: text for text in texts for name in re.findall(r"(hearsay_\w+)\(\)", text)[:1]}


def says_errors(returned, comment):
    if re.search(r"HEARSAY_(USAGE|SYSTEM|NOT_FINITE)\b|[Nn]ever fails|as hearsay_set", comment):
        return True
    return returned != "int" and re.search(r"NULL|\b0\b", comment) is not None or "1 or 0" in comment


def main():
    with open(sys.argv[1]) as f:
        header = f.read()
    declared = sorted(set(re.findall(r"\b(hearsay_\w+)\(", re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL))))
    functions = comments(header)
    bad = [f"{name}: no comment of its own" for name in declared if name not in [one for one, _, _ in functions]]
    pages = sorted(name[:-2] for name in os.listdir(sys.argv[2]) if name != "libhearsay.3")
    if pages != declared:
        bad.append(f"pages and functions differ: {sorted(set(pages) ^ set(declared))}")
    entries = of_html(os.path.join(sys.argv[3], "hearsay_8h.html")) if len(sys.argv) > 3 else None
    for name, returned, comment in functions:
        page = of_roff(os.path.join(sys.argv[2], name + ".3"))
        if page.get("DESCRIPTION") != comment:
            bad.append(f"{name}(3): its text is not the header's")
        if not says_errors(returned, comment):
            bad.append(f"{name}: its comment does not say how it fails")
        bad += [f"{name}(3): no section {rule.upper()}" for rule in RULES if not page.get(rule.upper())]
        if entries is not None:
            entry = entries.get(name, "")
            if comment not in entry:
                bad.append(f"{name}: its entry has not the header's text")
            bad += [f"{name}: its entry has no link to {rule}" for rule in RULES if rule not in entry.partition("See also")[2]]
    print("\n".join(bad), end="\n" if bad else "")
    sys.exit(len(bad) > 0 or len(functions) < 30)


if __name__ == "__main__":
    main()
