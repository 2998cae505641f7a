-- a whole URL in place of the path, as some scripts have it
request = function()
   return wrk.format("GET", "http://" .. wrk.host .. ":" .. wrk.port .. "/absolute")
end
