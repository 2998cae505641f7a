-- three requests at once on each connection
local all

function init(args)
   local one = {}
   for index = 1, 3 do
      one[index] = wrk.format("GET", "/" .. index .. "?of=" .. (args[1] or "all"))
   end
   all = table.concat(one)
end

function request()
   return all
end
