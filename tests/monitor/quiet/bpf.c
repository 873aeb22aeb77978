// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Loads a BPF program that returns 0, and attaches it, without a library.
 *
 *   bpf tracepoint NAME MS	to a raw tracepoint, for MS milliseconds
 *   bpf entry FUNCTION MS	to a function's first instruction, through a trampoline
 *   bpf exit FUNCTION MS	to a function's return, through a trampoline
 *   bpf both FUNCTION MS	to its entry, then another to its return, which rewrites the trampoline
 *   bpf writer NAME MS		to a raw tracepoint; it writes a word to address 0 of the process
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int bpf(int command, union bpf_attr *attributes)
{
	return syscall(SYS_bpf, command, attributes, sizeof *attributes);
}

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

/* Bytes after a type's header (Documentation/bpf/btf.rst, "Type Encoding"). */
static size_t bytes_after_header(const struct btf_type *type)
{
	size_t count = BTF_INFO_VLEN(type->info);

	switch (BTF_INFO_KIND(type->info)) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return 4;
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return count * sizeof(struct btf_member);
	case BTF_KIND_ENUM:
		return count * sizeof(struct btf_enum);
	case BTF_KIND_FUNC_PROTO:
		return count * sizeof(struct btf_param);
	case BTF_KIND_DATASEC:
		return count * sizeof(struct btf_var_secinfo);
	case BTF_KIND_ENUM64:
		return count * 12;
	default:
		return 0;
	}
}

/* The ID of a function's type in the running kernel's BTF. */
static unsigned function_type(const char *name)
{
	static char file[16 << 20];
	const struct btf_header *head = (void *)file;
	int from = open("/sys/kernel/btf/vmlinux", O_RDONLY);
	size_t size = 0;
	ssize_t got;

	if (from < 0)
		fail("/sys/kernel/btf/vmlinux");
	while ((got = read(from, file + size, sizeof file - size)) > 0)
		size += got;
	close(from);
	const char *types = file + head->hdr_len + head->type_off, *names = file + head->hdr_len + head->str_off;
	const char *end = types + head->type_len;

	for (unsigned number = 1; types < end; number++) {
		const struct btf_type *type = (void *)types;

		if (BTF_INFO_KIND(type->info) == BTF_KIND_FUNC && !strcmp(names + type->name_off, name))
			return number;
		types += sizeof *type + bytes_after_header(type);
	}
	fprintf(stderr, "%s: no such function in the kernel's BTF\n", name);
	exit(1);
}

/* Loads "return 0", after a write to the memory of the process if it "writes". */
static int load(int type, int attach, unsigned to, bool writes)
{
	static char log[4096];
	const struct bpf_insn program[] = {
		{ .code = BPF_ST | BPF_MEM | BPF_DW, .dst_reg = BPF_REG_10, .off = -8 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_1 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_2, .src_reg = BPF_REG_10 },
		{ .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = BPF_REG_2, .imm = -8 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3, .imm = 8 },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_probe_write_user },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	const int skipped = writes ? 0 : 6;
	union bpf_attr with = {
		.prog_type = type,
		.insns = (uintptr_t)(program + skipped),
		.insn_cnt = sizeof program / sizeof *program - skipped,
		.license = (uintptr_t) "GPL",
		.log_buf = (uintptr_t)log,
		.log_size = sizeof log,
		.log_level = 1,
		.expected_attach_type = attach,
		.attach_btf_id = to,
	};
	int file = bpf(BPF_PROG_LOAD, &with);

	if (file < 0) {
		fputs(log, stderr);
		fail("BPF_PROG_LOAD");
	}
	return file;
}

static int attach(int program, const char *tracepoint)
{
	union bpf_attr with = { .raw_tracepoint = { .name = (uintptr_t)tracepoint, .prog_fd = program } };
	int file = bpf(BPF_RAW_TRACEPOINT_OPEN, &with);

	if (file < 0)
		fail("BPF_RAW_TRACEPOINT_OPEN");
	return file;
}

int main(int argc, char **argv)
{
	int files[2] = { -1, -1 };

	if (argc != 4)
		return 2;
	unsigned time = 1000 * atoi(argv[3]);

	bool writes = !strcmp(argv[1], "writer");

	if (writes || !strcmp(argv[1], "tracepoint")) {
		files[0] = attach(load(BPF_PROG_TYPE_RAW_TRACEPOINT, 0, 0, writes), argv[2]);
	} else {
		unsigned to = function_type(argv[2]);

		if (strcmp(argv[1], "exit"))
			files[0] = attach(load(BPF_PROG_TYPE_TRACING, BPF_TRACE_FENTRY, to, false), NULL);
		usleep(time / 2);
		if (strcmp(argv[1], "entry"))
			files[1] = attach(load(BPF_PROG_TYPE_TRACING, BPF_TRACE_FEXIT, to, false), NULL);
	}
	usleep(time);
	close(files[0]);
	usleep(time / 2);
	close(files[1]);
	return 0;
}
