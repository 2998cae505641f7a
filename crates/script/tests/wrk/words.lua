-- what `init` and the table `wrk` have to say of the command line
function init(args)
   wrk.headers["X-Words"] = #args .. ":" .. table.concat(args, ",") .. ":" .. args[0]:match("^%a+://")
   wrk.headers["X-Place"] = table.concat({ wrk.scheme, wrk.host, wrk.path, wrk.method, type(wrk.port) }, " ")
   wrk.headers["X-Thread"] = type(wrk.thread) .. " " .. tostring(wrk.thread.addr ~= nil)
   wrk.headers["X-Libraries"] = table.concat({ type(jit), type(bit), type(require("ffi")), type(require("wrk").format) }, " ")
end
