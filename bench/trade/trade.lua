-- The published load: every request puts the same trade.
wrk.method = "PUT"
wrk.body = '{"name":"ibm","amount":1}'
wrk.headers["Content-Type"] = "application/json"
