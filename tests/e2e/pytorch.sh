#!/usr/bin/env bash
# tests/e2e/pytorch.sh -- exchanges models with PyTorch in both directions: names, layouts and logits equal those of the modules
# in tests/pytorch_models.py. Training gives the same result as PyTorch's optimisers. Skips if PyTorch is missing.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

python=
for one in python3 /usr/bin/python3; do
    if "$one" -c 'import torch' 2>/dev/null; then
        python=$one
        break
    fi
done
[ -n "$python" ] || skip "python3 has no torch here (Debian: python3-torch)"
e2e_begin
export OMP_NUM_THREADS=1

python3 "$root/tests/e2e/idx.py" idx 200 60 "$seed"
python3 "$root/tests/e2e/idx.py" few/idx 16 20 "$seed"
"$python" "$root/tests/e2e/pytorch_sets.py" . "$seed"

# shellcheck disable=SC2317 # This function is called indirectly, by check.
pytorch()
{
    "$python" "$root/tests/e2e/pytorch_check.py" "$@"
}

hearsay()
{
    bounded "$HEARSAY" "$@" >"$name.out" 2>"$name.err" </dev/null
}

# models_agree NAME SET DATA MODEL [--norm KIND]: PyTorch loads a model of hearsay, and hearsay loads a model of PyTorch. Compares
# logits and accuracy.
models_agree()
{
    name=$1 # Prefix of the names of the files that the function hearsay() writes.
    local set=$2 data=$3 model=$4
    shift 4
    hearsay train --model "$model" --data "$data" --rounds 12 --batch 16 --seed "$seed" "$@" --out "$name"
    check "$name: hearsay train ends with 0" [ $? = 0 ]
    hearsay eval "$name/model.safetensors" --data "$data" --logits "$name.logits" --json
    check "$name: hearsay eval ends with 0" [ $? = 0 ]
    check "$name: PyTorch takes the file and gives the same logits, loss and accuracy" \
        pytorch agree "$name/model.safetensors" "$name.logits" "$name.out" --model "$model" --set "$set" "$@"

    check "$name: PyTorch writes a model" \
        pytorch write "$name-theirs.safetensors" --model "$model" --set "$set" --seed "$seed" "$@"
    hearsay eval "$name-theirs.safetensors" --model "$model" --data "$data" --logits "$name-theirs.logits" --json "$@"
    check "$name: hearsay eval takes it" [ $? = 0 ]
    check "$name: and gives PyTorch's logits" \
        pytorch agree "$name-theirs.safetensors" "$name-theirs.logits" "$name.out" --model "$model" --set "$set" "$@"
    # With such a low learning rate, training hardly changes the initial model.
    hearsay train --init "$name-theirs.safetensors" --model "$model" --data "$data" --rounds 1 --batch 16 --lr 1e-9 \
        --seed "$seed" "$@" --out "$name-again"
    check "$name: hearsay train --init takes it" [ $? = 0 ]
    check "$name: and begins there" \
        pytorch near "$name-theirs.safetensors" "$name-again/model.safetensors" 1e-6
}

# training_agrees NAME SET DATA MODEL RECIPE: hearsay and PyTorch train twenty steps from the same model, and must end with nearly
# the same model.
training_agrees()
{
    name=$1-$5
    local set=$2 data=$3 model=$4 recipe=$5 flags
    check "$name: PyTorch writes a model" pytorch write "$name.safetensors" --model "$model" --set "$set" --seed "$seed"
    read -ra flags < <(pytorch flags "$recipe")
    hearsay train --init "$name.safetensors" --model "$model" --data "$data" --out "$name" "${flags[@]}"
    check "$name: hearsay train ends with 0" [ $? = 0 ]
    check "$name: it goes where PyTorch goes" \
        pytorch trained "$name.safetensors" "$name/model.safetensors" --model "$model" --set "$set" --recipe "$recipe"
}

models_agree logreg rows:rows libsvm:rows/set,test=rows/set.t logreg
models_agree table table:table csv:table/train.csv,scale=none,test=table/test.csv logreg
models_agree mlp rows:rows libsvm:rows/set,test=rows/set.t mlp:40-16-2
models_agree lenet5 idx:idx mnist:idx lenet5
models_agree lenet5-group idx:idx mnist:idx lenet5:bn --norm group
models_agree vgg11 cifar:cifar cifar10:cifar vgg11:bn
models_agree resnet cifar:cifar cifar10:cifar resnet:20
models_agree resnet-group cifar:cifar cifar10:cifar resnet:20 --norm group
models_agree resnet-layer cifar:cifar cifar10:cifar resnet:20 --norm layer
models_agree lstm text:text text:text/train.txt,test=text/test.txt,context=16 lstm:2x32
models_agree gpt text:text text:text/train.txt,test=text/test.txt,context=16 gpt:2x64

text=text:few/text/train.txt,test=few/text/test.txt,context=16
training_agrees lenet5 idx:few/idx mnist:few/idx lenet5 sgd
training_agrees resnet cifar:few/cifar cifar10:few/cifar resnet:20 nesterov
training_agrees lstm text:few/text $text lstm:2x32 sgd
training_agrees lstm text:few/text $text lstm:2x32 adam
training_agrees gpt text:few/text $text gpt:2x64 nesterov
training_agrees gpt text:few/text $text gpt:2x64 adamw

e2e_end
