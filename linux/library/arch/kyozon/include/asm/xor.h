/* SPDX-License-Identifier: GPL-2.0-only */
#include <asm-generic/xor.h>

/* Not measured at each boot. */
#define XOR_SELECT_TEMPLATE(x)	(&xor_block_8regs)
