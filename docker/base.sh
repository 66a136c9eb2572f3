#!/bin/sh
# Provide the base image: pull it or, where no registry can be reached, make Debian's with
# debootstrap from the mirror that this machine installs from (needs root).
set -eu
image=$1
docker image inspect "$image" >/dev/null 2>&1 && exit
docker pull -q "$image" && exit

case $image in
debian:*-slim) suite=${image#debian:} suite=${suite%-slim} ;;
*)
    echo "cannot pull or make $image here; name another image in VIZPUB_BASE_IMAGE" >&2
    exit 1
    ;;
esac
command -v debootstrap >/dev/null || {
    echo "cannot pull $image; install debootstrap (as root) to make it here" >&2
    exit 1
}
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' "Codename: $suite" |
    head -n 1)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
echo "Making $image by debootstrap (a minute)"
debootstrap --variant=minbase "$suite" "$folder" ${mirror:+"$mirror"} >"$folder.log" 2>&1 || {
    tail "$folder.log" >&2
    exit 1
}
rm "$folder.log"
# Leave out the files that apt keeps.
tar -C "$folder" --exclude='./var/cache/apt/*' --exclude='./var/lib/apt/lists/*' -c . |
    docker import - "$image" >/dev/null
