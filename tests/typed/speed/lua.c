// SPDX-License-Identifier: MIT OR Apache-2.0
/* lua WORK: runs a script that calls, sorts, makes strings and tables, and computes. */
#include "speed.h"
#include "lua.h"
#include "lauxlib.h"
#include "lualib.h"

static const char script[] =
	"local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end\n"
	"local sum = fib(27)\n"
	/* numbers without order, sorted by a function */
	"local seed = 42\n"
	"local function random(limit) seed = (seed * 1103515245 + 12345) & 0x7fffffff return seed % limit end\n"
	"local numbers = {}\n"
	"for i = 1, 30000 do numbers[i] = random(1000000) end\n"
	"table.sort(numbers, function(a, b) return a > b end)\n"
	"for i = 1, #numbers, 100 do sum = sum + numbers[i] * i end\n"
	/* words, counted */
	"local words, count = {}, {}\n"
	"for i = 1, 20000 do words[i] = 'w' .. random(3000) end\n"
	"for word in table.concat(words, ' '):gmatch('%w+') do count[word] = (count[word] or 0) + 1 end\n"
	"for i = 0, 2999 do sum = sum + (count['w' .. i] or 0) * i end\n"
	"sum = sum + #string.rep('abc', 10000):gsub('b', function(b) return b:upper() end)\n"
	/* objects with methods */
	"local Point = {}\n"
	"Point.__index = Point\n"
	"function Point.new(x, y) return setmetatable({ x = x, y = y }, Point) end\n"
	"function Point:add(other) return Point.new(self.x + other.x, self.y + other.y) end\n"
	"local at, step = Point.new(0, 0), Point.new(1, 2)\n"
	"for i = 1, 200000 do at = at:add(step) end\n"
	"sum = sum + at.x + at.y\n"
	/* primes; numbers with a point */
	"local sieve = {}\n"
	"for i = 2, 100000 do sieve[i] = true end\n"
	"for i = 2, 316 do if sieve[i] then for j = i * i, 100000, i do sieve[j] = false end end end\n"
	"for i = 2, 100000 do if sieve[i] then sum = sum + i end end\n"
	"local area = 0.0\n"
	"for i = 1, 300000 do local x = i / 300000; area = area + 4 / (1 + x * x) end\n"
	"return string.format('%d %.12f', sum, area / 300000)\n";

static void must(lua_State *lua, int status)
{
	if (!status)
		return;
	fprintf(stderr, "lua: %s\n", lua_tostring(lua, -1));
	exit(1);
}

int main(int argc, char **argv)
{
	lua_State *lua = luaL_newstate();

	luaL_requiref(lua, "_G", luaopen_base, 1);
	luaL_requiref(lua, "table", luaopen_table, 1);
	luaL_requiref(lua, "string", luaopen_string, 1);
	lua_settop(lua, 0);
	start(argc, argv);
	must(lua, luaL_loadstring(lua, script));
	must(lua, lua_pcall(lua, 0, 1, 0));
	finish();
	printf("sum %s\n", lua_tostring(lua, -1));
	return 0;
}
