#!/bin/bash
# Starts the server, or runs another command (`neo4j-admin …`) with the same configuration.
#
#   NEO4J_AUTH=neo4j/PASSWORD    the first password, or `none` for no log-in
#   NEO4J_AUTH_FILE=FILE         a file with the same text, which `docker inspect` does not show
#   NEO4J_<setting>=VALUE        a line of neo4j.conf: NEO4J_server_memory_pagecache_size=1g, where
#                                _ stands for a dot and __ for an underscore
set -euo pipefail

# neo4j.conf: the image's settings, overridden by those of the environment.
configure() {
    awk -F= '
        BEGIN {
            for (variable in ENVIRON) {
                if (variable !~ /^NEO4J_[a-z]/) continue
                name = substr(variable, 7)
                gsub(/__/, "\001", name); gsub(/_/, ".", name); gsub(/\001/, "_", name)
                said[name] = ENVIRON[variable]
            }
            if (ENVIRON["NEO4J_AUTH"] == "none") said["dbms.security.auth_enabled"] = "false"
        }
        !($1 in said)
        END { for (name in said) print name "=" said[name] }
    ' /etc/neo4j/neo4j.conf >"$NEO4J_CONF/neo4j.conf"
}

setting() { sed -n "s/^$1=//p" "$NEO4J_CONF/neo4j.conf"; }

# The tool reads the password from a file, so that the process list does not show it. In that file
# arguments are quoted, and an argument that begins with a single @ would name another file.
set_first_password() {
    local password=${NEO4J_AUTH#neo4j/}
    password=${password//\\/\\\\}
    password=${password//\"/\\\"}
    neo4j-admin dbms set-initial-password "@"<(printf -- '-- "%s"' "${password/#@/@@}") >/dev/null
}

if [ -n "${NEO4J_AUTH_FILE:-}" ]; then
    [ -r "$NEO4J_AUTH_FILE" ] || {
        echo "NEO4J_AUTH_FILE: $NEO4J_AUTH_FILE cannot be read by uid $(id -u)" >&2
        exit 1
    }
    NEO4J_AUTH=$(cat "$NEO4J_AUTH_FILE")
fi
NEO4J_AUTH=${NEO4J_AUTH:-} configure
[ "$1" = neo4j ] || exec env -u NEO4J_AUTH "$@"

case ${NEO4J_AUTH:=} in
none | '') ;;
neo4j/?*) [ -e "$(setting server.directories.data)/databases/system" ] || set_first_password ;;
*)
    echo "NEO4J_AUTH must be 'none' or 'neo4j/' and the password" >&2
    exit 1
    ;;
esac
unset NEO4J_AUTH

heap=()
initial=$(setting server.memory.heap.initial_size) most=$(setting server.memory.heap.max_size)
[ -z "$initial$most" ] || heap=("-Xms${initial:-$most}" "-Xmx${most:-$initial}")
read -ra additional <<<"$(setting server.jvm.additional)"
# As process 1 the JVM gets the stop signal itself.
exec java @/etc/neo4j/jvm "${heap[@]}" "${additional[@]}" -cp "$NEO4J_HOME/lib/*" \
    "$(cat /etc/neo4j/class)" --home-dir="$NEO4J_HOME" --config-dir="$NEO4J_CONF" --console-mode
