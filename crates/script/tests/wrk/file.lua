-- paths from a file beside the script
local folder = debug.getinfo(1, "S").source:match("^@(.*/)")
local paths = {}
for line in io.lines(folder .. "paths.txt") do
   if line ~= "" and not line:find("^#") then paths[#paths + 1] = line end
end
local file = assert(io.open(folder .. "paths.txt", "r"))
local size = #file:read("*a")
file:close()
local number = 0

function request()
   number = number % #paths + 1
   return wrk.format("GET", paths[number], { ["X-Size"] = size, ["Host"] = wrk.headers["Host"] })
end
