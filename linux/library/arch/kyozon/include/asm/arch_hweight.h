/* SPDX-License-Identifier: GPL-2.0-only */
#include <asm-generic/bitops/arch_hweight.h>
