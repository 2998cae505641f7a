-- a module beside the script
local folder = debug.getinfo(1, "S").source:match("^@(.*/)")
package.path = folder .. "?.lua;" .. package.path
local shop = require("modules.shop")

function init(args)
   shop.greet(args[1] or "nobody")
end

request = shop.request
