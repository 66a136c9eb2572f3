#!/bin/sh
# See that the image to build on is here: pulled, or, where no registry can be reached, Debian's
# made by debootstrap from the mirror this machine itself installs from (needs root).
set -eu
image=$1
docker image inspect "$image" >/dev/null 2>&1 && exit
docker pull -q "$image" && exit

case $image in
debian:*-slim) suite=${image#debian:} suite=${suite%-slim} ;;
*)
    echo "$image can neither be pulled nor made here; VIZPUB_BASE_IMAGE names another one" >&2
    exit 1
    ;;
esac
command -v debootstrap >/dev/null || {
    echo "$image cannot be pulled; with debootstrap (as root) it can be made here" >&2
    exit 1
}
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' "Codename: $suite" |
    head -n 1)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
echo "Making $image by debootstrap (a minute)"
debootstrap --variant=minbase "$suite" "$folder" ${mirror:+"$mirror"} >"$folder.log" 2>&1 || {
    tail "$folder.log" >&2
    exit 1
}
rm "$folder.log"
# What apt keeps is not wanted in an image.
tar -C "$folder" --exclude='./var/cache/apt/*' --exclude='./var/lib/apt/lists/*' -c . |
    docker import - "$image" >/dev/null
