/* SPDX-License-Identifier: GPL-2.0-only */
#define RUNTIME_DISCARD_EXIT
#include <asm-generic/vmlinux.lds.h>
#include <asm/cache.h>
#include <asm/page.h>
#include <asm/thread_info.h>

OUTPUT_FORMAT("elf64-x86-64")
OUTPUT_ARCH(i386:x86-64)
ENTRY(kyozon_entry)

jiffies = jiffies_64;

SECTIONS
{
	. = SIZEOF_HEADERS;

	/* Position-independent: the loader reads these. */
	.dynsym : { *(.dynsym) }
	.dynstr : { *(.dynstr) }
	.hash : { *(.hash) }
	.gnu.hash : { *(.gnu.hash) }
	.rela.dyn : { *(.rela .rela*) }
	.relr.dyn : { *(.relr.dyn) }

	. = ALIGN(PAGE_SIZE);
	_text = .;
	.text : {
		_stext = .;
		TEXT_TEXT
		SCHED_TEXT
		LOCK_TEXT
		KPROBES_TEXT
		IRQENTRY_TEXT
		SOFTIRQENTRY_TEXT
		ENTRY_TEXT
		_etext = .;
	}

	. = ALIGN(PAGE_SIZE);
	__init_begin = .;
	INIT_TEXT_SECTION(PAGE_SIZE)
	.exit.text : { EXIT_TEXT }

	. = ALIGN(PAGE_SIZE);
	__initdata_begin = .;
	INIT_DATA_SECTION(16)
	.exit.data : { EXIT_DATA }
	PERCPU_SECTION(L1_CACHE_BYTES)
	. = ALIGN(PAGE_SIZE);
	__init_end = .;

	_sdata = .;
	RO_DATA(PAGE_SIZE)
	.dynamic : { *(.dynamic) }
	.got : { *(.got) *(.got.plt) *(.igot.plt) }
	.data.rel.ro : { *(.data.rel.ro*) }
	RW_DATA(L1_CACHE_BYTES, PAGE_SIZE, THREAD_SIZE)
	EXCEPTION_TABLE(16)
	_edata = .;

	BSS_SECTION(0, PAGE_SIZE, 0)
	. = ALIGN(PAGE_SIZE);
	_end = .;

	.plt : { *(.plt) *(.plt.*) *(.iplt) }
	ASSERT(SIZEOF(.plt) == 0, "calls through a procedure linkage table")

	ELF_DETAILS
	DISCARDS
}
