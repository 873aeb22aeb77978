-- Text, tables, coroutines, errors and files, in the global folder.
local function primes(limit)
	return coroutine.wrap(function()
		for number = 2, limit do
			local prime = true
			for divisor = 2, math.floor(math.sqrt(number)) do
				if number % divisor == 0 then prime = false break end
			end
			if prime then coroutine.yield(number) end
		end
	end)
end
local list = {}
for prime in primes(200) do list[#list + 1] = prime end
print(#list, table.concat(list, " ", #list - 4))

local depth = 0
local function fall(level)
	if level == 0 then error({ code = 42 }) end
	depth = depth + 1
	fall(level - 1)
end
for _ = 1, 1000 do
	local ok, value = pcall(fall, 50)
	assert(not ok and value.code == 42)
end
print(depth, select(2, pcall(error, "plain")), pcall(string.rep))

local file = assert(io.open(folder .. "/words", "w"))
for word in ("the quick brown fox jumps over the lazy dog"):gmatch("%a+") do file:write(word, "\n") end
assert(file:close())
local words = {}
for line in io.lines(folder .. "/words") do words[#words + 1] = line:upper() end
table.sort(words)
print(table.concat(words, ","), (select(3, io.open(folder .. "/none"))))
assert(os.rename(folder .. "/words", folder .. "/renamed") and os.remove(folder .. "/renamed"))
print(string.format("%5.2f %q %x", math.pi, "a\nb", 255), #string.rep("x", 1 << 20), os.time() > 1700000000)
local rows = setmetatable({}, { __index = function(_, key) return key * key end })
for _ = 1, 200000 do rows[#rows + 1] = {} end
collectgarbage()
print(#rows, rows[-9], math.type(3 // 1), utf8.char(20849, 23384))
