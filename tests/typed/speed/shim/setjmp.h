/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* For Lua. WASI has no longjmp, so an error of a script ends the program. */
#include <stdlib.h>

#define LUAI_THROW(state, handler)		abort()
#define LUAI_TRY(state, handler, action)	{ action }
#define luai_jmpbuf				int
