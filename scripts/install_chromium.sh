#!/usr/bin/env bash
# Install the browser in which tests open report pages, if none is there and Debian's package may be installed (as root or
# with sudo that asks for nothing). Without it those tests skip, which is said here and at the end of the test run.
# `make test` tries again each time; where it is there, at no cost.
set -euo pipefail

there() { command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null; }

if there; then exit 0; fi

if command -v apt-get >/dev/null; then
  as_root=""
  if [ "$(id -u)" != 0 ]; then as_root="sudo -n"; fi
  if [ -z "$as_root" ] || $as_root true 2>/dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    $as_root apt-get install -y -qq chromium >/dev/null 2>&1 ||
      { $as_root apt-get update -qq && $as_root apt-get install -y -qq chromium >/dev/null; } || true
  fi
fi

if ! there; then
  echo "!!! No Chromium could be installed (Debian: apt-get install chromium)." >&2
  echo "!!! The tests that open report pages in a browser will be skipped." >&2
fi
