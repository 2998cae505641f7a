-- texts are taken apart and put together
local number = 0

local function encoded(text)
   return (text:gsub("[^%w]", function(c) return string.format("%%%02X", c:byte()) end))
end

function request()
   number = number + 1
   local text = ("a b&c=" .. number):upper()
   local year, month = ("2026-11"):match("(%d+)-(%d+)")
   local at = text:find("&", 1, true)
   local path = "/q?t=" .. encoded(text) .. "&y=" .. year .. "&m=" .. month .. "&at=" .. at .. "&r=" .. ("x"):rep(3)
   return wrk.format("GET", path .. "&s=" .. encoded(text:sub(2, 4):reverse()) .. "&n=" .. tonumber("0x1f"))
end
