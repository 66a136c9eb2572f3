#!/bin/sh
# Provide a Docker engine. `engine.sh start FILE` does nothing if one answers. Otherwise it starts
# one (as root; it installs Debian's if there is none) and keeps its process id in FILE.
# `engine.sh stop FILE` ends the engine that was started like this, and no other.
#
#   engine.sh start FILE | stop FILE
set -eu

answers() { docker version >/dev/null 2>&1; }

fail() {
    echo "$*" >&2
    exit 1
}

install() {
    command -v apt-get >/dev/null || fail "There is no Docker engine here, and no apt-get to install one."
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
    # With an exec root of its own it does not wait for the process of an engine that was killed.
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
