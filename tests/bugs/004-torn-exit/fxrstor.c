// fxrstor CPU: loads FPU state in an endless loop on the given CPU.
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>

static char state[512] __attribute__((aligned(16)));

int main(int count, char **arguments)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(count == 2 ? atoi(arguments[1]) : 0, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		return 1;
	__asm__ volatile("fxsave %0" : "=m"(state));
	for (;;)
		__asm__ volatile("fxrstor %0" : : "m"(state));
}
