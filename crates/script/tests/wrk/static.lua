-- nothing but values: one request, again and again
wrk.method = "PUT"
wrk.path = "/static?of=all"
wrk.body = '{"a": 1}'
wrk.headers = { ["Content-Type"] = "application/json", ["X-One"] = "1", ["X-Number"] = 2 }
