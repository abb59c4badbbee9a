#!/usr/bin/env bash
# Install Slurm and munge, with which tests start clusters with made-up GPUs, if they are not there and Debian's packages
# may be installed (as root or with sudo that asks for nothing). Without them those tests skip, which is said here and at
# the end of the test run. `make test` tries again each time; where they are there, at no cost.
# No daemon is left behind: the packages' services have no configuration, and are told not to start.
set -euo pipefail

there() {
  local program
  for program in slurmctld slurmd munged sbatch squeue scontrol sinfo; do
    PATH=$PATH:/usr/sbin:/sbin command -v "$program" >/dev/null || return 1
  done
}

if there; then exit 0; fi

if command -v apt-get >/dev/null; then
  as_root=""
  if [ "$(id -u)" != 0 ]; then as_root="sudo -n"; fi
  if [ -z "$as_root" ] || $as_root true 2>/dev/null; then
    packages="slurmctld slurmd slurm-client munge slurm-wlm-basic-plugins"
    # `RUNLEVEL=1` is what invoke-rc.d takes for "start nothing".
    install="$as_root env RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends"
    $install $packages >/dev/null 2>&1 ||
      { $as_root apt-get update -qq && $install $packages >/dev/null; } || true
  fi
fi

if ! there; then
  echo "!!! No Slurm could be installed (Debian: apt-get install slurmctld slurmd slurm-client munge slurm-wlm-basic-plugins)." >&2
  echo "!!! The tests on a real cluster manager will be skipped." >&2
fi
