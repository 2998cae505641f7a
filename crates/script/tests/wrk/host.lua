-- a host of its own, and headers that are removed again
wrk.headers["Host"] = "shop.example:81"
wrk.headers["X-Gone"] = "1"

function init(args)
   wrk.headers["X-Gone"] = nil
   wrk.headers["X-Host"] = wrk.headers["Host"]
end
