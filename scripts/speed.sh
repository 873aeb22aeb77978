#!/bin/sh
# speed.sh NAME: prints a folder with a program of tests/typed/speed by clang -O2: NAME for this machine, NAME.wasm for
# WASI, and the file `version` with that of the library; with wasm2c, the program NAME-wasm2c too. Libraries come
# unchanged from Debian's source packages, which are downloaded once. The folder lies in $KYOZON_CACHE/speed, is named
# by a hash of everything that it is made of, and is built if it is missing.
set -eu
unset MAKEFLAGS MFLAGS CPPFLAGS CFLAGS LDFLAGS

fail() { echo "speed: $*" >&2; exit 1; }

cache=${KYOZON_CACHE:-${HOME:?speed: HOME is not set: set KYOZON_CACHE to the cache folder}/.cache/kyozon}
tree=$(cd "$(dirname "$0")/.." && pwd)
name=${1:-}

# The package, its file without .orig.tar, and the file's SHA-256.
case $name in
kernels) set -- ;;
bzip2) set -- bzip2 bzip2_1.0.8 gz ab5a03176ee106d3f0fa90e381da478ddae405918153cca248e682cd0c4a2269 ;;
libb2) set -- libb2 libb2_0.98.1 gz 10053dbc2fa342516b780a6bbf6e7b2a2360b8d49c5ac426936bf3df82526732 ;;
libsodium) set -- libsodium libsodium_1.0.18 gz d59323c6b712a1519a5daf710b68f5e7fde57040845ffec53850911f10a5d4f4 ;;
lua) set -- lua5.4 lua5.4_5.4.4 gz 164c7849653b80ae67bec4b7473b884bf5cc8d2dca05653475ec2ed27b9ebf61 ;;
lz4) set -- lz4 lz4_1.9.4 gz 0b0e3aa07c8c063ddf40b082bdf7e37a1562bda40a0ff5272957f3e987e0e54b ;;
sqlite) set -- sqlite3 sqlite3_3.40.1 xz aaa776260ab4dc976db34aa7891819484c8676b5b2783123ebc6301e2ca5d655 ;;
xz) set -- xz-utils xz-utils_5.4.1 xz 5d9827aa1875b21c288f78864bb26d2650b436ea8d2cad364e4921eb6266a5a5 ;;
zlib) set -- zlib zlib_1.2.13.dfsg bz2 71feb7947e3c00ef125f83b79a4e529bde31171e5babe48b391f06758d1ab0a1 ;;
*) fail "which program? Name one of: kernels bzip2 libb2 libsodium lua lz4 sqlite xz zlib" ;;
esac

tools="clang-14 wasm-ld-14"
[ "$name" != sqlite ] || tools="$tools gcc make tclsh"
for program in $tools; do
	command -v $program >/dev/null || fail "$program not found: run make setup FOR=bench"
done
[ -f /usr/lib/wasm32-wasi/libc.a ] || fail "wasi-libc not found: run make setup FOR=bench"
cd "$tree/tests/typed/speed"
hash=$({
	echo "$name"
	cat "$tree/scripts/speed.sh" ../wasi/programs/wasi-unix.h
	clang-14 --version
	wasm2c --version 2>/dev/null || echo none
	find . /usr/lib/wasm32-wasi -type f | LC_ALL=C sort | xargs sha256sum
} | sha256sum | cut -c 1-16)
folder=$cache/speed/$hash
print_if_built() {
	[ -d "$folder" ] || return 0
	echo "$folder"
	exit
}
print_if_built

# One build at a time: a second one finds the first one's result.
mkdir -p "$cache/speed"
exec 9>"$cache/speed/lock"
flock 9
print_if_built
work=$(mktemp -d "$cache/speed/build.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# sources FOLDER NAME ...: as paths of C files.
sources() {
	below=$1
	shift
	for file; do echo "$below/$file.c"; done
}
# What the library is compiled of, as arguments for the compiler.
library() {
	case $name in
	bzip2)
		echo "-DBZ_NO_STDIO -I $source"
		sources "$source" blocksort huffman crctable randtable compress decompress bzlib
		;;
	libb2)
		# Its portable functions, by their names without a suffix.
		echo "-DSUFFIX= -DNATIVE_LITTLE_ENDIAN -I $source/src"
		sources "$source/src" blake2b-ref blake2s-ref
		;;
	libsodium)
		of=$source/src/libsodium
		echo "-DCONFIGURED -I $of/include -I $of/include/sodium -I $source/builds/msvc"
		sources "$of/crypto_aead/chacha20poly1305/sodium" aead_chacha20poly1305
		sources "$of/crypto_stream/chacha20" stream_chacha20 ref/chacha20_ref
		sources "$of/crypto_onetimeauth/poly1305" onetimeauth_poly1305 donna/poly1305_donna
		sources "$of/crypto_verify/sodium" verify
		sources "$of/sodium" runtime utils
		;;
	lua)
		# Seeds and pivots are not random, so that each run does the same.
		echo "-Dluai_makeseed(state)=1 -Dl_randomizePivot()=0 -I $source/src"
		sources "$source/src" lapi lauxlib lbaselib lcode lctype ldebug ldo ldump lfunc lgc llex lmem lobject \
			lopcodes lparser lstate lstring lstrlib ltable ltablib ltm lundump lvm lzio
		echo "-lm"
		;;
	lz4)
		echo "-I $source/lib"
		sources "$source/lib" lz4 lz4hc
		;;
	sqlite)
		echo "-DSQLITE_THREADSAFE=0 -DSQLITE_OMIT_LOAD_EXTENSION -DSQLITE_OMIT_WAL -DSQLITE_MAX_MMAP_SIZE=0"
		echo "-D_WASI_EMULATED_GETPID -include ../wasi/programs/wasi-unix.h -I $source"
		sources "$source" sqlite3
		echo "-lm"
		;;
	xz)
		for has in STDBOOL_H STDINT_H INTTYPES_H CHECK_CRC32 CHECK_CRC64 ENCODERS DECODERS ENCODER_LZMA1 \
			ENCODER_LZMA2 DECODER_LZMA1 DECODER_LZMA2 MF_HC3 MF_HC4 MF_BT2 MF_BT3 MF_BT4; do
			echo "-DHAVE_$has"
		done
		echo "-DTUKLIB_FAST_UNALIGNED_ACCESS -DTUKLIB_SYMBOL_PREFIX=lzma_ -I $source/src/common"
		for part in api common check lz lzma rangecoder delta simple; do echo "-I $source/src/liblzma/$part"; done
		sources "$source/src/liblzma/check" check crc32_fast crc32_table crc64_fast crc64_table
		sources "$source/src/liblzma/common" alone_decoder alone_encoder auto_decoder block_buffer_decoder \
			block_buffer_encoder block_decoder block_encoder block_header_decoder block_header_encoder block_util \
			common easy_buffer_encoder easy_encoder_memusage easy_preset filter_buffer_decoder \
			filter_buffer_encoder filter_common filter_decoder filter_encoder filter_flags_decoder \
			filter_flags_encoder index index_decoder index_encoder index_hash stream_buffer_decoder \
			stream_buffer_encoder stream_decoder stream_flags_common stream_flags_decoder stream_flags_encoder \
			string_conversion vli_decoder vli_encoder vli_size
		sources "$source/src/liblzma/lz" lz_decoder lz_encoder lz_encoder_mf
		sources "$source/src/liblzma/lzma" fastpos_table lzma2_decoder lzma2_encoder lzma_decoder lzma_encoder \
			lzma_encoder_optimum_fast lzma_encoder_optimum_normal lzma_encoder_presets
		sources "$source/src/liblzma/rangecoder" price_table
		;;
	zlib)
		echo "-I $source"
		sources "$source" adler32 compress crc32 deflate inffast inflate inftrees trees uncompr zutil
		;;
	esac
}
# compile TO OPTION ...: the program as one file, for the machine that the options name. Two builds are equal.
compile() {
	file=$1
	shift
	# shellcheck disable=SC2046 # a word list
	clang-14 -O2 -w -D_WASI_EMULATED_SIGNAL "-ffile-prefix-map=$work=." -I . -I shim "$@" "$name.c" $(library) \
		-o "$file"
}
build() {
	mkdir "$work/source" "$work/programs"
	[ -z "$archive" ] || tar -xf "$archive" -C "$work/source" --strip-components 1
	source=$work/source
	[ "$name" != sqlite ] || (cd "$source" && ./configure --disable-tcl --disable-readline && make sqlite3.c)
	to=$work/programs/$name
	compile "$to"
	set -- --target=wasm32-wasi -lwasi-emulated-getpid -lwasi-emulated-signal -s
	compile "$to.wasm" "$@"
	# This wasm2c has no vectors.
	if command -v wasm2c >/dev/null; then
		wasm2c -n program "$to.wasm" -o "$work/program.c"
		clang-14 -O2 -w -I "$work" wasm2c/*.c "$work/program.c" -lwasm-rt-impl -lm -o "$to-wasm2c"
	fi
	# The kernels use vectors. In libraries clang's guesses about them cost time.
	[ "$name" != kernels ] || compile "$to.wasm" "$@" -msimd128
	echo "$version" >"$work/programs/version"
}
archive='' version=''
if [ $# != 0 ]; then
	version=${2#*_}
	archive=$("$tree/scripts/source.sh" "$1" "$2.orig.tar.$3" "$4")
fi
# A shell ignores set -e in conditions.
set +e
(set -e; build) >"$work/log" 2>&1
status=$?
set -e
if [ $status != 0 ]; then
	cp "$work/log" "$cache/speed/log"
	fail "$name does not build, see $cache/speed/log"
fi
mv -T "$work/programs" "$folder"
echo "$folder"
