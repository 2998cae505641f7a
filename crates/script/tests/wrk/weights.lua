-- one of several kinds of requests, by weight, from a fixed seed
math.randomseed(7)
local kinds = {
   { weight = 70, make = function(id) return wrk.format("GET", "/read/" .. id) end },
   { weight = 20, make = function(id) return wrk.format("POST", "/write", nil, "id=" .. id) end },
   { weight = 10, make = function(id) return wrk.format("DELETE", "/drop/" .. id) end },
}

function request()
   local left = math.random(100)
   for _, kind in ipairs(kinds) do
      left = left - kind.weight
      if left <= 0 then return kind.make(math.random(1000)) end
   end
end
