-- threads have numbers, and count what they did; the sum is printed at the end
local threads = {}

function setup(thread)
   table.insert(threads, thread)
   thread:set("number", #threads)
   thread:set("names", { "of thread", #threads })
end

function init(args)
   requests, answers = 0, 0
end

function request()
   requests = requests + 1
   return wrk.format(nil, "/" .. number .. "/" .. names[2])
end

function response(status, headers, body)
   answers = answers + 1
end

function done(summary, latency, requests)
   for _, thread in ipairs(threads) do
      io.write("thread ", thread:get("number"), ": ", thread:get("requests") > 0 and "requests" or "none", ", ",
         thread:get("answers") > 0 and "answers" or "none", "\n")
   end
end
