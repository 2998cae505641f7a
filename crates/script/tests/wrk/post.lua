-- every request is the same POST
wrk.method = "POST"
wrk.body = "amount=10&from=A&to=B"
wrk.headers["Content-Type"] = "application/x-www-form-urlencoded"
