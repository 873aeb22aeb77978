/* SPDX-License-Identifier: MIT */
/* A function of glibc (its manual, "Dynamic Linker Introspection"), which Debian's libgcc_eh.a asks for the unwinding
 * information of an address. A program is one object. */
#define _GNU_SOURCE
#include <link.h>
#include <stdint.h>

struct dl_find_object {
	unsigned long long flags;
	void *map_start, *map_end;
	struct link_map *link_map;
	void *eh_frame;
	unsigned long long reserved[7];
};

struct search {
	uintptr_t address;
	struct dl_find_object *result;
};

static int look(struct dl_phdr_info *info, size_t size, void *argument)
{
	struct search *search = argument;
	struct dl_find_object found = { 0 };
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + header->p_vaddr;
		if (header->p_type == PT_GNU_EH_FRAME)
			found.eh_frame = (void *)start;
		else if (header->p_type == PT_LOAD && search->address - start < header->p_memsz) {
			found.map_start = (void *)start;
			found.map_end = (void *)(start + header->p_memsz);
		}
	}
	if (!found.map_start || !found.eh_frame) return 0;
	*search->result = found;
	return 1;
}

int _dl_find_object(void *address, struct dl_find_object *result)
{
	struct search search = { (uintptr_t)address, result };
	return dl_iterate_phdr(look, &search) ? 0 : -1;
}
