#!/usr/bin/env bash
# tests/e2e/python_load.sh -- hearsay.load() returns a model and a transform of raw data. Model and transform, in numpy and
# in PyTorch, must give exactly the accuracy that `hearsay eval` prints. Without PyTorch only numpy is tested.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
take_python
e2e_begin
export PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1

# shellcheck disable=SC2317 # This function is called indirectly, by check.
load()
{
    HEARSAY_LIBRARY=$library PYTHONPATH=$root/peer/api/python bounded "$python" "$root/tests/e2e/python_load.py" "$@"
}

# agrees NAME MODEL KIND PATH TRAINED EVALUATED [ARGS...]: trains on TRAINED and evaluates on EVALUATED.
# Checks that the model that hearsay.load() returns has the accuracy that `hearsay eval` prints.
agrees()
{
    local name=$1 model=$2 kind=$3 path=$4 trained=$5 evaluated=$6
    shift 6
    bounded "$HEARSAY" train --model "$model" --data "$trained" --batch 16 --seed "$seed" "$@" --out "$name" >"$name.out" 2>"$name.err"
    check "$name: hearsay train ends with 0" [ $? = 0 ]
    bounded "$HEARSAY" eval "$name/model.safetensors" --data "$evaluated" --logits "$name.logits" --json >"$name.json" 2>"$name.err"
    check "$name: hearsay eval ends with 0" [ $? = 0 ]
    check "$name: hearsay.load() gives its accuracy" load agree "$name/model.safetensors" "$name.json" "$name.logits" "$model" "$kind" "$path"
}

python3 "$root/tests/e2e/idx.py" images 300 200 "$seed"
load sets
agrees idx logreg idx images idx:images idx:images --rounds 3 --lr 0.002
agrees mnist logreg idx images mnist:images mnist:images --rounds 3 --lr 0.002
agrees table logreg csv rows.csv csv:table.csv csv:table.csv,test=rows.csv --rounds 40 --lr 0.05
agrees table-max logreg csv rows.csv csv:table.csv,scale=max csv:table.csv,test=rows.csv --rounds 40 --lr 0.1
agrees wild logreg svm wild.t libsvm:wild.svm,test=wild.t libsvm:wild.svm,test=wild.t --rounds 40 --lr 0.1
agrees divided logreg svm wild.t libsvm:wild.svm,test=wild.t,divide=250 libsvm:wild.svm,test=wild.t,divide=250 --rounds 40 --lr 0.1
check "idx: mean and deviation are computed from the images" eval 'grep -q "\"data\": \"idx/1x28x28/10/0.49" idx.json'
check "files and inputs that do not fit are refused" load refusals idx/model.safetensors
bounded "$HEARSAY" inspect table/model.safetensors >inspect.out 2>inspect.err
check "inspect shows inputs and classes" eval \
    'grep -qE "^input      rows 261$" inspect.out && grep -qE "^ +1: \(value - [0-9.e+]+\) / [0-9.e+]+$" inspect.out &&
     grep -qE "^ +4: one of 2 categories$" inspect.out && grep -qE "^ +5: categories, by hash$" inspect.out && grep -qE "^classes    3: \"blue, light\", \"green\", \"red\"$" inspect.out'

if "$python" -c 'import torch' 2>/dev/null; then
    "$python" "$root/tests/e2e/pytorch_sets.py" . "$seed"
    agrees lenet5 lenet5 idx images idx:images idx:images --rounds 30
    agrees resnet resnet:8 cifar cifar cifar10:cifar cifar10:cifar --rounds 30
else
    echo "# PyTorch is not installed: models of its modules are not tested"
fi

# All commands that write a model write the same metadata of its inputs.
bounded "$HEARSAY" local --peers 2 --model logreg --data csv:table.csv --rounds 5 --seed "$seed" --out local >local.out 2>local.err
bounded "$HEARSAY" sim --peers 2 --model logreg --data csv:table.csv --rounds 5 --seed "$seed" --out sim >sim.out 2>sim.err
check "local, sim and train write the same metadata of data" python3 - <<'PY'
import json, struct
def meta(path):
    raw = open(path, "rb").read()
    m = json.loads(raw[8:8 + struct.unpack("<Q", raw[:8])[0]])["__metadata__"]
    return [m[k] for k in ("data", "input", "trained_on", "classes")]
paths = ["table", "local/peer-0", "local/peer-1", "sim/peer-1"]
all = [meta(p + "/model.safetensors") for p in paths]
assert all.count(all[0]) == 4, all
PY

e2e_end
