#!/bin/sh
# own.sh USER COMMAND...: runs a command as a user (a number), in a mount namespace with a /dev/fuse that everybody may
# open, as udev makes it, and with --allow-other for all. Its temporary folder is $SCRATCH, and belongs to the user.
set -eu
user=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp "$KYOZON_PRODUCT/kyozon-linux" "$KYOZON_PRODUCT/kyozon-linux-exec" "$KYOZON_PRODUCT/linux.elf" "$folder"
cp -r "$TREE/tests/library/mount" "$folder/test"
mkdir "$folder/work"
chmod -R a+rX "$folder"
chown -R "$user" "$folder/work"
inside='mkdir -m 755 "$0/dev" && mount -t tmpfs none "$0/dev" && mknod -m 666 "$0/dev/fuse" c 10 229 &&
	chmod 666 "$0/dev/fuse" && mount --bind "$0/dev/fuse" /dev/fuse &&
	echo user_allow_other >"$0/dev/fuse.conf" && mount --bind "$0/dev/fuse.conf" /etc/fuse.conf && cd "$0/work" &&
	exec setpriv --reuid "$1" --regid "$1" --clear-groups "${@:2}"'
KYOZON_PRODUCT=$folder SCRATCH=$folder/work HOME=$folder/work unshare -m bash -c "$inside" "$folder" "$user" "$@"
