-- what a run came to
function done(summary, latency, requests)
   print("errors", summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout)
   print("statuses", summary.errors.status)
   print("requests", summary.requests > 0, summary.duration > 0, summary.bytes > 0)
   print("latency", latency.min <= latency:percentile(50), latency:percentile(50) <= latency:percentile(99.9),
      latency:percentile(100) <= latency.max, latency.mean > 0, latency.stdev >= 0)
   local value, count = latency(1)
   print("first", value >= latency.min, count > 0, #latency > 0)
   print("rates", requests.max > 0)
end
