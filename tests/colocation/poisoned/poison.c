/* Makes Linux remove one page of memory, as after an uncorrected error. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

int main(void)
{
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return 1;
	memset(page, 1, 4096);
	if (madvise(page, 4096, MADV_HWPOISON)) {
		perror("poison");
		return 1;
	}
	return 0;
}
