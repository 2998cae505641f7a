-- threads go to the addresses of a name in turn
local addresses = {}

function setup(thread)
   if #addresses == 0 then
      for _, address in ipairs(wrk.lookup(wrk.host, wrk.port or "http")) do
         if wrk.connect(address) then
            table.insert(addresses, address)
         end
      end
   end
   thread.addr = addresses[1]
end

function done()
   print("address", tostring(addresses[1]))
end
