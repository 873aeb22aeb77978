/* poke FILE: maps a page of it and changes the first word. */
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>

int main(int argc, char **argv)
{
	int file = argc == 2 ? open(argv[1], O_RDWR) : -1;
	volatile uint64_t *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

	if (page == MAP_FAILED)
		return 1;
	*page = 0x6b6f70;
	return 0;
}
