/* SPDX-License-Identifier: MIT */
/* The host's functions. The start-up code in crt/rcrt1.c fills them in; nothing changes them afterwards. */
#include "syscall.h"

struct kyozon_seam __kyozon_seam;
