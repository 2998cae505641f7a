-- a variable of the environment, and one that is not there
wrk.headers["X-Home"] = os.getenv("HOME")
wrk.headers["X-None"] = tostring(os.getenv("TIDEMARK_IS_NOT_SET"))
