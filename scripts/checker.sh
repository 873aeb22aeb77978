#!/bin/sh
# checker.sh FILE: compiles the checker of typed code to assembly that the kernel's build takes, and writes it to FILE.
#
# The module is built for kernels whose configuration this script does not know. So returns, indirect branches and the
# starts of functions become the kernel's own macros: each kernel's headers say what its mitigations need there
# (thunks, endbr64, padding), and its objtool verifies the result.
set -eu
file=$1
cd "$(dirname "$0")/.."
built=$CARGO_TARGET_DIR/checker
# Jump tables would be indirect branches. The mangling has names of letters, digits and _ only, which the kernel's
# macros take.
flags="-Crelocation-model=static -Ccode-model=kernel -Cforce-unwind-tables=no -Cdebuginfo=0"
# shellcheck disable=SC2086 # KYOZON_BUILD_STD is a list of words or empty
RUSTFLAGS="$flags -Csymbol-mangling-version=v0 -Cllvm-args=-min-jump-table-entries=4294967295" \
	"${CARGO:-cargo}" rustc --locked --quiet --release --target x86_64-unknown-none ${KYOZON_BUILD_STD:-} \
	--target-dir "$built" -p kyozon-typed-kernel --lib --crate-type staticlib -- --emit asm
assembly=$(ls -t "$built"/x86_64-unknown-none/release/deps/kyozon_typed_kernel-*.s | head -n 1)

awk '
BEGIN {
	print "/* SPDX-License-Identifier: GPL-2.0-only */"
	print "/* Written by scripts/checker.sh from crates/typed/kernel. */"
	print "#include <linux/linkage.h>"
	print "#include <asm/nospec-branch.h>"
}
function fail(why) {
	print "checker.sh: " why ": " $0 | "cat >&2"
	failed = 1
	exit 1
}
# Where an indirect branch leads: a register, or memory by way of r11, which no call or tail call leaves in use.
function target(operand) {
	sub(/^\*/, "", operand)
	if (operand ~ /^%r[0-9a-z]+$/)
		return substr(operand, 2)
	if (operand !~ /\(.*\)$/ || operand ~ /GOTPCREL/)
		fail("unknown operand of an indirect branch")
	print "\tmovq\t" operand ", %r11"
	return "r11"
}
/^[ \t]*#/ { next }
$1 == ".section" {
	debug = $2 ~ /^\.debug_/
	if (debug)
		next
	if ($2 ~ /^\.text\./)
		print "\t.text"
	else if ($2 ~ /^\.rodata\.[^cs]/ || $2 ~ /^\.rodata\.\./)
		print "\t.section\t.rodata,\"a\",@progbits"
	else if ($2 ~ /^\.rodata\.(cst|str)/ || $2 ~ /^"?\.note\.GNU-stack/)
		print
	else
		fail("unknown section")
	next
}
$1 == ".text" { debug = 0 }
debug || $1 ~ /^\.(loc|file|ident|cfi_[a-z_]*)$/ { next }
# A function begins with its alignment, type and label; the macro has all three.
$1 == ".globl" { global[$2] = 1; next }
$1 == ".p2align" { align = $0; next }
$1 == ".type" && $2 ~ /,@function$/ {
	sub(/,@function$/, "", $2)
	function_name = $2
	align = ""
	next
}
align != "" { print align; align = "" }
function_name != "" && $1 == function_name ":" {
	print (function_name in global ? "SYM_FUNC_START(" : "SYM_FUNC_START_LOCAL(") function_name ")"
	is_function[function_name] = 1
	function_name = ""
	next
}
$1 == ".size" && (substr($2, 1, length($2) - 1) in is_function) {
	print "SYM_FUNC_END(" substr($2, 1, length($2) - 1) ")"
	next
}
$1 == "retq" { print "\tRET"; next }
# core is compiled to reach these by the table of a dynamic linker.
($1 == "callq" || $1 == "jmpq") && $2 ~ /^\*[a-z]+@GOTPCREL\(%rip\)$/ {
	sub(/^\*/, "", $2)
	sub(/@GOTPCREL.*/, "", $2)
	print "\t" ($1 == "callq" ? "call" : "jmp") "\t" $2
	next
}
$1 == "callq" && $2 ~ /^\*/ { print "\tCALL_NOSPEC " target($2); next }
$1 == "jmpq" && $2 ~ /^\*/ { print "\tJMP_NOSPEC " target($2); next }
# An indirect call may lead only to a function that the kernel expects it for, as one of this file.
$1 == "movq" && $2 ~ /^[a-z]+@GOTPCREL\(%rip\),$/ {
	sub(/@GOTPCREL.*/, "", $2)
	jump[$2] = 1
	print "\tleaq\tchecker_" $2 "(%rip), " $3
	next
}
/GOTPCREL/ { fail("unknown use of a global offset table") }
$1 ~ /^\.data|^\.bss|^\.comm/ { fail("the checker has variables") }
{ print }
END {
	print "\t.text"
	for (name in jump)
		print "SYM_FUNC_START_LOCAL(checker_" name ")\n\tjmp\t" name "\nSYM_FUNC_END(checker_" name ")"
	exit failed
}
' "$assembly" >"$file.new"
cmp -s "$file.new" "$file" && rm "$file.new" || mv "$file.new" "$file"
