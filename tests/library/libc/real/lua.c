/* Runs a program in Lua. It is compiled with Lua's source as C, and as C++, in which Lua's errors are exceptions. */
#include <stdio.h>
#include "lua.h"
#include "lauxlib.h"
#include "lualib.h"

int main(int argc, char **argv)
{
	lua_State *lua = luaL_newstate();
	if (argc < 3 || !lua) return 2;
	luaL_openlibs(lua);
	lua_pushstring(lua, argv[2]);
	lua_setglobal(lua, "folder");
	int failed = luaL_loadfile(lua, argv[1]) || lua_pcall(lua, 0, 0, 0);
	if (failed) fprintf(stderr, "%s\n", lua_tostring(lua, -1));
	lua_close(lua);
	return failed;
}
