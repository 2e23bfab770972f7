#!/usr/bin/env bash
# tests/e2e/statistics.sh -- a model with batch norms: the exact consensus distance is computed from the trained parameters only.
# The distance of the running statistics is reported separately.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin

run=(--peers 4 --topology ring --data glyphs --rounds 4 --batch 8 --compress topk:0.1 --final-drift 0 --seed "$seed")
keys=(drift relative_drift statistics_drift statistics_relative_drift)

# same WHAT X Y: checks that two numbers are equal except for rounding to a few digits.
same()
{
    check "$1: $2 is $3" within "$(awk -v a="$2" -v b="$3" 'BEGIN { print (b > 0 ? a / b : a == b ? 1 : "none") }')" 0.994 1.006
}

# figure LINE NUMBER: prints the absolute (1) or relative (2) value in the line named LINE of $way.out.
figure()
{
    sed -n "s/^$1  *\([^,]*\), relative \([^ ]*\).*/\\$2/p" "$way.out"
}

for way in sim local; do
    bounded "$HEARSAY" "$way" "${run[@]}" --model resnet:8 --out "$way" --json >"$way.json" 2>"$way.err" </dev/null
    check "hearsay $way --json ends with 0" [ $? = 0 ]
    read -r xi relative n statistics statistics_relative n_statistics < <(figures drift "$way"/peer-{0,1,2,3}/model.safetensors)
    check "$way: ${n-no} parameters are trained, ${n_statistics-no} are statistics" [ "${n-} ${n_statistics-}" = "75002 480" ]
    read=("$xi" "$relative" "$statistics" "$statistics_relative")
    for i in 0 1 2 3; do
        same "$way: ${keys[i]}" "$(figures json "$way.json" "${keys[i]}")" "${read[i]}"
    done
    bounded "$HEARSAY" "$way" "${run[@]}" --model resnet:8 --out "$way" --fresh >"$way.out" 2>"$way.err" </dev/null
    read -r xi relative _ statistics statistics_relative _ < <(figures drift "$way"/peer-{0,1,2,3}/model.safetensors)
    same "$way: drift, in words" "$(figure drift 1)" "$xi"
    same "$way: relative drift, in words" "$(figure drift 2)" "$relative"
    same "$way: statistics, in words" "$(figure statistics 1)" "$statistics"
    same "$way: relative statistics, in words" "$(figure statistics 2)" "$statistics_relative"

    bounded "$HEARSAY" "$way" "${run[@]}" --model logreg --out plain --fresh --json >"$way.json" 2>"$way.err" </dev/null
    check "$way: a model without has none" \
        [ "$(figures json "$way.json" statistics_drift) $(figures json "$way.json" statistics_relative_drift)" = "None None" ]
    check "$way: but a drift" within "$(figures json "$way.json" drift)" 1e-9 1e3
    bounded "$HEARSAY" "$way" "${run[@]}" --model logreg --out plain --fresh >"$way.out" 2>"$way.err" </dev/null
    check "$way: and no such line" [ "$(grep -c ^drift "$way.out") $(grep -c ^statistics "$way.out")" = "1 0" ]
done

# ---- Bytes of a round: running statistics are sent uncompressed. ----

# sized CODEC BYTES EVERY: checks the size of a delta of resnet:8. Every EVERY-th delta begins with the 480 running
# statistics (1 + 4 * 480 bytes). A peer in a ring sends one delta per round over each of its two edges.
sized()
{
    "$HEARSAY" topology ring --peers 8 --model resnet:8 --compress "$1" --json >topology.json 2>topology.err
    check "topology, $1: message_bytes $2, statistics in one of $3" \
        [ "$(figures json topology.json message_bytes) $(figures json topology.json statistics_bytes) $(figures json topology.json statistics_every)" = "$2 1921 $3" ]
    check "  and bytes a round" within "$(figures json topology.json bytes_sent_a_round_by_a_peer)" \
        "$(awk -v m="$2" -v k="$3" 'BEGIN { print 2 * (m - 1920 + 1920 / k) - 1 }')" \
        "$(awk -v m="$2" -v k="$3" 'BEGIN { print 2 * (m - 1920 + 1920 / k) + 1 }')"
}
sized none $((1 + 4 * 75002 + 1921)) 1
# Every 5th delta has the running statistics, to keep them under 5 % of all bytes: 1921 / (0.05 * 9381) = 4.1.
sized sign:0 $((1 + 4 + 9376 + 1921)) 5
"$HEARSAY" topology ring --peers 8 --model resnet:8 --compress sign:0 >topology.out 2>topology.err
check "  in words" eval 'grep -q "^message  *11302 bytes" topology.out && grep -q "^statistics  *1921 bytes, only in one of 5 messages; the other messages have 9382 bytes, the mean is 9766 bytes$" topology.out'
check "compressors --model sizes what is trained: $("$HEARSAY" compressors --model resnet:8 --compress none --json | grep '"n_params"')" \
    eval '"$HEARSAY" compressors --model resnet:8 --compress none --json >compressors.out && [ $(figures json compressors.out n_params) = 75002 ] &&
        [ $(figures json compressors.out compressors.0.bytes) = $((1 + 4 * 75002)) ]'
"$HEARSAY" topology ring --model logreg --compress none >topology.out 2>topology.err
check "a model without has none" eval 'grep -q "^message  *31401 bytes" topology.out && ! grep -q ^statistics topology.out'

# ---- Peers that train with learning rate 0: only their running statistics differ. ----

check "keygen" eval '"$HEARSAY" key new cluster.key 2>keygen.err'
read -r -a port < <(free_ports 4)
for i in 0 1 2 3; do
    start "peer-$i" "$HEARSAY" peer --listen "127.0.0.1:${port[i]}" --key cluster.key \
        --bootstrap "127.0.0.1:${port[0]},127.0.0.1:${port[1]}" --data glyphs --shard "$((i + 1))/4" \
        --model resnet:8 --batch 4 --lr 1e-12 --rounds 1000000 --min-peers 4 --topology ring --compress topk:0.1 \
        --seed "$seed" --name "peer-$i" --out "peer-$i"
done
check "four peers train" wait_until 60 round_at_least peer-0/metrics.jsonl 5
observe=(--bootstrap "127.0.0.1:${port[0]}" --key cluster.key --exact)
bounded "$HEARSAY" drift "${observe[@]}" --json >drift.json 2>drift.err
check "hearsay drift --exact ends with 0" [ $? = 0 ]
drift=$(figures json drift.json exact.drift) statistics=$(figures json drift.json exact.statistics_drift)
check "weights are not apart: $drift" within "$drift" 0 1e-6
check "statistics are: $statistics" within "$statistics" 1e-4 1e3
check "  and relative to their mean" within "$(figures json drift.json exact.statistics_relative_drift)" 1e-6 10
bounded "$HEARSAY" drift "${observe[@]}" >drift.out 2>drift.err
statistics=$(sed -n 's/^statistics  *drift \([^ ]*\) .*/\1/p' drift.out)
check "in words: ${statistics:-none}" within "$statistics" 1e-4 1e3

e2e_end
