#!/usr/bin/env python3
"""tests/lint_prose.py -- measures traits of unclear prose in comments and pages, per folder.

  lint_prose.py [ROOT]          prints a table and each folder over a limit; exit code 1 if there is one
  lint_prose.py --show N        prints N examples of each trait, too

The traits, each as a share of the comments (or paragraphs) of a folder:

  opens    begins with a pronoun or a function word instead of its subject
  open end ends with a comma, semicolon or colon, because the sentence continues in the next comment
  person   calls a machine, link or message "who", "somebody", "nobody"
  phrase   has an archaic or indirect turn of phrase
  former   has a term that .github/CONTRIBUTING.md's glossary replaced

The limits are those of the worst of four well-known C projects (libuv, quicly, cowsql/raft, rax), measured with
similar rules. A low figure does not prove that a text is clear: only a reader who does not know the code can tell.
"""
import collections
import pathlib
import random
import re
import sys

LIMIT = 6.0  # Largest share of comments or paragraphs of a folder, in percent, that may have a trait of unclear prose.
FEWEST = 20  # A folder with fewer comments has no row of its own: its comments count in the parent folder only.

OPENERS = """it its that those this-one these who whom whose whoever what nobody somebody anybody so-many so-much so-long so-far
so-often the-same by of they them their and but nor or until-then then there where which as to-all ours with-it for-it"""
PEOPLE = "who whom whose whoever whomever somebody someone nobody no-one anybody everybody"
PHRASES = """so-many so-much-of that-of those-of of-which of-whom anew beside for-ever is-had be-had are-had had-from lest in-vain
is-none are-none there-is-none has-none comes-to-nothing of-theirs of-ours is-told are-told was-told is-said-of are-said withal thereof
is-no-such of-old by-then a-moment-ago lately is-due gets-on goes-on stands-still said-to-be as-it-stands as-they-come mend mends mended
nor-is nor-does nor-has nor-are nor-was"""
FORMER = "last-phase --patience --worker-limit --tolerate --pull --forget --skew --leash-fd --uplink"


def pattern(words, prefix=r"(?<![\w-])", suffix=r"(?![\w-])", begin=False):
    alternatives = "|".join(re.escape(word).replace(r"\-", "-").replace("-", r"[\s]") if not word.startswith("--") else re.escape(word)
                            for word in sorted(words.split(), key=len, reverse=True))
    return re.compile(("^" if begin else prefix) + "(?:" + alternatives + ")" + suffix, re.I)


TRAITS = {"opens": pattern(OPENERS, begin=True), "person": pattern(PEOPLE), "phrase": pattern(PHRASES), "former": pattern(FORMER)}


def comments(text):
    """Yields (line, text) of each comment of three words or more. Strings are blanked first: they may contain "/*"."""
    code = re.sub(r'"(?:\\.|[^"\\\n])*"', lambda m: " " * len(m.group()), text)
    for m in re.finditer(r"/\*(.*?)\*/", code, re.S):
        lines = (re.sub(r"^[\s*]+", "", line).strip() for line in text[m.start(1):m.end(1)].strip("*").split("\n"))
        body = re.sub(r"^\S+/\S+\.[ch] -- ", "", " ".join(line for line in lines if line)).strip("- ")
        if len(re.findall(r"[A-Za-z]{2,}", body)) >= 3:
            yield text.count("\n", 0, m.start()) + 1, body


def paragraphs(text):
    """Yields (line, text) of each paragraph outside code blocks, tables, headings and pictures."""
    block, begin, lines = False, 0, []
    for number, line in enumerate(text.split("\n") + [""], 1):
        if line.startswith("```"):
            block = not block
        elif block or line.startswith(("|", "#", "    ", "![")):
            continue
        elif line.strip():
            begin = begin if lines else number
            lines.append(line.strip())
        elif lines:
            yield begin, " ".join(lines)
            lines = []


def traits(body, page):
    found = [name for name, rule in TRAITS.items() if rule.search(body)]
    if body.endswith((",", ";") if page else (",", ";", ":")):
        found.append("open end")
    return found


def main():
    arguments = sys.argv[1:]
    show = int(arguments.pop(arguments.index("--show") + 1)) if "--show" in arguments else 0
    arguments = [a for a in arguments if a != "--show"]
    root = pathlib.Path(arguments[0]) if arguments else pathlib.Path(__file__).resolve().parent.parent
    counts = {False: collections.defaultdict(collections.Counter), True: collections.defaultdict(collections.Counter)}
    examples = collections.defaultdict(list)
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root)
        if path.suffix not in (".c", ".h", ".md") or any(part.startswith("build") or part in (".git", "shared") for part in relative.parts):
            continue
        page, folder = path.suffix == ".md", relative.parent.as_posix()
        text = path.read_text(encoding="utf-8", errors="replace")
        for line, body in (paragraphs if page else comments)(text):
            found = traits(body, page)
            for name in {folder, relative.parts[0] if len(relative.parts) > 1 else ".", "all"}:
                counts[page][name].update(["n", *found, *(["any"] if found else [])])
            for name in found:
                examples[name].append(f"{relative}:{line}: {body[:150]}")
    bad = 0
    columns = [*TRAITS, "open end", "any"]
    for page, kind in ((False, "comments"), (True, "pages")):
        print(f"{kind:36}{'n':>6}" + "".join(f"{c:>10}" for c in columns) + "   percent")
        for name, count in sorted(counts[page].items(), key=lambda item: (item[0] != "all", item[0])):
            if count["n"] < FEWEST:
                continue
            share = {c: 100 * count[c] / count["n"] for c in columns}
            over = share["any"] > LIMIT
            bad |= over
            print(f"{name:36}{count['n']:>6}" + "".join(f"{share[c]:>10.1f}" for c in columns) + (f"   over {LIMIT:g} %" if over else ""))
    for name, rows in examples.items():
        for row in random.Random(1).sample(rows, min(show, len(rows))):
            print(f"{name}: {row}")
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
