/* SPDX-License-Identifier: GPL-2.0-only */
/* The instruction set is that of x86-64; lock prefixes are those of one CPU. */
#include "../../../x86/include/asm/atomic64_64.h"
