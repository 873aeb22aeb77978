#!/bin/sh
# batch.sh: several operations by one kernel. Prints what users see.
set -u
cd "$(mktemp -d "$SCRATCH/work.XXXXXX")" || exit 1
PATH=$PATH:/usr/sbin:/sbin
export KYOZON_LINUX="$KYOZON_PRODUCT/linux.elf"
fs() { "$KYOZON_PRODUCT/kyozon" fs "$@" 2>&1; }
truncate -s 16M a.img b.img; mkfs.ext4 -qF a.img; mkfs.vfat b.img >/dev/null; echo text >f; mkdir tree; echo 1 >tree/x

# Both images, both directions, quotes; -f and standard input.
cat >script <<end
# what is put there
mkdir -p ':/a b' :/c	# two folders
cp f ":/a b/g"
cp -r tree :/c
cp ':/a b/g' b.img:/copy
cat ':/a b/g' b.img:/copy
cp -r :/c out
-rm :/none
find :/ -type f -name '[gx]'
tar -x -f in.tar :/c
end
tar -cf in.tar f
fs batch -f script a.img; echo "status $?"; cat out/tree/x; fs cat a.img:/c/f; e2fsck -fn a.img >check 2>&1 || cat check
# The first error ends it; what was done before is kept.
fs batch a.img <<end; echo "status $?"; fs ls a.img:/ | grep made
mkdir :/made-before
rm :/none
mkdir :/made-behind
end
# An error in a later line changes nothing.
printf 'mkdir :/made-never\nmkdirs :/x\n' | fs batch a.img; echo "status $?"; fs ls a.img:/ | grep never
# A full file system ends it, unless the line may fail.
head -c 20M /dev/zero | tr '\0' x >big
printf -- '-cp big :/big\nrm -f :/big\ncp f :/last\ncat :/last\n' | fs batch a.img; echo "status $?"
printf 'cp big :/big\ncp f :/never\n' | fs batch a.img; echo "status $?"
fs rm a.img:/big; fs batch </dev/null; echo "status $?"
fs batch a.img none 2>&1 | head -n 1; echo 'ls none.img:/' | fs batch
printf 'cat :/c/f\nls :/\n' | fs batch a.img >/dev/full
# A hundred operations are one start of Linux.
i=0; while [ $i -lt 100 ]; do echo "cp f :/c/n$i"; i=$((i + 1)); done | fs batch a.img; fs ls a.img:/c | grep -c n
