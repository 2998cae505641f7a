-- The table `wrk` of scripts, as wrk 4 documents it. The host gives `lookup` and `connect`, and sets scheme, host, port,
-- path and headers from the URL and the flags.
local wrk = {
   scheme = "http",
   host = "localhost",
   port = nil,
   method = "GET",
   path = "/",
   headers = {},
   body = nil,
   thread = nil,
}

-- The pieces of the text that is made: one table for all.
local pieces = {}

-- The text of a request; what is left out is that of `wrk`.
function wrk.format(method, path, headers, body)
   headers = headers or wrk.headers
   body = body or wrk.body
   if not headers["Host"] then
      headers["Host"] = wrk.headers["Host"]
   end
   if body then
      headers["Content-Length"] = #body
   elseif headers["Content-Length"] then
      headers["Content-Length"] = nil
   end
   pieces[1] = method or wrk.method
   pieces[2] = " "
   pieces[3] = path or wrk.path
   pieces[4] = " HTTP/1.1\r\n"
   local count = 4
   for name, value in pairs(headers) do
      pieces[count + 1] = name
      pieces[count + 2] = ": "
      pieces[count + 3] = tostring(value)
      pieces[count + 4] = "\r\n"
      count = count + 4
   end
   pieces[count + 1] = "\r\n"
   pieces[count + 2] = body or ""
   return table.concat(pieces, "", 1, count + 2)
end

-- Called for each thread, in the state of `done`.
function wrk.setup(thread)
   if type(setup) == "function" then
      setup(thread)
   end
end

-- Called in each thread's state before the load.
function wrk.init(args)
   if not wrk.headers["Host"] then
      local host = wrk.host
      if host:find(":", 1, true) then
         host = "[" .. host .. "]"
      end
      wrk.headers["Host"] = wrk.port and (host .. ":" .. wrk.port) or host
   end
   if type(init) == "function" then
      init(args)
   end
   local same = wrk.format()
   wrk.request = function()
      return same
   end
end

-- What the host calls. Functions of the script are looked up each time, as a script may put others in their place.
local host = {}

function host.ask()
   local make = request
   if type(make) ~= "function" then
      make = wrk.request
   end
   return make()
end

function host.pause()
   return delay()
end

-- A field whatever the case of its name: HTTP/2 has small letters only.
local any_case = {}

function any_case.__index(headers, name)
   name = tostring(name):lower()
   for known, value in next, headers do
      if known:lower() == name then
         return value
      end
   end
end

-- Names and values of the last head, in turn: most heads are the same for a second.
local last, fields = nil, {}

-- Hands an answer to the script. `head` has a line `name:value` for each header.
function host.respond(status, head, body, is_small)
   if head ~= last then
      last, fields = head, {}
      for name, value in head:gmatch("([^:]*):([^\n]*)\n") do
         fields[#fields + 1] = name
         fields[#fields + 1] = value
      end
   end
   -- a table of its own for each answer, as the script may change it
   local headers = {}
   for index = 1, #fields, 2 do
      headers[fields[index]] = fields[index + 1]
   end
   if is_small then
      setmetatable(headers, any_case)
   end
   response(status, headers, body)
end

return wrk, host
