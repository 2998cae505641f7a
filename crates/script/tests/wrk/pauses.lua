-- a pause before each request
local number = 0

function delay()
   return number % 2
end

function request()
   number = number + 1
   return wrk.format("GET", "/paused/" .. number)
end
