/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _ASM_KYOZON_ASM_H
#define _ASM_KYOZON_ASM_H

/* Operands and flag outputs that headers of x86 expect. */
#define CC_SET(c)		"\n\t/* output condition code " #c "*/\n"
#define CC_OUT(c)		"=@cc" #c
#define __ASM_SIZE(inst, ...)	#inst "q" #__VA_ARGS__
#define _ASM_PTR		" .quad "
#define __ASM_REGPFX		%

#endif
