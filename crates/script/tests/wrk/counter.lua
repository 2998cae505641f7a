-- each request has a path and a header of its own
local number = 0

function request()
   number = number + 1
   wrk.headers["X-Number"] = number
   return wrk.format("GET", "/" .. number)
end
