-- wrk: logs in once a thread, then queries flights over a pair of airports that has both legs.
local form = "application/x-www-form-urlencoded"
local day = os.date("!%Y-%m-%d")
local query = wrk.format
local cookie

function request()
  if not cookie then
    return query("POST", "/rest/api/login", { ["Content-Type"] = form }, "login=uid0%40email.com&password=password")
  end
  return query("POST", "/rest/api/flights/queryflights", { ["Content-Type"] = form, ["Cookie"] = cookie },
    "fromAirport=CDG&toAirport=SVO&fromDate=" .. day .. "&returnDate=" .. day .. "&oneWay=false")
end

function response(status, headers)
  local set = headers["Set-Cookie"] or headers["set-cookie"]
  if set then cookie = set:match("^[^;]+") end
end
