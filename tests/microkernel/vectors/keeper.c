// SPDX-License-Identifier: MIT OR Apache-2.0
/* keeper SECONDS: holds values in the vector registers with their upper halves, in the x87 unit and in MXCSR, and ends
 * with 2 if one of them changes. */
#include <cpuid.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define REGISTERS 16
#define WIDTH 32
#define ALL(use) use(0) use(1) use(2) use(3) use(4) use(5) use(6) use(7) use(8) use(9) use(10) use(11) use(12) use(13) \
	use(14) use(15)
#define LOAD(n) "vmovdqu " #n "*32(%0), %%ymm" #n "\n"
#define STORE(n) "vmovdqu %%ymm" #n ", " #n "*32(%1)\n"

__attribute__((target("avx"))) static void hold(const void *from, void *to)
{
	asm volatile(ALL(LOAD)
		     "mov $1000000, %%ecx\n"
		     "1: dec %%ecx\n"
		     "jnz 1b\n"
		     ALL(STORE)
		     "vzeroupper"
		     : : "r"(from), "r"(to) : "rcx", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6",
		     "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
}

int main(int argc, char **argv)
{
	unsigned char before[REGISTERS * WIDTH], after[sizeof before];
	unsigned short control = 0x27f, control_after;
	unsigned mxcsr = 0x5f80, mxcsr_after, rounds = 0, a, b, c, d;
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 1);

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_AVX) || !(c & bit_OSXSAVE)) {
		fputs("this CPU has no AVX\n", stderr);
		return 1;
	}
	asm volatile("fldcw %0; ldmxcsr %1" : : "m"(control), "m"(mxcsr));
	while (time(NULL) < end) {
		rounds++;
		for (unsigned i = 0; i < sizeof before; i++)
			before[i] = (rounds + i) * 37;
		hold(before, after);
		asm volatile("fnstcw %0; stmxcsr %1" : "=m"(control_after), "=m"(mxcsr_after));
		if (memcmp(before, after, sizeof before) || control != control_after || mxcsr != mxcsr_after) {
			fprintf(stderr, "round %u: control word %#x, MXCSR %#x\n", rounds, control_after, mxcsr_after);
			return 2;
		}
	}
	printf("kept in %s rounds\n", rounds > 10 ? "many" : "few");
	return 0;
}
