-- a user's way as a coroutine
local way = coroutine.wrap(function()
   while true do
      coroutine.yield(wrk.format("POST", "/login", nil, "user=ann"))
      for page = 1, 3 do coroutine.yield(wrk.format("GET", "/page/" .. page)) end
      coroutine.yield(wrk.format("POST", "/logout"))
   end
end)

function request()
   return way()
end
