/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
#include <asm/unistd_64.h>
