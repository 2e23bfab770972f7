#!/usr/bin/env bash
# tests/e2e/completion.sh -- bash completes commands, flags and values. Keys are typed into an interactive bash on a
# pseudo-terminal. Also tests --version.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin

# ---- The output of --version. ----

check "--version begins with the version" [ "$("$HEARSAY" --version | head -n 1 | grep -cE '^hearsay [0-9]+\.[0-9]+\.[0-9]+$')" = 1 ]
check "  --version prints the version of every library" [ "$("$HEARSAY" --version \
    | grep -cE '^(libuv|libsodium|OpenBLAS|msgpack|zlib|jansson) +[0-9]+\.[0-9]')" = 6 ]
check "--version --json says the same" python3 - "$HEARSAY" <<'END'
import json, subprocess, sys
said = lambda *a: subprocess.run([sys.argv[1], "--version", *a], capture_output=True, text=True, check=True).stdout
lines = said().splitlines()
facts = json.loads(said("--json"))
assert lines[0] == "hearsay " + facts.pop("version")
assert len(lines) == 1 + len(facts) and len(facts) >= 13, facts
for line, (name, value) in zip(lines[1:], facts.items()):
    assert line.split("  ")[0].replace(" ", "_") == name, (line, name)
    assert line.endswith("  " + ("unknown" if value is None else value)), (line, value)
assert facts["compiler"].split()[0] in ("gcc", "clang"), facts
END
"$HEARSAY" --version --yaml >version.out 2>version.err
check "--version with another argument is refused" [ $? = 2 ]
check "  the error names the argument" grep -qx "hearsay --version: found '--yaml', expected --json or nothing" version.err
"$HEARSAY" completion fish >fish.out 2>fish.err
check "only bash" [ "$?:$(cat fish.err):$(cat fish.out)" = "2:hearsay completion: found 'fish', expected bash:" ]

# ---- Completion in bash. ----

check "the script is printed" eval '"$HEARSAY" completion bash >completion.bash'
check "  sourcing the script prints nothing" [ -z "$(bash -u -c '. ./completion.bash' 2>&1)" ]
ln -s "$HEARSAY" hearsay
mkdir -p sets/mnist sets/other
: >sets/model.safetensors

# Each line is a test case: "typed text => command line after TAB", or "typed text ?? words". In the second form bash must
# list the words after two TABs, except words with "!", which it must not list.
cat >cases <<'END'
hearsay loc => hearsay local 
hearsay help topo => hearsay help topology 
hearsay local --pol => hearsay local --policy 
hearsay local --policy as => hearsay local --policy async 
hearsay local --policy=as => hearsay local --policy=async 
hearsay local --policy ss => hearsay local --policy ssp:
hearsay sim --topology exp => hearsay sim --topology exponential 
hearsay sim --topology=reg => hearsay sim --topology=regular:
hearsay local --compress low => hearsay local --compress lowrank 
hearsay local --out sets/o => hearsay local --out sets/other/
hearsay local --out sets/mod => hearsay local --out sets/mod
hearsay eval sets/mod => hearsay eval sets/model.safetensors 
hearsay eval --data mnist:sets/mn => hearsay eval --data mnist:sets/mnist/
hearsay eval --data=mnist:sets/mn => hearsay eval --data=mnist:sets/mnist/
hearsay eval --data gly => hearsay eval --data glyphs 
hearsay peer --key sets/mod => hearsay peer --key sets/model.safetensors 
hearsay completion ba => hearsay completion bash 
hearsay key ne => hearsay key new 
hearsay key invite --id => hearsay key invite --identity 
hearsay key new sets/mod => hearsay key new sets/model.safetensors 
hearsay key  ?? new identity invite ! local --help
hearsay  ?? local peer sim train key completion help --version ! --policy
hearsay local --p ?? --peers --policy --partition ! --json --listen
hearsay peer --shard  ?? own auto ! i/n --key
hearsay local --overlap  ?? 0 1 layer ! --json
hearsay local --fresh -- ?? --topology --out
hearsay local --peers  ?? ! --topology sets
END
cat >type.py <<'END'
import os, pty, re, select, sys, time
limit = float(sys.argv[1])
failed = 0

def shell():
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update(PS1="@ ", TERM="dumb", INPUTRC="/dev/null", PATH=os.getcwd() + ":" + os.environ["PATH"])
        os.environ.pop("PROMPT_COMMAND", None)
        os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
    return pid, fd

def read_until(fd, done):
    text, end = "", time.monotonic() + limit
    while not done(text):
        if time.monotonic() > end or not select.select([fd], [], [], limit)[0]:
            raise SystemExit(f"not ok - bash says nothing more: {text!r}")
        text += os.read(fd, 65536).decode(errors="replace").replace("\a", "")
    return text

pid, fd = shell()
os.write(fd, b"PS1='%' PS2=; bind 'set enable-bracketed-paste off' 'set bell-style none' "
             b"'set completion-query-items 0' 'set page-completions off'; stty -echo; COLUMNS=1000; . ./completion.bash\n")
# The key Ctrl-G is bound to `show`, which prints readline's current line in brackets.
os.write(fd, b"show() { printf '<[%s]>' \"$READLINE_LINE\"; READLINE_LINE= READLINE_POINT=0; }; bind -x '\"\\C-g\": show'; echo READ\\Y\n")
read_until(fd, lambda t: "READY" in t)
for case in open("cases").read().splitlines():
    listed = " ?? " in case
    typed, wanted = case.split(" ?? " if listed else " => ")
    os.write(fd, typed.encode() + (b"\t\t" if listed else b"\t") + b"\x07")
    text = read_until(fd, lambda t: re.search(r"<\[[^\]]*\]>", t))
    if listed:
        there, _, absent = wanted.partition("!")
        words = set(text[: text.find("<[")].split())
        good = set(there.split()) <= words and not set(absent.split()) & words
        found = " ".join(sorted(words))[:120]
    else:
        found = re.search(r"<\[([^\]]*)\]>", text).group(1)
        good = found == wanted
    print("ok" if good else "not ok", "-", case if good else f"{case}: found '{found}'")
    failed += not good
os.write(fd, b"exit\n")
os.close(fd)
os.waitpid(pid, 0)
sys.exit(failed > 0)
END
python3 type.py $((20 * patience)) || failed=$((failed + 1))
e2e_end
