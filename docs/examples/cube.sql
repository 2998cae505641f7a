-- What the systems of all runs in runs/ say that they did, for each run, entity and operation:
--   duckdb -csv < docs/examples/cube.sql
SELECT
    parse_path(filename)[-2] AS run,
    entity,
    operation,
    count(*) AS count,
    count(*) FILTER (status >= 400) AS errors,
    -- what failed is slower than every bound: beyond the good ones there is nothing, NULL. Lists count from 1
    list_sort(list(duration_us) FILTER (status < 400))[count(*) // 2 + 1] / 1000 AS median_ms,
    list_sort(list(duration_us) FILTER (status < 400))[95 * count(*) // 100 + 1] / 1000 AS p95_ms
FROM read_parquet('runs/*/operations.parquet', filename = true)
GROUP BY ALL
ORDER BY ALL;
