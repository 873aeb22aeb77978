/* SPDX-License-Identifier: GPL-2.0-only */
#include "../../../x86/include/asm/cmpxchg.h"
/* Needs a feature bit, and one CPU gains nothing from it. */
#undef system_has_cmpxchg128
