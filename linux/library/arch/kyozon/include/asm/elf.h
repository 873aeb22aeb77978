/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _ASM_KYOZON_ELF_H
#define _ASM_KYOZON_ELF_H

/* For core dumps and /proc; no ELF file is ever executed. */
#define ELF_CLASS		ELFCLASS64
#define ELF_DATA		ELFDATA2LSB
#define ELF_ARCH		EM_X86_64
#define ELF_EXEC_PAGESIZE	PAGE_SIZE
#define ELF_ET_DYN_BASE		0
#define ELF_HWCAP		0
#define ELF_PLATFORM		NULL
#define elf_check_arch(x)	((x)->e_machine == EM_X86_64)

typedef unsigned long elf_greg_t;
typedef elf_greg_t elf_gregset_t[27];
typedef struct { unsigned long words[64]; } elf_fpregset_t;

#endif
