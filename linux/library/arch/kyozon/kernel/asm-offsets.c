// SPDX-License-Identifier: GPL-2.0-only
#include <linux/kbuild.h>
#include <linux/sched.h>

int main(void)
{
	return 0;
}
