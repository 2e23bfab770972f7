#!/usr/bin/env bash
# tests/e2e/compressors.sh -- hearsay compressors prints correct values, and every codec that it lists can train.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin

# compressors NAME FLAGS...: runs the command. Output: NAME.out and NAME.err, exit code in $status.
compressors()
{
    local name=$1
    shift
    bounded "$HEARSAY" compressors "$@" >"$name.out" 2>"$name.err" </dev/null
    status=$?
}

# rows NAME EXPRESSION: prints the value of a Python expression for each compressor c in NAME.out. t is the whole object.
rows()
{
    python3 -c 'import json, sys
t = json.load(open(sys.argv[1]))
for c in t["compressors"]:
    print(eval("(" + sys.argv[2] + ")"))' "$1.out" "$2"
}

# ---- The list of codecs. ----

compressors list --json
check "--json ends with 0" [ $status = 0 ]
mapfile -t names < <(rows list 'c["name"]')
mapfile -t presets < <(rows list 'c["spec"]')
check "the list has ${#names[@]} codecs" [ ${#names[@]} -ge 6 ]
check "each by another name" [ "$(printf '%s\n' "${names[@]}" | sort -u | wc -l)" = ${#names[@]} ]
compressors text
check "the table ends with 0 and says nothing else" eval '[ $status = 0 ] && [ ! -s text.err ]'
for i in "${!names[@]}"; do
    if ! grep -qF -- "${presets[i]} " text.out || ! grep -qE -- "^${names[i]}([:,]|\$)" text.out; then
        not_ok "the table has no ${names[i]}"
    fi
done
check "all have class, bound, text and source" [ "$(rows list \
    'all(c[k] for k in ("class", "bound", "about", "source", "form", "role")) and c["name"] in c["codecs"]' | sort -u)" = True ]
check "classes are known" [ -z "$(rows list 'c["class"]' | grep -vxE 'contraction|expected|unbiased|neither')" ]
# A threshold codec may select nearly all values. A message then also has the positions of the values, with
# one bit per value.
check "no message is much longer than the floats" [ "$(rows list 'c["bytes"] < 4e6 + 1.1 * 1e6 / 8' | sort -u)" = True ]

# ---- Message sizes that can be computed by hand. ----

# bytes_are N SPEC BYTES...: checks the size of one message for N values with each codec SPEC.
bytes_are()
{
    local n=$1 specs='' wanted='' found
    shift
    while [ $# -gt 0 ]; do
        specs="$specs $1" wanted="$wanted $2"
        shift 2
    done
    compressors bytes --params "$n" --compress "$specs" --json
    found=$(rows bytes 'c["bytes"]' | tr '\n' ' ')
    check "bytes of $n values with$specs:$wanted" [ " $found" = "$wanted " ]
}

bytes_are 1000000 none 4000001 fp16 $((1 + 2000000 + 977)) sign:512 $((1 + 125000 + 4 * 1954)) \
    sign:0 125005 qsgd:4:512:max $((1 + 500000 + 4 * 1954)) qsgd:8:512:max $((1 + 1000000 + 4 * 1954)) \
    randk:0.01 $((1 + 8 + 40000)) randk:0.01+sign:0 $((1 + 8 + 4 + 1250))
bytes_are 7 none 29 sign:512 6
bytes_are 1000003 none 4000013
# The positions of 10,000 values among 1,000,000 need 8.08 to 8.2 bits each.
compressors topk --compress topk:0.01 --json
check "bytes of topk:0.01: $(rows topk 'c["bytes"]')" within "$(rows topk 'c["bytes"]')" 50100 50300
compressors layers --model lenet5 --compress "none none,scope=layer none;bias=fp16" --json
check "a model's tensors: $(rows layers 'c["bytes"]' | tr '\n' ' ')" [ "$(rows layers \
    'c["bytes"] - 4 * t["n_params"] if "fp16" not in c["codecs"] else c["bytes"] < 4 * t["n_params"]' | tr '\n' ' ')" = "1 10 True " ]
compressors again --json
check "the same figures again" cmp -s list.out again.out

# ---- Measurements (--measure). ----

compressors measured --measure --params 65536 --seed "$seed" \
    --compress "none fp16 sign:0 topk:0.01 topk:0.1 randk:0.01 qsgd:4:512:max qsgd:4:512:l2,round=sr,scale=raw" --json
check "--measure ends with 0" [ $status = 0 ]
# Expected contractions for standard normal values, published or computed by integration. Measured with four draws.
for wanted in "none 1 1" "fp16 0.9999999 1" "sign:0 0.63 0.643" "topk:0.01 0.0795 0.0895" "topk:0.1 0.434 0.444" \
    "randk:0.01 0.008 0.012" "qsgd:4:512:max 0.977 0.987" "qsgd:4:512:l2,round=sr,scale=raw -0.62 -0.54"; do
    read -r spec low high <<<"$wanted"
    delta=$(rows measured "c['delta'] if c['spec'] == '$spec' else ''" | grep .)
    check "delta of $spec: $delta" within "$delta" "$low" "$high"
done
check "speeds are those of the seconds" [ "$(rows measured 'all(
    c[k] > 0 for k in ("encode_s", "validate_s", "apply_s", "encode_of_axpy", "apply_of_memcpy"))
    and abs(c["encode_gelem_per_s"] * c["encode_s"] * 1e9 / t["n_params"] - 1) < 1e-6
    and abs(c["apply_of_axpy"] * t["axpy_gelem_per_s"] / c["apply_gelem_per_s"] - 1) < 1e-6' | sort -u)" = True ]

# A vector so small that many calls must be timed together: one call is too short for the clock.
compressors small --measure --params 1000 --compress none --json
speed=$(rows small 't["axpy_gelem_per_s"]')
check "axpy of 1000 floats in cache: $speed Gelem/s" within "$speed" 0.15 1000

# pays: checks the field "pays", which says below which bandwidth compression pays, by computing it from the other fields.
pays()
{
    rows "$1" '(lambda cpu, deg, up, n: abs(c["with_s"] / (cpu + deg * 8 * c["bytes"] / up) - 1) < 1e-6
        and abs(t["without_s"] / (deg * 32 * n / up) - 1) < 1e-6
        and c["pays"] == (c["with_s"] < t["without_s"])
        and c["pays"] == (up < (c["pays_below_bit_per_s"] or 0))
        and (c["pays_below_bit_per_s"] is None) == (c["bytes"] >= 4 * n)
        and (c["bytes"] >= 4 * n or abs(deg * (32 * n - 8 * c["bytes"]) / cpu / c["pays_below_bit_per_s"] - 1) < 1e-6))(
        c["encode_s"] + t["neighbours"] * (c["validate_s"] + c["apply_s"]), t["neighbours"],
        t["uplink_bit_per_s"], t["n_params"])' | sort -u
}
for rate in 1Mbit 1Gbit 100Tbit; do
    compressors "pay-$rate" --bandwidth $rate --params 100000 --neighbours 3 --compress "none topk:0.01 sign" --json
    check "$rate: seconds and verdicts follow from the parts" [ "$(pays "pay-$rate")" = True ]
    check "$rate: none does not pay" [ "$(rows "pay-$rate" 'c["pays"]' | sed -n 1p)" = False ]
done
check "1 Mbit/s: topk:0.01 pays" [ "$(rows pay-1Mbit 'c["pays"]' | sed -n 2p)" = True ]
check "100 Tbit/s: topk:0.01 does not pay" [ "$(rows pay-100Tbit 'c["pays"]' | sed -n 2p)" = False ]
check "rates are read right" [ "$(rows pay-1Mbit 't["uplink_bit_per_s"]' | sed -n 1p)$(rows pay-1Gbit \
    't["uplink_bit_per_s"]' | sed -n 1p)" = 1000000.01000000000.0 ]
compressors said --bandwidth 1Mbit --params 100000 --compress "none topk:0.01"
check "the table says the same" eval 'grep -q "^topk:0.01 .* yes$" said.out && grep -q "^none .* never .* no$" said.out'

# ---- A run trains with each codec. ----

for spec in "${names[@]}" topk:0.05+qsgd:4 topk:0.05+sign "none;bias=fp16;<256=topk:0.5"; do
    bounded "$HEARSAY" sim --peers 4 --topology ring --model mlp:784-16-10 --data glyphs --rounds 30 \
        --compress "$spec" --seed "$seed" --json >sim.out 2>sim.err </dev/null
    status=$?
    drift=$(figures json sim.out relative_drift)
    loss=$(figures json sim.out peers.3.loss)
    check "$spec trains: loss ${loss:-none}, drift ${drift:-none}, exit code $status" eval \
        '[ $status = 0 ] && within "${loss:-none}" 0 20 && within "${drift:-none}" 0 1.15e-3'
done

e2e_end
