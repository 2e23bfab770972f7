#!/usr/bin/env bash
# tests/e2e/report.sh -- hearsay report: a page of two runs, as CSV and as event files; each figure
# against the file that it is from, read by readers of its own (report.py).
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin

# shellcheck disable=SC2317 # By check.
reader()
{
    python3 "$root/tests/e2e/report.py" "$@"
}

few=(--model logreg --data glyphs --evaluate-every 10 --seed "$seed")
bounded "$HEARSAY" local --peers 3 "${few[@]}" --rounds 30 --out ring >ring.out 2>ring.err </dev/null
check "a run of 3" [ $? = 0 ]
bounded "$HEARSAY" sim --peers 12 "${few[@]}" --rounds 20 --topology torus --out "a<b>&'\"\`x\`" >sim.out 2>sim.err </dev/null
check "a simulated run of 12, in a directory of a strange name" [ $? = 0 ]
strange="a<b>&'\"\`x\`"

# ---- The page. ----

"$HEARSAY" report ring "$strange" >page.out 2>page.err
check "the page is written" [ $? = 0 ]
check "  into the first directory, and that is said" [ "$(cat page.out)" = ring/report.html ]
check "  it parses, loads nothing, its pictures are XML, its figures those of the files" \
    reader page ring/report.html ring "$strange"
# shellcheck disable=SC2016 # As it stands there.
check "  the name is escaped" grep -qF 'a&lt;b&gt;&amp;&#39;&quot;`x`' ring/report.html
"$HEARSAY" report "$strange/peer-3" --out one.html >one.out 2>one.err
check "one peer's directory has a page, too" reader page one.html "$strange/peer-3"
bounded "$HEARSAY" train --model logreg --rounds 20 --out alone >alone.out 2>alone.err </dev/null
"$HEARSAY" report alone >alone.out 2>alone.err
check "and so has training alone" reader page alone/report.html alone

if command -v gnuplot >/dev/null && command -v neato >/dev/null; then
    check "with gnuplot: seven curves, bars and a graph of each run" \
        [ "$(grep -c '<svg' ring/report.html)" = 13 ]
    check "  and nothing is said to be missing" [ ! -s page.err ]
else
    echo "# no gnuplot or graphviz here: pictures are not looked at"
fi
mkdir bare # Of the programs that draw none is found there.
PATH=$PWD/bare "$HEARSAY" report ring --out bare.html >bare.out 2>bare.err
check "without gnuplot and graphviz it ends with 0" [ $? = 0 ]
check "  says which are missing" [ "$(grep -c 'is not installed' bare.err)" = 2 ]
check "  and has the tables" reader page bare.html ring
check "  and no pictures" eval '! grep -q "<svg" bare.html'
printf '#!/bin/sh\necho "line 0: broken" >&2\nexit 3\n' >bare/gnuplot
printf '#!/bin/sh\nprintf "<svg><script>alert(1)</script></svg>"\n' >bare/neato
chmod +x bare/gnuplot bare/neato
PATH=$PWD/bare "$HEARSAY" report ring --out broken.html >bare.out 2>bare.err
check "a program that fails is said in the picture's place" grep -q 'Not drawn: gnuplot failed: line 0: broken' broken.html
check "  and one that draws a script is not believed" eval '! grep -q "<script" broken.html'

# ---- What is there already. ----

check "its own page is written over" "$HEARSAY" report ring --out one.html >again.out
echo "my notes" >notes.html
"$HEARSAY" report ring --out notes.html >notes.out 2>notes.err
check "another's file is not: exit code 2" [ $? = 2 ]
check "  and the error says so" grep -q 'notes.html exists, and is not of hearsay report; --force' notes.err
check "  and the file is unchanged" [ "$(cat notes.html)" = "my notes" ]
ln -s notes.html link.html
"$HEARSAY" report ring --out link.html >notes.out 2>notes.err
check "nor what a link names" [ $? = 2 ]
check "  and the file is unchanged" [ "$(cat notes.html)" = "my notes" ]
check "with --force the file to which the link points is replaced" "$HEARSAY" report ring --out link.html --force >notes.out
check "  and the link stays" eval '[ -L link.html ] && head -n 1 notes.html | grep -qi "<!doctype"'
echo "my notes" >notes.html
"$HEARSAY" report ring --csv notes.html >notes.out 2>notes.err
check "a table is not written over others' files either" [ $? = 2 ]

# ---- The table and the event files. ----

rm ring/report.html
check "CSV and event files" "$HEARSAY" report ring "$strange" --csv rows.csv --tensorboard logs >csv.out
check "  come without a page" [ ! -e ring/report.html ]
check "  the rows are those of the files" reader csv rows.csv ring "$strange"
check "  and so are the scalars" reader events logs ring "$strange"
"$HEARSAY" report ring "$strange" --csv - >stdout.csv
check "  a table on stdout is the same" cmp rows.csv stdout.csv
check "  and no file" test ! -e ./-
check "  both are written again" "$HEARSAY" report ring "$strange" --csv rows.csv --tensorboard logs >csv.out
if python3 -c 'import tensorboard' 2>/dev/null; then
    check "  TensorBoard reads them" reader tensorboard logs/ring/peer-0 ring/peer-0
else
    echo "# no tensorboard here: it is not asked"
fi

# ---- Files that are not as they should be. ----

# refused TEXT WHY: a report of bad/ ends with 2, one line, and no page.
refused()
{
    "$HEARSAY" report bad >bad.out 2>bad.err
    check "$1 is refused" [ $? = 2 ]
    check "  and says so: $2" grep -qF -e "$2" bad.err
    check "  in one line" [ "$(wc -l <bad.err)" = 1 ]
    check "  and nothing is written" [ ! -e bad/report.html ]
}

fresh()
{
    rm -rf bad
    cp -r ring bad
}

fresh
sed -i '5s/"loss": [0-9.]*/"loss": NaN/' bad/peer-1/metrics.jsonl
refused "a NaN" "bad/peer-1/metrics.jsonl: line 5: found no JSON"
fresh
sed -i '7s/"bytes_sent": [0-9]*/"bytes_sent": "many"/' bad/peer-0/metrics.jsonl
refused "a text for a number" "bad/peer-0/metrics.jsonl: line 7: bytes_sent: found a text, expected a whole number"
fresh
echo '{"exit_code": []}' >bad/summary.json
refused "a broken summary" "bad/summary.json: exit_code: found a list"
fresh
mv bad/peer-2 elsewhere
ln -s ../elsewhere bad/peer-2
refused "a link for a peer" "bad/peer-2: found a symbolic link"
fresh
head -c 100000 /dev/zero >bad/peer-0/metrics.jsonl
refused "zeros without end" "bad/peer-0/metrics.jsonl: line 1: too long"
fresh
rm -r bad/* && touch bad/notes
refused "a directory of nobody" "bad: found no metrics.jsonl"
fresh
truncate -s -20 bad/peer-0/metrics.jsonl
rm bad/summary.json bad/peer-0/summary.json bad/peer-1/metrics.jsonl
"$HEARSAY" report bad >bad.out 2>bad.err
check "a torn last line and files that are missing are none" [ $? = 0 ]
check "  what is known is there" reader page bad/report.html bad
check "  and that it has not ended" grep -q 'no summary.json: it has not ended' bad/report.html
"$HEARSAY" report nowhere >bad.out 2>bad.err
check "a directory that is not there: exit code 2" [ $? = 2 ]

e2e_end
