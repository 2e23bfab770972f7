#!/usr/bin/env bash
# tests/e2e/models.sh -- saved models: inspect, eval, predict and generate, and loading them in PyTorch.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin

# run NAME ARGS...: hearsay ARGS ends with 0. Output in NAME.out and NAME.err.
run()
{
    local name=$1
    shift
    bounded "$HEARSAY" "$@" >"$name.out" 2>"$name.err" </dev/null
    check "$name: hearsay $1 ends with 0" [ $? = 0 ]
}

# refused TEXT PATTERN ARGS...: hearsay ARGS ends with exit code 2 and one matching line, and prints nothing to stdout.
refused()
{
    local text=$1 pattern=$2 code
    shift 2
    bounded "$HEARSAY" "$@" >refused.out 2>refused.err </dev/null
    code=$?
    check "$text" [ "$code" = 2 -a ! -s refused.out -a "$(wc -l <refused.err)" = 1 ]
    check "$text: says so" grep -qE -- "$pattern" refused.err
}

# json NAME EXPRESSION: checks that a Python expression is true. In the expression, j is the JSON object in NAME.out.
json()
{
    python3 -c 'import json, sys; j = json.load(open(sys.argv[1] + ".out")); sys.exit(not eval(sys.argv[2]))' "$1" "$2"
}

# ---- hearsay inspect ----

run trained train --model lenet5 --rounds 3 --seed "$seed" --out trained
model=trained/model.safetensors
run file inspect "$model" --json
check "inspect: a file's tensors, as Python finds them" python3 - "$model" file.out <<'PY'
import json, math, struct, sys
raw = open(sys.argv[1], "rb").read()
n = struct.unpack("<Q", raw[:8])[0]
header = json.loads(raw[8:8 + n])
meta = header.pop("__metadata__")
j = json.load(open(sys.argv[2]))
assert j["bytes"] == len(raw) and j["finite"] is True and j["unlike"] is None
assert [j[k] for k in ("run", "round", "name", "version")] == [meta[k] for k in ("run", "round", "name", "version")]
assert [t["name"] for t in j["tensors"]] == sorted(header, key=lambda k: header[k]["data_offsets"])
for t in j["tensors"]:
    h = header[t["name"]]
    a, b = h["data_offsets"]
    v = struct.unpack("<%df" % ((b - a) // 4), raw[8 + n + a:8 + n + b])
    assert t["shape"] == h["shape"] and t["dtype"] == h["dtype"] and t["bytes"] == b - a and t["trained"] is True
    assert math.isclose(t["sum"], math.fsum(v), rel_tol=1e-9, abs_tol=1e-9), t
    assert math.isclose(t["norm"], math.sqrt(math.fsum(x * x for x in v)), rel_tol=1e-9), t
assert j["n_params"] == j["n_trained"] == 61706
PY
run people inspect "$model"
check "inspect: for people, too" eval 'grep -qE "^fc3.weight +10x84 +F32 +3360 +yes" people.out && grep -q "^round *3 of 3" people.out'
run spec inspect resnet:20 --data cifar10 --json
check "inspect: a spec: parameters, work, and what is not trained" json spec 'j["n_params"] == 271098 and j["n_trained"] == 269722 \
    and j["multiply_adds"] == 40551040 and j["file"] is None \
    and [t["trained"] for t in j["tensors"] if "running" in t["name"]] == [False] * 38'
run sparse inspect logreg --data libsvm/123x2/pm --json
check "inspect: work that hangs on the sample is null" json sparse 'j["multiply_adds"] is None and j["n_params"] == 248'
for spec in logreg mlp:10-5-2 lenet5 vgg11 resnet:8 lstm:32 gpt:1x32; do
    run "spec" inspect "$spec"
done

# A file with a NaN can be inspected, but its sums are unknown. A file whose shapes differ from its run is reported.
python3 - "$model" <<'PY'
import json, struct, sys
raw = bytearray(open(sys.argv[1], "rb").read())
n = struct.unpack("<Q", raw[:8])[0]
header = json.loads(raw[8:8 + n])
at = 8 + n + header["fc1.bias"]["data_offsets"][0]
struct.pack_into("<f", raw, at, float("nan"))
open("nan.safetensors", "wb").write(raw)
def put(path, header, data):
    text = json.dumps(header).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + data)
one = lambda name, meta: dict({name: dict(dtype="F32", shape=[1], data_offsets=[0, 4])}, __metadata__=meta)
put("other.safetensors", one("fc9.weight", header["__metadata__"]), bytes(4))
put("foreign.safetensors", one("w\x1b[31m", {"run": "no run\x1b", "name": "\x1b[2J"}), bytes(4))
open("cut.safetensors", "wb").write(raw[:len(raw) - 5])
open("long.safetensors", "wb").write(struct.pack("<Q", 2**63) + b"{" + bytes(100))
PY
run nan inspect nan.safetensors --json
check "inspect: what is not finite is null" json nan 'j["finite"] is False \
    and [t["name"] for t in j["tensors"] if t["sum"] is None and t["norm"] is None and not t["finite"]] == ["fc1.bias"]'
run other inspect other.safetensors --json
check "inspect: a tensor that its run has not is named" json other 'j["unlike"] == "fc9.weight" and j["n_trained"] is None'
run foreign inspect foreign.safetensors
check "inspect: control characters of a file reach no terminal" eval '! grep -q "$(printf "\033")" foreign.out'
# Tensors of other types: other floating-point types are converted to float32. inspect shows tensors of any type. A model with
# a tensor that is not floating-point is refused with the name of the tensor.
python3 - "$model" <<'PY'
import json, struct, sys
raw = open(sys.argv[1], "rb").read()
n = struct.unpack("<Q", raw[:8])[0]
header = json.loads(raw[8:8 + n])
meta, data = header.pop("__metadata__"), raw[8 + n:]
def put(path, tensors, meta={}):
    header, body = {"__metadata__": meta} if meta else {}, bytearray()
    for name, dtype, shape, b in tensors:
        header[name] = dict(dtype=dtype, shape=shape, data_offsets=[len(body), len(body) + len(b)])
        body += b
    text = json.dumps(header).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + body)
def values(t):
    a, b = t["data_offsets"]
    return struct.unpack("<%df" % ((b - a) // 4), data[a:b])
def bf16(v):
    return b"".join(struct.pack("<f", x)[2:] for x in v)
for dtype, pack in (("F64", lambda v: struct.pack("<%dd" % len(v), *v)), ("F16", lambda v: struct.pack("<%de" % len(v), *v)), ("BF16", bf16)):
    put(dtype + ".safetensors", [(name, dtype, t["shape"], pack(values(t))) for name, t in header.items()], meta)
put("ints.safetensors", [(name, "I32", t["shape"], bytes(t["data_offsets"][1] - t["data_offsets"][0])) for name, t in header.items()], meta)
put("all.safetensors", [("i64", "I64", [3], bytes(24)), ("bool", "BOOL", [5], bytes(5)), ("f8", "F8_E4M3", [2, 2], bytes(4)),
                        ("f4", "F4", [8], bytes(4)), ("c64", "C64", [2], bytes(16)), ("empty", "U16", [0], b""), ("f32", "F32", [1], struct.pack("<f", 3))])
put("many.safetensors", [("layer.%d.some_long_name.weight" % i, "F16", [1], b"\x00\x3c") for i in range(20000)])
PY
for dtype in F64 F16 BF16; do
    run "dtype-$dtype" inspect $dtype.safetensors --json
    check "inspect: $dtype: names, shapes, bytes, sums" json "dtype-$dtype" "j['n_params'] == 61706 and j['finite'] is True and j['unlike'] is None \
        and all(t['dtype'] == '$dtype' and t['bytes'] * 32 == f['bytes'] * ${dtype//[!0-9]/} and abs(t['sum'] - f['sum']) < 0.01 * f['norm'] + 0.1 \
                for t, f in zip(j['tensors'], json.load(open('file.out'))['tensors']))"
    run "eval-$dtype" eval $dtype.safetensors --json
done
run eval-F32 eval "$model" --json
check "eval: the same in float64, close to it in 16 bits" python3 - <<'PY'
import json
j = {d: json.load(open("eval-%s.out" % d)) for d in ("F32", "F64", "F16", "BF16")}
assert j["F64"]["accuracy"] == j["F32"]["accuracy"] and j["F64"]["loss"] == j["F32"]["loss"]
assert 0 < abs(j["F16"]["loss"] - j["F32"]["loss"]) < 1e-3 and 0 < abs(j["BF16"]["loss"] - j["F32"]["loss"]) < 2e-2, j
PY
refused "eval: a model of integers" 'dtype of [a-z0-9.]+: found I32, expected F32, or F16, BF16 or F64' eval ints.safetensors
run all inspect all.safetensors --json
check "inspect: every dtype has its name, shape and bytes" json all '[(t["name"], t["dtype"], t["shape"], t["bytes"], t["sum"]) for t in j["tensors"]] == [
    ("i64", "I64", [3], 24, None), ("bool", "BOOL", [5], 5, None), ("f8", "F8_E4M3", [2, 2], 4, None), ("f4", "F4", [8], 4, None),
    ("c64", "C64", [2], 16, None), ("empty", "U16", [0], 0, None), ("f32", "F32", [1], 4, 3.0)] and j["finite"] is True'
run all-people inspect all.safetensors
check "inspect: its text shows the dtypes, too" grep -qE '^f8 +2x2 +F8_E4M3 +4 ' all-people.out
run many inspect many.safetensors --json
check "inspect: 20,000 tensors, a header above 1 MiB" json many 'j["n_params"] == 20000 and {t["sum"] for t in j["tensors"]} == {1.0}'

refused "inspect: a file that was cut" 'cut.safetensors: data: found [0-9]+ bytes, expected [0-9]+' inspect cut.safetensors
refused "inspect: a header without end" 'long.safetensors: header length: found' inspect long.safetensors
refused "inspect: neither file nor spec" 'no file of that name, and no model "resnet:21"' inspect resnet:21
refused "inspect: a file that is not there" 'nothing.safetensors: .*No such file' inspect nothing.safetensors
refused "inspect: a directory" 'found a directory' inspect ./trained
refused "inspect: data that do not fit the spec" 'takes images' inspect resnet:20 --data text/128
refused "inspect: --norm of a model without" '^hearsay inspect: --norm: only with a model that has normalisation layers' inspect lenet5 --norm group

# ---- A file of another model ----

refused "eval: another model's file" 'tensor conv1.weight: the model has no tensor of that name.* fc1.weight, fc1.bias' \
    eval "$model" --model logreg
refused "train: --init of another shape" 'shape of conv1.weight: found 6x1x5x5, expected 16x1x3x3' \
    train --model resnet:20 --rounds 1 --init "$model"
refused "train: --init with a tensor that is no other's" 'tensor fc9.weight: .*, did you mean fc[123].weight\?' \
    train --model lenet5 --rounds 1 --init other.safetensors

# ---- hearsay predict ----

python3 - <<'PY'
import random
r = random.Random(1)
names = ["plain", "with, comma", 'a "quote"']
with open("old.csv", "w") as old, open("new.csv", "w") as new:
    for f, n in (old, 300), (new, 90):
        f.write("x,y,kind\n")
        for i in range(n):
            c = r.randrange(3)
            f.write("%.4f,%.4f,%s\n" % (c + r.gauss(0, 0.4), -c + r.gauss(0, 0.4), '"%s"' % names[c].replace('"', '""')))
PY
table=csv:old.csv,test=new.csv
run table train --model logreg --data "$table" --epochs 20 --seed "$seed" --out table
run table-eval eval table/model.safetensors --data "$table" --json
run table-labels predict table/model.safetensors --data "$table" --out labels.csv
check "predict: --out takes all, stdout nothing" [ -s labels.csv -a ! -s table-labels.out ]
check "predict: names of classes, and the accuracy of hearsay eval" python3 - table-eval.out <<'PY'
import csv, json, sys
rows = list(csv.DictReader(open("labels.csv")))
data = list(csv.DictReader(open("new.csv")))
assert [int(r["index"]) for r in rows] == list(range(90))
assert {r["label"] for r in rows} == {"plain", "with, comma", 'a "quote"'}
assert all(1 / 3 <= float(r["probability"]) <= 1 for r in rows)
right = sum(r["label"] == d["kind"] for r, d in zip(rows, data))
j = json.load(open(sys.argv[1]))
assert j["samples"] == 90 and abs(right / 90 - j["accuracy"]) < 1e-9 and right > 45, (right, j)
PY
run images predict "$model"
run images-eval eval "$model" --json
check "predict: of images, too" python3 - images.out images.err images-eval.out <<'PY'
import csv, json, re, sys
rows = list(csv.DictReader(open(sys.argv[1])))
j = json.load(open(sys.argv[3]))
right = int(re.search(r"(\d+) labels match those in the data", open(sys.argv[2]).read()).group(1))
assert len(rows) == j["samples"] and abs(right / len(rows) - j["accuracy"]) < 1e-9
assert all(0 <= int(r["label"]) <= 9 and 0.1 <= float(r["probability"]) <= 1 for r in rows)
PY
for labels in pm:+1,-1 one:1,2; do
    python3 - "${labels#*:}" <<'PY' >rows.libsvm
import sys
names = sys.argv[1].split(",")
for i in range(60):
    print(names[i % 2], "%d:1" % (1 + i % 2))
PY
    run rows train --model logreg --data libsvm:rows.libsvm --epochs 30 --lr 0.5 --seed "$seed" --out "rows-${labels%:*}"
    run rows-labels predict "rows-${labels%:*}/model.safetensors" --data libsvm:rows.libsvm
    check "predict: labels are spelt as in the files ($labels)" [ "$(cut -d, -f2 rows-labels.out | sed 1d | sort -u | paste -sd,)" = "${labels#*:}" ]
done
refused "predict: data are missing" '--data is missing: the model was trained on csv/' predict table/model.safetensors
refused "predict: data of another kind" "--data is glyphs, but the model's run has csv/" predict table/model.safetensors --data glyphs
# A path need not be UTF-8, but JSON must be.
odd=$'odd\xff\xe9'
bounded "$HEARSAY" train --model logreg --data glyphs --rounds 3 --out "$odd" --json >odd-train.json 2>odd.err
check "train --out with bytes that are not UTF-8: 0" [ $? = 0 ]
bounded "$HEARSAY" local --peers 2 --model logreg --data glyphs --rounds 3 --out "$odd-local" --json >odd-local.json 2>odd.err
for command in inspect eval; do
    bounded "$HEARSAY" "$command" "$odd/model.safetensors" --json >"odd-$command.json" 2>odd.err
done
check "  and all JSON has that path" python3 -c '
import json
for command, key in (("train", "out"), ("local", "out"), ("inspect", "file"), ("eval", "file")):
    with open("odd-%s.json" % command, encoding="utf-8") as f:
        assert json.load(f)[key].startswith("odd??"), command'

bounded "$HEARSAY" predict "$model" >/dev/full 2>full.err
check "predict: a full disk is reported" [ $? = 1 ]

# ---- PyTorch loads a model with the code of a page of the documentation ----

torch=
for one in python3 /usr/bin/python3; do
    [ -n "$torch" ] || ! "$one" -c 'import torch' 2>/dev/null || torch=$one
done
if [ -n "$torch" ]; then
    cp -r trained lenet5
    {
        printf 'import torch\nimages = torch.zeros(2, 28, 28, dtype=torch.uint8)\n'
        sed -n '/^```python$/,/^```$/p' "$root/nn/README.md" | sed '1d;$d'
        echo 'assert logits.shape == (2, 10)'
    } >snippet.py
    if [ -e "$(dirname "$HEARSAY")/libhearsay.so" ]; then
        check "PyTorch: the page's lines load a model" env PYTHONPATH="$root/tests:$root/peer/api/python" PYTHONDONTWRITEBYTECODE=1 \
            HEARSAY_LIBRARY="$(dirname "$HEARSAY")/libhearsay.so" "$torch" snippet.py
    fi
else
    echo "# skipped: no PyTorch here"
fi

# ---- hearsay generate ----

python3 -c 'print("abcdefghij" * 3000, end="")' >period.txt
for spec in lstm:32 gpt:1x32; do
    name=${spec%:*}
    run "$name" train --model "$spec" --data "text:period.txt,context=32" --optimiser adam --lr 0.01 --batch 8 --rounds 80 --seed "$seed" --out "$name"
    run continued generate "$name/model.safetensors" --prompt "$(printf 'abcdefghij%.0s' 1 2 3 4 5)abc" --length 57 --temperature 0
    check "generate: $name continues with a period" [ "$(cat continued.out)" = "$(printf 'abcdefghij%.0s' 1 2 3 4 5 6 7 8 9 10 11)" ]
done
run drawn generate gpt/model.safetensors --length 100 --temperature 5 --seed 7 --raw
run again generate gpt/model.safetensors --length 100 --temperature 5 --seed 7 --raw
run else generate gpt/model.safetensors --length 100 --temperature 5 --seed 8 --raw
check "generate: a seed gives its text again, another one another" eval 'cmp -s drawn.out again.out && ! cmp -s drawn.out else.out'
check "generate: --raw gives so many bytes" [ "$(wc -c <drawn.out)" = 100 ]
run shown generate gpt/model.safetensors --length 100 --temperature 5 --seed 7
check "generate: else a terminal gets printable UTF-8 alone" python3 -c '
t = open("shown.out", "rb").read().decode()
assert "\ufffd" in t and all(c.isprintable() or c in "\n\t\ufffd" for c in t)'
run first generate gpt/model.safetensors --length 30 --temperature 9 --top-k 1
run likeliest generate gpt/model.safetensors --length 30 --temperature 0
check "generate: among one there is no choice" cmp -s first.out likeliest.out
python3 - gpt/model.safetensors <<'PY'
import json, struct, sys
raw = open(sys.argv[1], "rb").read()
n = struct.unpack("<Q", raw[:8])[0]
header = json.loads(raw[8:8 + n])
del header["__metadata__"]
text = json.dumps(header).encode()
open("bare.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + raw[8 + n:])
PY
run bare generate bare.safetensors --model gpt:1x32 --data text/32 --length 30 --temperature 0
check "generate: a file without a run says the same" cmp -s bare.out likeliest.out
refused "generate: without a run" 'the metadata have no "run"' generate bare.safetensors
refused "generate: a context that the file has not" 'shape of transformer.wpe.weight: found 32x32, expected 128x32' \
    generate bare.safetensors --model gpt:1x32
refused "predict: of text" 'gpt/model.safetensors is a text model: use hearsay generate' predict gpt/model.safetensors --data text:period.txt,context=32
refused "generate: a model of images" 'trained/model.safetensors: found lenet5 for glyphs, expected a text model' generate "$model"
refused "generate: data that its run says" '--data: only allowed with --model' generate gpt/model.safetensors --data text/16

e2e_end
