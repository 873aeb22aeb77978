/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _ASM_KYOZON_PAGE_H
#define _ASM_KYOZON_PAGE_H

#define PAGE_SHIFT	CONFIG_PAGE_SHIFT
#ifdef __ASSEMBLY__
#define PAGE_SIZE	(1 << PAGE_SHIFT)
#else
#define PAGE_SIZE	(1UL << PAGE_SHIFT)
#endif
#define PAGE_MASK	(~(PAGE_SIZE - 1))

#ifndef __ASSEMBLY__

#define clear_page(page)			memset((page), 0, PAGE_SIZE)
#define copy_page(to, from)			memcpy((to), (from), PAGE_SIZE)
#define clear_user_page(page, vaddr, pg)	clear_page(page)
#define copy_user_page(to, from, vaddr, pg)	copy_page(to, from)

typedef struct { unsigned long pte; } pte_t;
typedef struct { unsigned long pmd; } pmd_t;
typedef struct { unsigned long pgd; } pgd_t;
typedef struct { unsigned long pgprot; } pgprot_t;
typedef struct page *pgtable_t;

#define pte_val(x)	((x).pte)
#define pmd_val(x)	((x).pmd)
#define pgd_val(x)	((x).pgd)
#define pgprot_val(x)	((x).pgprot)
#define __pte(x)	((pte_t) { (x) })
#define __pmd(x)	((pmd_t) { (x) })
#define __pgd(x)	((pgd_t) { (x) })
#define __pgprot(x)	((pgprot_t) { (x) })

/*
 * A physical address is the host's address. Memory is one range that the host chose; the kernel's image is at its
 * start.
 */
extern unsigned long kyozon_memory_start, kyozon_memory_end;

#define PAGE_OFFSET		kyozon_memory_start
#define ARCH_PFN_OFFSET		(kyozon_memory_start >> PAGE_SHIFT)
#define __pa(x)			((unsigned long)(x))
#define __va(x)			((void *)(unsigned long)(x))
#define virt_to_pfn(v)		(__pa(v) >> PAGE_SHIFT)
#define pfn_to_virt(p)		__va((p) << PAGE_SHIFT)
#define virt_to_page(a)		pfn_to_page(virt_to_pfn(a))
#define page_to_virt(p)		pfn_to_virt(page_to_pfn(p))
#define page_to_phys(p)		((phys_addr_t)page_to_pfn(p) << PAGE_SHIFT)
#define phys_to_page(p)		pfn_to_page((p) >> PAGE_SHIFT)
#define virt_addr_valid(k)	((unsigned long)(k) >= kyozon_memory_start && (unsigned long)(k) < kyozon_memory_end)

#include <asm-generic/memory_model.h>

#endif /* __ASSEMBLY__ */

#include <asm-generic/getorder.h>

#endif
