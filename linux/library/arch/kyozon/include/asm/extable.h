/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _ASM_KYOZON_EXTABLE_H
#define _ASM_KYOZON_EXTABLE_H

/* If the instruction at insn faults, execution continues at fixup. Both are relative to themselves. */
struct exception_table_entry {
	int insn, fixup;
};
#define ARCH_HAS_RELATIVE_EXTABLE

#define _ASM_EXTABLE(from, to)				\
	".pushsection __ex_table, \"a\"\n"		\
	".balign 4\n"					\
	".long (" #from ") - .\n"			\
	".long (" #to ") - .\n"				\
	".popsection\n"

#endif
