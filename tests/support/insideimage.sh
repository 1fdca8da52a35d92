#!/bin/sh
# insideimage.sh ROOT FOLDER USER COMMAND…: the command as a container of that image has it: its root read-only, a /tmp of its
# own, no capabilities and none to be had. FOLDER is there under its own name, to be written. Started by
# `unshare --mount`; the network and processes are the machine's.
set -eu
root=$1 folder=$2 user=$3
shift 3
mount --bind "$root" "$root"
mount -o remount,bind,ro,nosuid "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mkdir -p "$root/tmp/${folder#/tmp/}"
mount --bind "$folder" "$root/tmp/${folder#/tmp/}"
exec chroot "$root" /usr/bin/setpriv --reuid="$user" --regid=0 --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all \
  /usr/bin/env -i PATH=/opt/treeplane/bin:/usr/bin:/bin HOME=/tmp PYTHONDONTWRITEBYTECODE=1 "$@"
