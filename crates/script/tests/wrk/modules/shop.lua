-- what `modules.lua` needs
local shop = {}
local name, number = "", 0

function shop.greet(who) name = who end

function shop.request()
   number = number + 1
   return wrk.format("POST", "/shop/" .. name, nil, "order=" .. number)
end

return shop
