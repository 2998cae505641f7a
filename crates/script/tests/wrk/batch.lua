-- requests of several kinds at once, built in `init`
local batches = {}

function init(args)
   for number = 1, 2 do
      local all = {}
      all[#all + 1] = wrk.format("GET", "/batch/" .. number)
      all[#all + 1] = wrk.format("POST", "/batch", { ["Content-Type"] = "text/plain" }, ("x"):rep(number * 10))
      all[#all + 1] = wrk.format("DELETE", "/batch/" .. number)
      batches[number] = table.concat(all)
   end
end

local turn = 0

function request()
   turn = turn % 2 + 1
   return batches[turn]
end
