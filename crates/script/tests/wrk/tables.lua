-- a thread is given lists, numbers, texts and truth values
local count = 0

function setup(thread)
   count = count + 1
   thread:set("list", { 1, 2, 3 })
   thread:set("named", { first = "one" })
   thread:set("number", count)
   thread:set("flag", false)
end

function request()
   return wrk.format("GET", string.format("/%s/%d/%d/%s", named.first, number, #list, tostring(flag)))
end
