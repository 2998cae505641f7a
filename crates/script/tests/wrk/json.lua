-- bodies of JSON, written by hand
local number = 0
wrk.headers["Content-Type"] = "application/json"

local function text(value)
   if type(value) == "table" then
      local parts = {}
      for _, item in ipairs(value) do parts[#parts + 1] = text(item) end
      return "[" .. table.concat(parts, ",") .. "]"
   end
   return type(value) == "string" and string.format("%q", value) or tostring(value)
end

function request()
   number = number + 1
   local body = string.format('{"n":%d,"all":%s,"name":"é €"}', number, text({ 1, "two", { true } }))
   return wrk.format("POST", "/json", nil, body)
end
