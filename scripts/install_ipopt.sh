#!/usr/bin/env bash
# Install cyipopt into the virtual environment whose Python is $1, with the system's Ipopt if that is missing and may be
# installed (Debian, as root or with sudo that asks for nothing; or Homebrew). Without it everything else works, its
# tests skip, and every test run ends with a notice. `make test` tries again each time; where it is there, at no cost.
set -euo pipefail
python=$1
packages="coinor-libipopt-dev pkg-config liblapack-dev libblas-dev gcc python3-dev"

if "$python" -c "import cyipopt" 2>/dev/null; then exit 0; fi

if ! pkg-config --exists ipopt 2>/dev/null && command -v apt-get >/dev/null; then
  as_root=""
  if [ "$(id -u)" != 0 ]; then as_root="sudo -n"; fi
  if [ -z "$as_root" ] || $as_root true 2>/dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2086
    $as_root apt-get install -y -qq $packages >/dev/null 2>&1 ||
      { $as_root apt-get update -qq && $as_root apt-get install -y -qq $packages >/dev/null; } || true
  fi
fi

if ! pkg-config --exists ipopt 2>/dev/null && command -v brew >/dev/null; then
  brew install --quiet ipopt pkg-config || true
fi

if ! "$python" -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[ipopt]'; then
  echo "!!! cyipopt could not be installed: it needs the system's Ipopt (Debian: apt-get install $packages)." >&2
  echo "!!! The tests of sts:ipopt, STS with its published solver, will be skipped." >&2
fi
