/* SPDX-License-Identifier: MIT */
/* Replaces musl's assembly: after the unmapping there is no stack on which a call could return. */
#include "pthread_impl.h"

void __unmapself(void *base, size_t size)
{
	__kyozon_seam.unmap_exit(base, size);
}
