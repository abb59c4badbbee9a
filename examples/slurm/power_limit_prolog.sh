#!/bin/sh
# Prolog and epilog of Slurm: gives the GPUs of a job the power limit that `gpusched slurm drive` chose, and takes it back.
#
# In slurm.conf on all nodes: Prolog=/etc/slurm/power_limit_prolog.sh and Epilog=/etc/slurm/power_limit_prolog.sh
# Slurm runs both as root. The limit is the word gpusched-power=0.7 in the job's AdminComment: a part of the default limit.
# The job runs in any case: a limit that cannot be set is a line in the log of the node, and no failure.
[ -n "$SLURM_JOB_GPUS" ] || exit 0
part=1
if [ "$SLURM_SCRIPT_CONTEXT" != epilog_slurmd ]; then
  # Of the administrator's comment alone: what users write in a comment or a name of a job sets no limit.
  part=$(squeue --noheader --jobs="$SLURM_JOB_ID" --Format=AdminComment:4000 2>/dev/null |
    sed -n 's/.*gpusched-power=\(0\.[0-9]*\).*/\1/p' | head -n 1)
  [ -n "$part" ] || exit 0
fi
for gpu in $(echo "$SLURM_JOB_GPUS" | tr ',' ' '); do
  usual=$(nvidia-smi -i "$gpu" --query-gpu=power.default_limit,power.min_limit --format=csv,noheader,nounits) || continue
  watts=$(echo "$usual" | awk -F ', *' -v part="$part" '{ w = $1 * part; if (w < $2) w = $2; printf "%d", w }')
  nvidia-smi -i "$gpu" -pl "$watts" >/dev/null || logger -t gpusched "GPU $gpu: no power limit of $watts W" || true
done
exit 0
