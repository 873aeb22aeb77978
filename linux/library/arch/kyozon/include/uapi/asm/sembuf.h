/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/* Numbers and structures are those of the host, so that its programs need no translation. */
#include "../../../../x86/include/uapi/asm/sembuf.h"
