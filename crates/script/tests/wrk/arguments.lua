-- words of the command line as options
local options = { path = "/", count = 0 }

function init(args)
   for index, word in ipairs(args) do
      options.count = options.count + 1
      if index == 1 then options.path = "/" .. word end
      wrk.headers["X-Word-" .. index] = word
   end
   wrk.headers["X-Count"] = options.count
end

function request()
   return wrk.format("GET", options.path)
end
