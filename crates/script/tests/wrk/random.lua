-- random numbers from a fixed seed
math.randomseed(42)

function request()
   local id, price = math.random(1, 100000), math.random()
   return wrk.format("GET", string.format("/items/%06d?price=%.3f&dice=%d", id, price, math.random(6)))
end
