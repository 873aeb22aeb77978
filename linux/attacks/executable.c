// SPDX-License-Identifier: GPL-2.0-only
/*
 * Code in executable memory that no module owns, as loaders of
 * position-independent code leave it. The argument says where the memory is
 * from: "vmalloc" (the default), "page" (the direct map), or "module" (the
 * allocator of modules). And a writable mapping of the kernel's own code.
 */
#include <linux/gfp.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/string.h>
#include <linux/version.h>
#include <linux/vmalloc.h>

#include "attacks.h"

/* endbr64; xor %eax,%eax; ret; int3 */
static const u8 code[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0x31, 0xc0, 0xc3, 0xcc };

static void *from_vmalloc(void)
{
	return vmalloc(PAGE_SIZE);
}

static void to_vmalloc(void *memory)
{
	vfree(memory);
}

static void *from_page(void)
{
	return (void *)__get_free_page(GFP_KERNEL);
}

static void to_page(void *memory)
{
	free_page((unsigned long)memory);
}

/* The allocator of modules is not exported. */
static void *from_modules(void)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 10, 0)
	void *(*allocate)(unsigned long bytes) = (void *)symbol("module_alloc");

	return allocate ? allocate(PAGE_SIZE) : NULL;
#else
	/* EXECMEM_MODULE_TEXT */
	void *(*allocate)(int type, size_t bytes) = (void *)symbol("execmem_alloc");

	return allocate ? allocate(0, PAGE_SIZE) : NULL;
#endif
}

static void to_modules(void *memory)
{
	/* Both allocators of modules end in vfree(). */
	vfree(memory);
}

static const struct source {
	const char *name;
	void *(*allocate)(void);
	void (*free)(void *memory);
} sources[] = {
	{ "vmalloc", from_vmalloc, to_vmalloc },
	{ "page", from_page, to_page },
	{ "module", from_modules, to_modules },
};

struct copy {
	const struct source *source;
	u8 *memory;
	bool writable;
};

/* Changes one page: set_memory_x and the like are not exported. */
static int set_page(const char *how, void *memory)
{
	int (*set)(unsigned long address, int pages) = (void *)symbol(how);

	return set ? set((unsigned long)memory, 1) : -ENOENT;
}

static void copy_free(struct copy *copy)
{
	set_page("set_memory_nx", copy->memory);
	if (!copy->writable)
		set_page("set_memory_rw", copy->memory);
	copy->source->free(copy->memory);
	copy->memory = NULL;
}

static int copy_begin(struct attack *attack, struct copy *copy, const char *from)
{
	int error = -EINVAL;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(sources); i++)
		if (!strcmp(*from ? from : "vmalloc", sources[i].name))
			break;
	if (i == ARRAY_SIZE(sources))
		return error;
	copy->source = &sources[i];
	copy->memory = copy->source->allocate();
	if (!copy->memory)
		return -ENOMEM;
	memset(copy->memory, 0xcc, PAGE_SIZE);
	memcpy(copy->memory, code, sizeof(code));
	if (!copy->writable)
		error = set_page("set_memory_ro", copy->memory);
	if (copy->writable || !error)
		error = set_page("set_memory_x", copy->memory);
	/* The code runs. */
	if (!error)
		error = ((int (*)(void))copy->memory)();
	if (error) {
		copy_free(copy);
		return error;
	}
	snprintf(attack->about, sizeof(attack->about), "%s, at %px", copy->source->name,
		 copy->memory);
	attack_mark(attack, NULL);
	return 0;
}

static bool copy_present(struct copy *copy)
{
	return !memcmp(copy->memory, code, sizeof(code));
}

/* exec-memory: read-only code. */
static struct copy hidden;

static int hidden_begin(struct attack *attack, char *argument)
{
	return copy_begin(attack, &hidden, argument);
}

static bool hidden_present(struct attack *attack)
{
	return copy_present(&hidden);
}

static void hidden_undo(struct attack *attack)
{
	copy_free(&hidden);
}

struct attack exec_memory = {
	.name = "exec-memory",
	.begin = hidden_begin,
	.undo = hidden_undo,
	.present = hidden_present,
};

/* writable-exec-memory: code that can be changed. */
static struct copy writable = { .writable = true };

static int writable_begin(struct attack *attack, char *argument)
{
	return copy_begin(attack, &writable, argument);
}

static bool writable_present(struct attack *attack)
{
	return copy_present(&writable);
}

static void writable_undo(struct attack *attack)
{
	copy_free(&writable);
}

struct attack writable_exec_memory = {
	.name = "writable-exec-memory",
	.begin = writable_begin,
	.undo = writable_undo,
	.present = writable_present,
};

/* alias-text [SYMBOL]: maps the page of a function or table for writing. */
static u8 *alias;
static u8 *aliased;

static int alias_begin(struct attack *attack, char *argument)
{
	const char *name = *argument ? argument : "__x64_sys_getuid";
	unsigned long address = symbol(name);
	struct page *page;

	if (!address)
		return -ENOENT;
	page = pfn_to_page(__pa_symbol(address) >> PAGE_SHIFT);
	aliased = (u8 *)address;
	alias = vmap(&page, 1, VM_MAP, PAGE_KERNEL);
	if (!alias)
		return -ENOMEM;
	/* Writes are possible: the byte stays what it is. */
	WRITE_ONCE(alias[offset_in_page(address)], *aliased);
	snprintf(attack->about, sizeof(attack->about), "%s, at %px", name, alias);
	attack_mark(attack, NULL);
	return 0;
}

static bool alias_present(struct attack *attack)
{
	return alias[offset_in_page(aliased)] == *aliased;
}

static void alias_undo(struct attack *attack)
{
	vunmap(alias);
	alias = NULL;
}

struct attack alias_text = {
	.name = "alias-text",
	.begin = alias_begin,
	.undo = alias_undo,
	.present = alias_present,
};
