-- each request says what came before it
local seen = { count = 0, status = 0, bytes = 0, type = "none" }

function request()
   wrk.headers["X-Seen"] = table.concat({ seen.count, seen.status, seen.bytes, seen.type }, " ")
   return wrk.format(nil, "/after/" .. seen.count)
end

function response(status, headers, body)
   seen = { count = seen.count + 1, status = status, bytes = #body, type = type(headers["Content-Length"]) }
end
