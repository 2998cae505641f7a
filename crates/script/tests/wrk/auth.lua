-- the first answer has a token, which all requests after it carry
local token

function request()
   return wrk.format("GET", token and "/" or "/login")
end

function response(status, headers, body)
   if not token and status == 200 then
      token = headers["X-Token"] or "none"
      wrk.headers["X-Token"] = token
   end
end
