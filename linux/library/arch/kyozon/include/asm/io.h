/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _ASM_KYOZON_IO_H
#define _ASM_KYOZON_IO_H

#include <linux/types.h>

/* A device's registers are at addresses that only the host knows: each access is a call to the host. */
u64 kyozon_mmio_read(const volatile void __iomem *address, u32 bytes);
void kyozon_mmio_write(volatile void __iomem *address, u32 bytes, u64 value);

#define KYOZON_MMIO(suffix, type)							\
static inline type __raw_read##suffix(const volatile void __iomem *address)		\
{											\
	return kyozon_mmio_read(address, sizeof(type));					\
}											\
static inline void __raw_write##suffix(type value, volatile void __iomem *address)	\
{											\
	kyozon_mmio_write(address, sizeof(type), value);				\
}
KYOZON_MMIO(b, u8)
KYOZON_MMIO(w, u16)
KYOZON_MMIO(l, u32)
KYOZON_MMIO(q, u64)
#undef KYOZON_MMIO
#define __raw_readb __raw_readb
#define __raw_readw __raw_readw
#define __raw_readl __raw_readl
#define __raw_readq __raw_readq
#define __raw_writeb __raw_writeb
#define __raw_writew __raw_writew
#define __raw_writel __raw_writel
#define __raw_writeq __raw_writeq

static inline void __iomem *ioremap(phys_addr_t offset, size_t size)
{
	return (void __iomem *)offset;
}
#define ioremap ioremap

static inline void iounmap(volatile void __iomem *address)
{
}
#define iounmap iounmap

#include <asm-generic/io.h>

#endif
