-- all that wrk.format can be given
local number = 0

function request()
   number = number + 1
   local way = number % 6
   if way == 0 then return wrk.format() end
   if way == 1 then return wrk.format("DELETE") end
   if way == 2 then return wrk.format(nil, "/path/" .. number) end
   if way == 3 then return wrk.format("POST", nil, nil, "body " .. number) end
   if way == 4 then return wrk.format("PATCH", "/own", { ["X-Own"] = number }) end
   return wrk.format("GET", "/none", {}, "")
end
