"""hearsay.lab.settings: reads the settings file of `hearsay-lab compare`, and makes its arms.

    command = "sim"                    # "sim" or "local". Like seed, seeds and budget: only at the top
    peers = 8                          # settings of all arms: flags of the command without leading hyphens
    seeds = 3
    lr = [0.01, 0.03, 0.1]             # candidates: one is chosen for each arm
    budget = ["bytes", "seconds:20"]
    [choco]                            # an arm
    compress = "topk:0.01"
    [exact]                            # two arms: a list is an axis
    mixer = "average"
    compress = ["none", "qsgd:4"]      # makes "exact,compress=none" and "exact,compress=qsgd:4"

--set KEY=VALUE overrides a setting of a section, which overrides a setting at the top. `rounds` and `epochs` exclude each other:
the one with the higher precedence replaces the other. Without sections there is one arm. Numbers keep their text in the file.
"""
import dataclasses
import difflib
import math
import os
import re
import stat
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from . import output
from .cli import InputError
from .output import shown

FILE_BYTES = 32767  # Maximum size of a settings file.
# Largest numbers of arms, sections, settings, values of a setting, budgets and runs in one settings file.
ARMS, SECTIONS, SETTINGS, VALUES, BUDGETS, RUNS = 128, 63, 512, 64, 4, 10000
NAME_BYTES = 255  # Maximum size of the name of an arm and of its directory.
EVALUATIONS = 20  # Number of evaluations of a run with `rounds` and without `evaluate-every`.

# Keys that are not flags of the runs. Value: the reason why a file must not have the key, or "" for a key of the comparison
# itself, which is allowed only at the top of the file.
OURS = {
    "command": "", "seeds": "", "seed": "", "budget": "",
    "out": "each run has its own directory in --out of hearsay-lab",
    "config": "this file has the settings",
    "print-config": "it prints the settings of one run",
    "check": "all runs are checked before the first one starts",
    "fresh": "finished runs are kept; use another --out to start again",
    "json": "it is a flag of hearsay-lab",
    "help": "it is a flag of the command line",
    "tensorboard": "parallel runs would write to one directory; use hearsay-lab tensorboard afterwards",
    "metrics": "parallel runs would listen on one port",
    "trace": "parallel runs would write to one file",
}
RIVALS = (("rounds", "epochs"),)  # Flags that exclude each other.


@dataclasses.dataclass(frozen=True)
class Setting:
    """A key with its values. Several values are an axis of the grid."""

    key: str
    values: Tuple[str, ...]
    where: str  # Place of the setting, for error messages: "FILE line N" or "--set".
    section: Optional[str] = None  # Section that has the setting. None: the top of the file, or --set.
    is_set: bool = False  # True: given by --set, not in the file.


@dataclasses.dataclass(frozen=True)
class Budget:
    """An amount of bytes (of all peers) or seconds at which accuracy is compared."""

    axis: str  # Unit of the budget: "bytes" or "seconds".
    most: Optional[float] = None  # Amount in this unit. None: the bytes or seconds of the run that needed the least.


@dataclasses.dataclass(frozen=True)
class Arm:
    """One cell of the grid: the settings of its runs, except lr, seed and out."""

    name: str
    directory: str
    values: Mapping[str, str]
    rates: Tuple[str, ...] = ()  # Candidates for lr. Empty: the default of the command.

    def rate(self, i: int) -> Optional[str]:
        """The i-th learning rate. None: the default of the command."""
        return self.rates[i] if self.rates else None

    def rate_directory(self, i: int) -> str:
        """The directory of the i-th learning rate, such as "lr-0.01" or "lr-default"."""
        return directory_name(f"lr-{(self.rate(i) or 'default')[:60]}")

    def is_edge(self, i: int) -> bool:
        """Whether the i-th learning rate is the smallest or the largest of several candidates."""
        tried = [number(rate) for rate in self.rates]
        return len(tried) > 1 and None not in tried and tried[i] in (min(tried), max(tried))  # type: ignore[type-var]

    def flags(self, i: int, seed: int, out: str, validate: bool) -> List[str]:
        """Command-line flags of a run. `validate`: a tenth of the training samples replaces the test set."""
        found = [f"--{key}={value}" for key, value in self.values.items() if not (validate and key == "data")]
        if validate:
            found.append(f"--data={self.values.get('data', 'glyphs')},validate=0.1")
        rounds = self.values.get("rounds", "")
        if "evaluate-every" not in self.values and re.fullmatch("[0-9]+", rounds):
            found.append(f"--evaluate-every={max(1, int(rounds) // EVALUATIONS)}")
        rate = self.rate(i)
        if rate is not None:
            found.append(f"--lr={rate}")
        return found + [f"--seed={seed}", f"--out={out}"]


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The contents of a settings file and --set."""

    path: str  # Path of the file.
    command: str  # "sim" or "local".
    seed: int  # First seed.
    n_seeds: int  # Number of seeds per arm.
    budgets: Tuple[Budget, ...]
    arms: Tuple[Arm, ...]

    @property
    def n_rates(self) -> int:
        """The number of candidates for lr, equal for all arms. 1: nothing is chosen."""
        return max(1, len(self.arms[0].rates))


def number(text: str) -> Optional[float]:
    """The finite number in a text. None: the text is not a finite number."""
    try:
        x = float(text) if re.fullmatch(r"[-+0-9.eE]+", text) else math.nan
    except ValueError:
        return None
    return x if math.isfinite(x) else None


def directory_name(name: str) -> str:
    """The directory for a name: "/" becomes %2F and "%" %25. A leading dot becomes %2E, and so does each dot of a name that
    begins like a file of the comparison (compare.html, compare.csv, evaluation.json)."""
    is_file = name.startswith(("compare.", "evaluation."))
    return "".join(f"%{ord(c):02X}" if c in "/%" or c == "." and (i == 0 or is_file) else c for i, c in enumerate(name))


# ---- Reading the settings file. ----


def read_text(path: str) -> str:
    """The text of a settings file. Registers the file as an input, so that no output replaces the file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot open {shown(path)}: {getattr(error, 'strerror', None) or error}") from error
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise InputError(f"{shown(path)}: found another kind of file, expected a regular file")
    with open(fd, "rb") as f:
        output.add_input(fd)
        data = f.read(FILE_BYTES + 1)
    if len(data) > FILE_BYTES:
        raise InputError(f"{shown(path)}: found a longer file, expected at most {FILE_BYTES} bytes")
    try:
        return data.decode("utf-8-sig")  # Drops the byte order mark that some editors write.
    except UnicodeDecodeError as error:
        raise InputError(f"{shown(path)}: byte {error.start} is not UTF-8, expected a TOML file") from None


def parse_toml(path: str, text: str) -> Dict[str, Any]:
    """The tables of a TOML file. Floats stay text, so that a value reaches the command unchanged."""
    try:
        import tomllib
    except ImportError:
        raise InputError("reading TOML files needs Python 3.11 or newer, which has the module tomllib") from None
    try:
        return tomllib.loads(text, parse_float=lambda digits: digits.replace("_", ""))
    except tomllib.TOMLDecodeError as error:
        why, _, place = str(error).rpartition(" (at ")
        at = re.match("line ([0-9]+)", place)
        number_ = int(at.group(1)) if at else len(text.rstrip().split("\n"))  # Without a line number, the error is at the end of the file.
        line = text.split("\n")[number_ - 1].strip()
        advice = as_toml(line)
        raise InputError(f"{shown(path)} line {number_}: found {shown(line[:80])!r}, expected TOML"
                         + (f" ({shown(why)})" if advice in (None, line) else f": {shown(str(advice)[:200])}")) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{shown(path)}: {shown(str(error)[:200])}, expected TOML") from None


_BARE = re.compile(r"[A-Za-z0-9_-]+")
_NUMBER = re.compile(r"[-+]?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")


def as_toml(line: str) -> Optional[str]:
    """Converts a line of the format of older versions (`key = word, word` or `[any name]`) to TOML, to suggest it in an error
    message. None: the line has another form."""

    def quoted(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    section = re.fullmatch(r"\[([^\[\]\"']+)\]\s*(#.*)?", line)
    if section:
        name = section.group(1).strip()
        return f"[{name if _BARE.fullmatch(name) else quoted(name)}]" + (f"  {section.group(2)}" if section.group(2) else "")
    setting = re.fullmatch(r"([A-Za-z0-9_-]+)\s*=\s*([^#\"'\[\]]*?)\s*(#.*)?", line)
    if setting is None or not setting.group(2):
        return None
    key, value = setting.group(1), setting.group(2)
    words = [value] if key == "data" else [word.strip() for word in value.split(",")]
    texts = [word if _NUMBER.fullmatch(word) or word in ("true", "false") else quoted(word) for word in words]
    made = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
    return f"{key} = {made}" + (f"  {setting.group(3)}" if setting.group(3) else "")


def _lines(text: str) -> Dict[Tuple[Optional[str], str], int]:
    """Line numbers by section and key. The header of a section has the key ""."""
    name = r"""("(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+)"""
    found: Dict[Tuple[Optional[str], str], int] = {}
    section: Optional[str] = None
    for number_, line in enumerate(text.split("\n"), 1):
        header = re.match(rf"\s*\[+\s*{name}\s*[].]", line)
        key = re.match(rf"\s*{name}\s*=", line)
        if header:
            section = _unquoted(header.group(1))
            found.setdefault((section, ""), number_)
        elif key:
            found.setdefault((section, _unquoted(key.group(1))), number_)
    return found


def _unquoted(name: str) -> str:
    return re.sub(r"\\(.)", r"\1", name[1:-1]) if name[0] in "\"'" else name


# ---- Checking values. ----


def _value(value: Any, where: str, key: str) -> str:
    """One value as the text of a flag."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, str)):
        text = str(value)
        _check_text(text, f"{where}: {shown(key)}")
        return text
    kind = "a table" if isinstance(value, dict) else "a list in a list" if isinstance(value, list) else "a date or time"
    raise InputError(f"{where}: {shown(key)}: found {kind}, expected a text, a number, true, false or a list of these")


def _check_text(text: str, where: str) -> None:
    if any(ord(c) < 32 or ord(c) == 127 for c in text):
        raise InputError(f"{where}: found a control character")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise InputError(f"{where}: found bytes that are not UTF-8") from None


def check_values(values: Sequence[str], where: str, key: str, most: int = VALUES) -> Tuple[str, ...]:
    """The values, checked. InputError: no value, too many, or one value twice. 0.1 and 0.10 are the same value."""
    if not values or "" in values:
        raise InputError(f"{where}: {key}: found no value, expected one")
    if len(values) > most:
        raise InputError(f"{where}: {key}: found {len(values)} values, expected at most {most}")
    seen = set()
    for value in values:
        x = number(value)
        if (value if x is None else x) in seen:
            raise InputError(f"{where}: {key}: found {shown(value[:80])!r} twice, expected it once")
        seen.add(value if x is None else x)
    return tuple(values)


def _setting(key: str, value: Any, where: str, section: Optional[str]) -> Setting:
    _check_text(key, where)
    texts = [_value(one, where, key) for one in (value if isinstance(value, list) else [value])]
    return Setting(key, check_values(texts, where, shown(key)), where, section)


def _read_file(path: str, text: str) -> Tuple[List[Setting], List[str]]:
    """All settings in the order of the file, and the names of the sections."""
    tables, lines = parse_toml(path, text), _lines(text)
    settings: List[Setting] = []
    sections: List[str] = []

    def where(section: Optional[str], key: str) -> str:
        line = lines.get((section, key))
        return f"{shown(path)} line {line}" if line is not None else shown(path)

    for key, value in tables.items():
        if not isinstance(value, dict):
            settings.append(_setting(key, value, where(None, key), None))
            continue
        at = where(key, "")
        _check_text(key, at)
        if not key.strip():
            raise InputError(f"{at}: found a section without a name, expected [NAME]")
        sections.append(key)
        for inner, one in value.items():
            if isinstance(one, dict):
                raise InputError(f"{at}: found a section in the section [{shown(key)}], expected settings. Put a name with "
                                 f"a dot in quotes: [\"{shown(key)}.{shown(inner)}\"]")
            settings.append(_setting(inner, one, where(key, inner), key))
    if len(sections) > SECTIONS:
        raise InputError(f"{shown(path)}: found {len(sections)} sections, expected at most {SECTIONS}")
    if len(settings) > SETTINGS:
        raise InputError(f"{shown(path)}: found {len(settings)} settings, expected at most {SETTINGS}")
    return settings, sections


def split_values(text: str, key: str, flag: str) -> List[str]:
    """The values of KEY=V,V... on a command line. A text in double quotes, and any text for `data`, is one value."""
    if text.startswith('"'):
        if len(text) < 2 or not text.endswith('"'):
            raise InputError(f"{flag}: {shown(key)}: found no \" at the end of {shown(text[:80])!r}")
        return [re.sub(r"\\(.)", r"\1", text[1:-1])]
    values = [text] if key == "data" else [one.strip() for one in text.split(",")]
    if "" in values:
        raise InputError(f"{flag}: {shown(key)}: found no value between two commas or at an end")
    return values


def split_pair(text: str, flag: str) -> Tuple[str, str]:
    """KEY and VALUE of a text KEY=VALUE."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise InputError(f"{flag}: found {shown(text[:80])!r}, expected KEY=VALUE")
    _check_text(text, flag)
    return key.strip(), value.strip()


def _read_sets(sets: Sequence[str]) -> List[Setting]:
    found: List[Setting] = []
    for text in sets:
        key, value = split_pair(text, "--set")
        if any(one.key == key for one in found):
            raise InputError(f"--set: {shown(key)} is set twice")
        found.append(Setting(key, check_values(split_values(value, key, "--set"), "--set", shown(key)), "--set", is_set=True))
    return found


# ---- Checking keys. ----


def near(key: str, known: Sequence[str]) -> str:
    """The text ", did you mean KEY?" for a similar key. "": no key is similar."""
    found = difflib.get_close_matches(key, known, 1, 0.7)
    return f", did you mean {found[0]}?" if found else ""


def check_key(key: str, where: str, command: str, flags: Sequence[str], own: Sequence[str] = ()) -> None:
    """InputError for a key that runs must not have, or that is no flag of the command. `own`: keys of the comparison itself."""
    if key in own:
        return
    if key in OURS:
        raise InputError(f"{where}: {key}: {OURS[key] or 'it belongs to hearsay-lab compare'}")
    if key not in flags:
        known = [flag for flag in flags if flag not in OURS] + list(own)
        raise InputError(f"{where}: found the key {shown(key[:80])!r}, which is no flag of hearsay {command}{near(key, known)}")


# ---- Settings of the comparison itself. ----


def _top(settings: Sequence[Setting], key: str) -> Optional[Setting]:
    """The setting of a key by --set, otherwise the one at the top of the settings file. None: the key is set in neither place."""
    found = [one for one in settings if one.key == key and one.section is None]
    return found[-1] if found else None


def _command(settings: Sequence[Setting]) -> str:
    one = _top(settings, "command")
    if one is None:
        return "sim"
    if one.values not in (("sim",), ("local",)):
        raise InputError(f"{one.where}: command: found {shown(one.values[-1][:80])!r}, expected \"sim\" or \"local\"")
    return one.values[0]


def whole(text: str, low: int, high: int, where: str) -> int:
    """The whole number in a text. InputError: no whole number, or not in [low, high]."""
    if re.fullmatch("[0-9]{1,16}", text) and low <= int(text) <= high:
        return int(text)
    raise InputError(f"{where}: found {shown(text[:80])!r}, expected a whole number from {low} to {high}")


def _number(settings: Sequence[Setting], key: str, low: int, high: int) -> int:
    one = _top(settings, key)
    if one is None:
        return 1
    if len(one.values) > 1:
        raise InputError(f"{one.where}: {key}: found {len(one.values)} values, expected a whole number from {low} to {high}")
    return whole(one.values[0], low, high, f"{one.where}: {key}")


def _budgets(settings: Sequence[Setting]) -> Tuple[Budget, ...]:
    one = _top(settings, "budget")
    if one is None:
        return ()
    if len(one.values) > BUDGETS:
        raise InputError(f"{one.where}: budget: found {len(one.values)}, expected at most {BUDGETS}")
    found = []
    for value in one.values:
        axis, colon, text = value.partition(":")
        most = number(text) if colon else None
        if axis not in ("bytes", "seconds") or colon and (most is None or not most > 0):
            raise InputError(f"{one.where}: budget: found {shown(value[:80])!r}, expected bytes, seconds, bytes:N or seconds:X")
        found.append(Budget(axis, most))
    return tuple(found)


# ---- Making the arms. ----


def _weight(one: Setting, section: Optional[str]) -> int:
    """The precedence of a setting in a section. The highest one is used. 0: the setting does not apply to the section."""
    return 3 if one.is_set else 2 if one.section == section else 1 if one.section is None else 0


def _are_rivals(a: str, b: str) -> bool:
    return a == b or (a, b) in RIVALS or (b, a) in RIVALS


def _effective(settings: Sequence[Setting], section: Optional[str]) -> List[Setting]:
    """The settings that apply to the arms of a section, in the order of the file."""
    found = [one for one in settings if _weight(one, section) > 0 and one.key not in OURS]
    return [one for one in found
            if not any(_weight(other, section) > _weight(one, section) and _are_rivals(other.key, one.key) for other in found)]


def make_arm(path: str, section: Optional[str], axes: Sequence[Setting], which: int, rates: Tuple[str, ...]) -> Arm:
    """The arm with index `which` in a grid. The last axis changes fastest."""
    values: Dict[str, str] = {}
    parts = [] if section is None else [section]
    stride = math.prod(len(axis.values) for axis in axes)
    for axis in axes:
        stride //= len(axis.values)
        values[axis.key] = axis.values[which // stride % len(axis.values)]
        if len(axis.values) > 1:
            parts.append(f"{axis.key}={values[axis.key]}")
    name = ",".join(parts) or "run"
    directory = directory_name(name)
    if max(len(name.encode()), len(directory.encode())) > NAME_BYTES:
        raise InputError(f"{shown(path)}: found an arm whose name is too long for a directory ({shown(name[:80])}...), "
                         f"expected at most {NAME_BYTES} bytes")
    return Arm(name, directory, values, rates)


def _arms(path: str, settings: Sequence[Setting], sections: Sequence[str]) -> Tuple[Arm, ...]:
    arms: List[Arm] = []
    for section in sections or [None]:  # type: ignore[list-item]
        axes = _effective(settings, section)
        rates = next((one.values for one in axes if one.key == "lr"), ())
        axes = [one for one in axes if one.key != "lr"]
        n = math.prod(len(axis.values) for axis in axes)
        if len(arms) + n > ARMS:
            raise InputError(f"{shown(path)}: found {len(arms) + n} arms or more, expected at most {ARMS}")
        arms += [make_arm(path, section, axes, which, rates) for which in range(n)]
    names = [arm.name for arm in arms]
    for arm in arms:
        if names.count(arm.name) > 1:
            raise InputError(f"{shown(path)}: found two arms of the name {shown(arm.name)!r}, expected one")
        if max(1, len(arm.rates)) != max(1, len(arms[0].rates)):  # An arm with more candidates for lr would have an advantage.
            raise InputError(f"{shown(path)}: lr: found {max(1, len(arm.rates))} values for the arm {shown(arm.name)!r} and "
                             f"{max(1, len(arms[0].rates))} for {shown(arms[0].name)!r}, expected the same number for each arm")
    return tuple(arms)


def _check_evaluations(arms: Sequence[Arm], budget: Setting) -> None:
    """InputError: an arm is not evaluated during training, so its accuracy at a budget would be unknown."""
    for arm in arms:
        if "rounds" not in arm.values and "evaluate-every" not in arm.values:
            raise InputError(f"{budget.where}: budget: found neither rounds nor evaluate-every in the arm "
                             f"{shown(arm.name)!r}, expected one of them")


def command_of(path: str, text: str, sets: Sequence[str]) -> str:
    """The command of a file: "sim" or "local"."""
    return _command(_read_file(path, text)[0] + _read_sets(sets))


def read(path: str, text: str, sets: Sequence[str], flags: Sequence[str]) -> Comparison:
    """Read a settings file and --set. `flags`: the names of all flags of the command. InputError: a setting is wrong."""
    settings, sections = _read_file(path, text)
    settings += _read_sets(sets)
    if not settings and not sections:
        raise InputError(f"{shown(path)}: found no settings, expected the settings of at least one arm")
    command = _command(settings)
    own = [key for key, why in OURS.items() if not why]
    for one in settings:
        if one.section is not None and one.key in own:
            raise InputError(f"{one.where}: {one.key}: found in the section [{shown(one.section)}], expected above the first "
                             "section: all arms share it")
        check_key(one.key, one.where, command, flags, own)
    seed, n_seeds = _number(settings, "seed", 0, 1 << 53), _number(settings, "seeds", 1, 1000)
    budgets = _budgets(settings)
    arms = _arms(path, settings, sections)
    if budgets:
        budget = _top(settings, "budget")
        assert budget is not None
        _check_evaluations(arms, budget)
    made = Comparison(path, command, seed, n_seeds, budgets, arms)
    n_runs = len(arms) * (n_seeds + (made.n_rates if made.n_rates > 1 else 0))
    if n_runs > RUNS:
        raise InputError(f"{shown(path)}: found {n_runs} runs, expected at most {RUNS}")
    return made
