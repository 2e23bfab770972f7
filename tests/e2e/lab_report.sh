#!/usr/bin/env bash
# tests/e2e/lab_report.sh -- hearsay-lab report: the page of several runs, CSV, figures and LaTeX. Each value is compared
# with the file from which it was read, by a separate reader (lab_report.py). lab_units.py tests hearsay.lab.load().
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin
take_lab

# shellcheck disable=SC2317 # This function is called indirectly, by check.
reader()
{
    python3 "$root/tests/e2e/lab_report.py" "$@"
}
# shellcheck disable=SC2317 # This function is called indirectly, by check.
units()
{
    HEARSAY=$HEARSAY HEARSAY_LIBRARY=$library PYTHONPATH=$root/peer/api/python bounded "$python" "$root/tests/e2e/lab_units.py"
}

few=(--model logreg --data glyphs --evaluate-every 10 --seed "$seed")
bounded "$HEARSAY" local --peers 3 "${few[@]}" --rounds 30 --out ring >ring.out 2>ring.err </dev/null
check "a run of 3" [ $? = 0 ]
strange="a<b>&'\"\`x\`\$y\$ü"
bounded "$HEARSAY" sim --peers 12 "${few[@]}" --rounds 20 --topology torus --out "$strange" >sim.out 2>sim.err </dev/null
check "a simulated run of 12, in a directory of a strange name" [ $? = 0 ]
check "unit tests of load(), drawing and reports" units

# ---- The page of a report ----

lab report ring "$strange" >page.out 2>page.err
check "the page is written" [ $? = 0 ]
check "  of several runs to the current directory, and its path is printed" [ "$(cat page.out) $(ls ring/report.html 2>&1 | wc -l)" = "report.html 1" ]
check "  nothing is on stderr" [ ! -s page.err ]
check "  it parses, loads nothing, its pictures are XML, its figures are those of the files" \
    reader page report.html ring "$strange"
# shellcheck disable=SC2016 # $y is literal text of the page.
check "  the name is escaped" grep -qF 'a&lt;b&gt;&amp;&#39;&quot;`x`$y$ü' report.html
check "  eight curves, bars and a graph of each run" [ "$(grep -c '<svg' report.html)" = 14 ]
check "  and says what the lines are" grep -q 'One line per run: the median of its peers. The band is from their minimum to their maximum' report.html
check "  colours for light and dark mode" grep -q 'prefers-color-scheme:dark.*--series-0' report.html
check "  pictures have no colours of their own" eval '! grep -E "fill: #|stroke: #" report.html'
cp report.html first.html
lab report ring "$strange" >page.out 2>page.err
check "  the same again gives the same bytes" cmp first.html report.html
lab report ring >page.out 2>page.err
check "the page of one run is in its directory" eval '[ "$(cat page.out)" = ring/report.html ] && grep -q "One line per peer" ring/report.html'
lab report "$strange/peer-3" --out one.html >one.out 2>one.err
check "the directory of one peer has a page, too" reader page one.html "$strange/peer-3"
bounded "$HEARSAY" train --model logreg --data glyphs --rounds 20 --out alone >alone.out 2>alone.err </dev/null
lab report alone >alone.out 2>alone.err
check "and so has training alone" reader page alone/report.html alone
check "  with the settings that are not defaults" eval 'grep -q "<tr><th>model</th><td>logreg" alone/report.html &&
    [ "$(grep -c "<tr><th>weight-decay" alone/report.html)" = 1 ]'
HEARSAY=/nonexistent lab report ring --out bare.html >bare.out 2>bare.err
check "without the program hearsay the page is written" [ $? = 0 ]
check "  and says why there is no graph" grep -q 'The graph is not drawn: .*/nonexistent' bare.html

# ---- The output of --figure, --latex and --csv ----

lab report ring "$strange" --figure f.png --figure f.svg --figure f.pdf --plot loss --by bytes --latex t.tex --csv rows.csv >more.out 2>more.err
check "figures, LaTeX and CSV" [ $? = 0 ]
check "  all paths are printed" [ "$(tr '\n' ' ' <more.out)" = "rows.csv t.tex f.png f.svg f.pdf " ]
check "  a PNG, an SVG and a PDF" eval '[ "$(head -c 8 f.png | od -An -tx1 | tr -d " \n")" = 89504e470d0a1a0a ] &&
    python3 -c "import xml.etree.ElementTree as x; x.parse(\"f.svg\")" && [ "$(head -c 4 f.pdf)" = %PDF ]'
check "  the strange name is in the legend" grep -qF '`x`$y$ü' f.svg
check "  LaTeX has a line of heads and a row for each run" [ "$(grep -c ' [\\][\\]$' t.tex)" = 3 ]
check "  and six columns, with mean and deviation over the peers" eval \
    'grep -qx "run & peers & rounds & test accuracy, .* & relative consensus distance & sent .*" t.tex &&
     grep -qE "^ring & 3 & 30 & .[0-9.]+ .pm [0-9.]+. & [0-9.e-]+ & [0-9.]+ [kM]?B " t.tex'
lab report ring --latex - --columns seconds,test_loss,accuracy_min >some.tex 2>some.err
check "  --columns chooses others" grep -qE '^ring & [0-9.]+ & .[0-9.]+ .pm [0-9.]+. & [0-9.]+ .% ' some.tex
lab report ring --latex bad.tex --columns peers,speed >bad.out 2>bad.err
check "  an unknown column is refused with the list" eval \
    '[ "$(wc -l <bad.err)" = 1 ] && grep -q "found .speed., expected names of this list: peers, accuracy, .*wall_s" bad.err && [ ! -e bad.tex ]'
lab report ring "$strange" --figure loss.svg --plot loss --smooth 10 --figure other.svg >more.out 2>more.err
check "  a legend says what line and band are, and the axis that the loss is smoothed" eval \
    'grep -q "line: median of the peers, band: minimum to maximum" loss.svg && grep -q "moving average over 10 rounds" loss.svg && ! grep -q "moving average" f.svg'
for by in round seconds bytes; do
    check "  test loss by $by" lab report ring "$strange" --figure test_loss.png --plot test_loss --by $by
done
# shellcheck disable=SC2016 # $y is literal text of the table.
check "  special characters are escaped" grep -qF '\$y\$ü' t.tex
check "  the rows of CSV are those of the files" reader csv rows.csv ring "$strange"
check "  no page was written" eval 'rm -f ring/report.html; lab report ring --csv rows2.csv >more.out && [ ! -e ring/report.html ]'
lab report ring "$strange" --csv - >stdout.csv 2>csv.err
check "  CSV on stdout is the same" cmp rows.csv stdout.csv
check "  and no file" test ! -e ./-
for bad in "--figure f.jpg" "--figure f.png --plot drift --by bytes" "--out same.html --csv same.html" "--out none/x.html" "--out ." \
    "--csv ring/peer-0/metrics.jsonl --force" "--latex same.html --columns peers,speed" "--columns peers" "--smooth 3" \
    "--figure same.png --smooth 0" "--csv - --latex -"; do
    # shellcheck disable=SC2086 # Unquoted, because the variable holds several words.
    lab report ring $bad >bad.out 2>bad.err
    check "$bad: exit code 2, one line, nothing written" [ "$? $(wc -l <bad.err) $(wc -c <bad.out) $(find . -name 'same.html' -o -name f.jpg)" = "2 1 0 " ]
done

# ---- Directories of sweep and compare, and other files in a directory of runs ----

lab sweep lr=0.01,0.05 --seeds 2 --out swept -- sim --peers 2 "${few[@]:0:6}" --rounds 20 >swept.out 2>swept.err </dev/null
check "a sweep" [ $? = 0 ]
lab report swept/*/seed-* --csv all.csv >skip.out 2>skip.err
check "log files next to the runs are skipped, with one note" eval \
    '[ "$(wc -l <skip.err)" = 1 ] && grep -q "skipped 4 paths without results of a run: swept/lr=0.01/seed-1.log, " skip.err && [ "$(cat skip.out)" = all.csv ]'
lab report swept >swept.out 2>swept.err
check "the directory of a sweep: a page of all its runs" [ "$? $(cat swept.out) $(wc -l <swept.err)" = "0 swept/report.html 0" ]
check "  with their figures" reader page swept/report.html swept/lr=0.01/seed-1 swept/lr=0.01/seed-2 swept/lr=0.05/seed-1 swept/lr=0.05/seed-2
lab report swept --csv swept.csv >swept.out 2>swept.err
check "  named by setting and seed" [ "$(sed -n '2,$s/^"\([^"]*\)".*/\1/p' swept.csv | sort -u | tr '\n' ';')" = \
    "lr=0.01, seed 1;lr=0.01, seed 2;lr=0.05, seed 1;lr=0.05, seed 2;" ]
printf 'model = "logreg"\ndata = "glyphs"\npeers = 2\nrounds = 20\nseeds = 2\nlr = [0.01, 0.05]\n[a]\ncompress = "none"\n[b]\ncompress = "qsgd:4"\n' >arms.toml
lab compare arms.toml --out compared >compared.out 2>compared.err </dev/null
check "a comparison" [ $? = 0 ]
mkdir -p compared/a/lr-9/seed-3
lab report compared --csv compared.csv >compared.out 2>compared.err
check "its directory: the runs that are compared, by arm and seed" [ "$(sed -n '2,$s/^"\([^"]*\)".*/\1/p' compared.csv | sort -u | tr '\n' ';')" = \
    "a, seed 1;a, seed 2;b, seed 1;b, seed 2;" ]
check "  a run without results is skipped, with a note" eval '[ "$(wc -l <compared.err)" = 1 ] && grep -q "skipped 1 path .*: compared/a/lr-9/seed-3$" compared.err'
lab report swept/lr=0.01/seed-1.log >file.out 2>file.err
check "a file alone is refused" eval '[ "$(cat file.err)" = "hearsay-lab: swept/lr=0.01/seed-1.log: found a file, expected a directory that a run has written with --out" ]'

# ---- The example notebook (tests/examples/lab.ipynb) can be run ----

mkdir book
for graph in ring torus; do
    bounded "$HEARSAY" sim --peers 8 --model logreg --data glyphs --rounds 60 --evaluate-every 5 --topology $graph --out book/$graph >sim.out 2>sim.err
done
cat >cells.py <<'PY'
import json, os, sys
names = {}
for cell in json.load(open(sys.argv[1], encoding="utf-8"))["cells"]:
    if cell["cell_type"] == "code":
        try:
            if "pandas" in cell["metadata"].get("tags", []):
                import pandas
        except ImportError:
            continue
        exec("".join(cell["source"]), names)
PY
(cd book && HEARSAY_LIBRARY=$library PYTHONPATH=$root/peer/api/python MPLBACKEND=Agg MPLCONFIGDIR=$PWD bounded "$python" ../cells.py \
    "$root/tests/examples/lab.ipynb") >book.out 2>book.err
check "the code of tests/examples/lab.ipynb" [ $? = 0 ]
check "  makes a figure and a table" eval '[ "$(head -c 4 book/accuracy.pdf)" = %PDF ] && grep -q "^torus & 8 & " book.out'

# ---- Files that exist already ----

check "a page that hearsay-lab has written is replaced" lab report ring --out one.html
echo "my notes" >notes.html
for flag in --out --csv --latex; do
    lab report ring "$flag" notes.html >notes.out 2>notes.err
    check "$flag does not replace another file: exit code 2" [ $? = 2 ]
    check "  and the error says so" grep -q 'notes.html exists, and hearsay-lab did not create it; --force' notes.err
    check "  and the file is unchanged" [ "$(cat notes.html)" = "my notes" ]
done
ln -s notes.html link.html
lab report ring --out link.html >notes.out 2>notes.err
check "nor the target of a link" [ "$? $(cat notes.html)" = "2 my notes" ]
check "with --force the target of the link is replaced" lab report ring --out link.html --force
check "  and the link stays" eval '[ -L link.html ] && head -n 1 notes.html | grep -qi "<!doctype"'
cp one.html before.html
bounded bash -c 'ulimit -f 8; trap "" XFSZ; "$@"' full env HEARSAY="$HEARSAY" HEARSAY_LIBRARY="$library" PYTHONPATH="$root/peer/api/python" \
    PYTHONDONTWRITEBYTECODE=1 "$python" -m hearsay.lab report ring --out one.html >full.out 2>full.err
check "a page that cannot be written: exit code 1" [ $? = 1 ]
check "  leaves the old one, and no other file" eval 'cmp one.html before.html && [ -z "$(ls | grep tmp)" ]'

# ---- Wrong input is refused ----

# refused WHAT WHY: a report of the directory bad ends with exit code 2 and one line, and writes no page.
refused()
{
    lab report bad >bad.out 2>bad.err
    check "$1 is refused" [ $? = 2 ]
    check "  and the error says: $2" grep -qF -e "$2" bad.err
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
rm bad/peer-0/metrics.jsonl && mkfifo bad/peer-0/metrics.jsonl
refused "a pipe" "bad/peer-0/metrics.jsonl: found another kind of file"
fresh
head -c 100000 /dev/zero >bad/peer-0/metrics.jsonl
refused "zeros without end" "bad/peer-0/metrics.jsonl: line 1: too long"
fresh
rm -r bad/* && touch bad/notes
refused "a directory without a run" "bad: found no metrics.jsonl"
fresh
truncate -s -20 bad/peer-0/metrics.jsonl
rm bad/summary.json bad/peer-0/summary.json bad/peer-1/metrics.jsonl
lab report bad >bad.out 2>bad.err
check "a torn last line and missing files are accepted" [ $? = 0 ]
check "  what is known is there" reader page bad/report.html bad
check "  and the page says that the run has not ended" grep -q 'no summary.json: the run is in progress or was interrupted' bad/report.html
lab report nowhere >bad.out 2>bad.err
check "a missing directory: exit code 2" [ $? = 2 ]
"$HEARSAY" report ring >old.out 2>old.err
check "hearsay report says where it is now: exit code 2" [ $? = 2 ]
check "  in one line" eval '[ "$(wc -l <old.err)" = 1 ] && grep -q "hearsay-lab report" old.err'

e2e_end
