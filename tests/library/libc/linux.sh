#!/bin/sh
# linux.sh SOURCE [ARGUMENT]...: compiles a program for a host, and with the C library of this machine. Runs the first
# on library Linux, with an image as its root, and the second on this machine. Status, output and errors must be equal.
# Prints the output, ends with the status. FOLDER in an argument becomes a folder of the image, or of this machine; it
# has a copy of the file that COPY names. A SOURCE without suffix is a program in SCRATCH, with NAME-native beside it.
# With ALONE=1, the program asks for what the stock C library does not have, and is not compared.
set -eu
PATH=$PATH:/usr/sbin:/sbin
source=$1 name=$(basename "${1%.*}")
shift
here=$TREE/tests/library/libc
case $source in
*.*)
	"$here/build.sh" "$source" "$SCRATCH/$name"
	[ -n "${ALONE:-}" ] || "$here/native.sh" "$source" "$SCRATCH/$name-native"
	;;
esac
copy=${COPY:+$(realpath "$COPY")}
cd "$SCRATCH"
rm -rf tree folder disk.img
mkdir -p tree/folder tree/tmp folder
for folder in tree/folder folder; do [ -z "$copy" ] || cp "$copy" $folder; done
truncate -s 64M disk.img
mkfs.ext4 -q -d tree disk.img

# run FOLDER NAME COMMAND...: writes NAME.out, NAME.err and NAME.status.
run() {
	folder=$1 to=$2
	shift 2
	for word; do
		shift
		set -- "$@" "$(printf '%s\n' "$word" | sed "s|FOLDER|$folder|")"
	done
	status=0
	TMPDIR=$folder "$@" >"$to.out" 2>"$to.err" || status=$?
	echo $status >"$to.status"
}
run /folder library "$KYOZON_PRODUCT/kyozon" exec --mount disk.img:/ -- "$SCRATCH/$name" "$@"
[ -n "${ALONE:-}" ] || run "$SCRATCH/folder" host "$SCRATCH/$name-native" "$@"
for part in out err status; do
	[ -z "${ALONE:-}" ] || break
	# Messages of panics have thread ids.
	sed -E "s/\([0-9]+\) panicked/panicked/" library.$part >library.text
	sed -E "s/\([0-9]+\) panicked/panicked/" host.$part | cmp - library.text >&2 || {
		echo "linux.sh: $part differs from this machine's:" >&2
		diff host.$part library.$part >&2 || true
		exit 99
	}
done
e2fsck -fp disk.img >fsck.out || {
	cat fsck.out >&2
	exit 98
}
cat library.out
cat library.err >&2
exit "$(cat library.status)"
