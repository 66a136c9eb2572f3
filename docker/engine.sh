#!/bin/sh
# A Docker engine where none runs: `engine.sh start` prints nothing and changes nothing when one
# answers; else it starts one (as root; Debian's is installed when there is none) and keeps its
# process id in FILE. `engine.sh stop FILE` ends the one that was started so, and no other.
#
#   engine.sh start FILE | stop FILE
set -eu

answers() { docker version >/dev/null 2>&1; }

fail() {
    echo "$*" >&2
    exit 1
}

install() {
    command -v apt-get >/dev/null || fail "No Docker engine here, and no apt-get to install one by."
    echo "Installing a Docker engine"
    export DEBIAN_FRONTEND=noninteractive
    apt-get -o DPkg::Lock::Timeout=300 update -q >/dev/null
    # The brackets keep the package's name from being read as a registry's.
    apt-get -o DPkg::Lock::Timeout=300 install -y -q --no-install-recommends \
        '^docker[.]io$' docker-compose debootstrap iptables >/dev/null
}

start() {
    answers && return
    [ "$(id -u)" = 0 ] || fail "No Docker engine answers, and only root can start one here."
    command -v dockerd >/dev/null && command -v debootstrap >/dev/null || install
    # What an engine left that was killed would keep this one waiting for a process that is gone.
    setsid dockerd --pidfile "$1" --exec-root "$1.run" >"$1.log" 2>&1 </dev/null &
    for _ in $(seq 60); do
        answers && return
        sleep 0.5
    done
    tail "$1.log" >&2
    fail "The Docker engine did not start; its log: $1.log"
}

stop() {
    [ -f "$1" ] || return 0
    engine=$(cat "$1")
    kill "$engine"
    while kill -0 "$engine" 2>/dev/null; do sleep 0.2; done
}

"$1" "${2:?a file for the process id}"
