#!/usr/bin/env bash
# tests/e2e/locale.sh -- the library works in a Python program whose locale writes 0.5 as 0,5.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin
take_python
command -v localedef >/dev/null || skip "there is no localedef here (Debian: locales)"
mkdir locales
localedef -i de_DE -f UTF-8 locales/de_DE.UTF-8 >localedef.out 2>&1
LOCPATH=$work/locales python3 -c 'import locale; locale.setlocale(locale.LC_ALL, "de_DE.UTF-8")' 2>/dev/null \
    || skip "localedef makes no locale here (Debian: locales): $(head -n 1 localedef.out)"

# Runs the numpy example with a German locale in each of its threads and processes.
{
    printf 'import locale\nlocale.setlocale(locale.LC_ALL, "de_DE.UTF-8")\nassert locale.str(0.5) == "0,5"\n'
    cat "$root/tests/examples/numpy_logreg.py"
} >german.py
sed -i 's/^    model = hearsay.packed/    locale.setlocale(locale.LC_ALL, "de_DE.UTF-8")\n&/' german.py

# run NAME PROGRAM ARGS...: runs a Python program with the package. Output in NAME.out and NAME.err.
run()
{
    local name=$1
    shift
    LOCPATH=$work/locales HEARSAY_LIBRARY=$library PYTHONPATH=$root/peer/api/python bounded "$python" "$@" >"$name.out" 2>"$name.err" </dev/null
}
check "peers train" run german german.py peers=2 rounds=40 compress=topk:0.1+qsgd:4 final-drift=0.0005 out=german checkpoint=5s
run english "$root/tests/examples/numpy_logreg.py" peers=2 rounds=40 compress=topk:0.1+qsgd:4 final-drift=0.0005 out=english checkpoint=5s
check "  to the same result as in another locale: $(head -n 1 german.out)" eval '[ -s german.out ] && cmp german.out english.out'
for file in german/*/metrics.jsonl german/*/summary.json; do
    check "  $file is JSON" "$python" -c '
import json, sys
text = open(sys.argv[1]).read()
[json.loads(line) for line in text.splitlines()] if sys.argv[1].endswith("l") else json.loads(text)' "$file"
done
check "  and the run description is the same" cmp german/peer-0/run.txt english/peer-0/run.txt
check "Codec reads numbers with a decimal point" eval 'run codec -c "
import locale
locale.setlocale(locale.LC_ALL, \"de_DE.UTF-8\")
import hearsay, numpy
c = hearsay.Codec(\"topk:0.25\", 64)
print(c.spec)" && grep -qxF topk:0.25 codec.out'
e2e_end
