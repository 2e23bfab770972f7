#!/usr/bin/env bash
# tests/e2e/slurm.sh -- runs deploy/slurm/hearsay.sbatch with a real Slurm cluster of one node, which this script starts. Four tasks
# train and end in consensus. The run of a cancelled job continues in a second job.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
for need in munged slurmctld slurmd sbatch scontrol squeue scancel; do
    command -v "$need" >/dev/null || [ -x "/usr/sbin/$need" ] || skip "there is no $need here (packages slurmctld slurmd slurm-client munge)"
done
[ "$(id -u)" = 0 ] || skip "only root can start a slurmd of its own"
e2e_begin
PATH=$PATH:/usr/sbin

read -r ctld_port slurmd_port peers_port <<<"$(free_ports 3)"
mkdir -p munge state spool && chmod 711 "$work" munge
head -c 1024 /dev/urandom >munge/key && chmod 600 munge/key
cat >slurm.conf <<END
ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=root
SlurmctldPort=$ctld_port
SlurmdPort=$slurmd_port
AuthType=auth/munge
AuthInfo=socket=$work/munge/socket
CryptoType=crypto/munge
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
SelectType=select/linear
KillWait=20
NodeName=localhost NodeAddr=127.0.0.1 CPUs=4 RealMemory=1000
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END
export SLURM_CONF=$work/slurm.conf

start munged munged --foreground --force --key-file="$work/munge/key" --socket="$work/munge/socket" \
    --pid-file="$work/munge/pid" --log-file="$work/munge/log" --seed-file="$work/munge/seed"
wait_until 20 test -S munge/socket || skip "munged does not start: $(tail -n 1 munged.err)"
start slurmctld slurmctld -D -f "$SLURM_CONF"
start slurmd slurmd -D -N localhost -f "$SLURM_CONF"
# shellcheck disable=SC2317 # This function is called indirectly, by wait_until.
idle()
{
    [ "$(sinfo -h -o %T 2>/dev/null)" = idle ] || { none_alive "${pids[@]}" && return 0; }
}
wait_until 30 idle
[ "$(sinfo -h -o %T 2>sinfo.err)" = idle ] \
    || skip "Slurm does not run here: $(tail -n 1 slurmd.err slurmctld.err | grep -m 1 error)"

# submit FLAG...: submits a job. The number of the job is $job.
submit()
{
    job=$(HEARSAY=$HEARSAY PORT=$peers_port sbatch --parsable --ntasks 4 --overcommit --time 10 -o job.log \
        "$root/deploy/slurm/hearsay.sbatch" --data glyphs --model logreg --seed "$seed" "$@" 2>sbatch.err)
}
# shellcheck disable=SC2317
over()
{
    ! squeue -h -j "$job" -o %T 2>/dev/null | grep -q .
}
state()
{
    scontrol show job "$job" | sed -nE 's/.*JobState=([A-Z]+).*/\1/p'
}
# verdicts DIR N: checks that N peers in DIR report a consensus of N.
verdicts()
{
    [ "$(grep -lE "\"text\": ?\"consensus of $2 of $2 peers" "$1"/rank-*/summary.json 2>/dev/null | wc -l)" = "$2" ]
}

check "sbatch takes four tasks" submit --rounds 30
check "  which end" wait_until 60 over
check "  well: $(state)" [ "$(state)" = COMPLETED ]
check "  in consensus of four" verdicts "hearsay-$job" 4
check "  with a key that only its owner can read" [ "$(stat -c %a "hearsay-$job/cluster.key")" = 600 ]
check "  and four models" [ "$(ls "hearsay-$job"/rank-{0,1,2,3}/model.safetensors | wc -l)" = 4 ]

export RUN_DIR=$work/again
check "sbatch takes a long run" submit --rounds 2000 --local-steps 5 --final-drift 0.01
# shellcheck disable=SC2317
under_way()
{
    round_at_least again/rank-0/metrics.jsonl 20
}
check "  that gets under way" wait_until 60 under_way
scancel --signal=TERM "$job" # Slurm sends SIGTERM, too, 60 s before the time limit (--signal=TERM@60).
check "  and ends at SIGTERM" wait_until 60 over
stopped=$(last_round again/rank-0/metrics.jsonl)
check "  with a checkpoint of each" [ "$(ls -d again/rank-*/checkpoint* 2>/dev/null | wc -l)" -ge 4 ]
submit --rounds 2000 --local-steps 5 --final-drift 0.01
# shellcheck disable=SC2317
further()
{
    round_at_least again/rank-0/metrics.jsonl $((stopped + 5))
}
check "submitted again, the run continues after round $stopped" wait_until 60 further
check "  all four from their checkpoints" [ "$(grep -cE "resuming from the checkpoint of round [1-9]" job.log)" = 4 ]
scancel --signal=TERM "$job"
check "  until it is cancelled" wait_until 60 over
[ $failed = 0 ] || sed 's/^/# /' job.log sbatch.err
e2e_end
