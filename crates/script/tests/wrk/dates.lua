-- a fixed moment as text, and the length of a day
wrk.path = "/at/" .. os.date("!%Y-%m-%dT%H:%M:%SZ", 86400)
wrk.headers["X-Day"] = os.difftime(os.time({ year = 2026, month = 1, day = 2 }), os.time({ year = 2026, month = 1, day = 1 }))
wrk.headers["X-Clock"] = type(os.clock())
