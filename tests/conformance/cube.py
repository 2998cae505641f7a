"""A run's operations as other people's engines read them: DuckDB's command line and Spark get what `tidemark cube` gets.

cube.py TIDEMARK HOUR: the program, and the example that writes a run.
"""

import csv
import os
import pathlib
import subprocess
import sys
import tempfile

RUNS = 1000
project = pathlib.Path(__file__).resolve().parents[2]
tidemark, hour = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:3])
beside = pathlib.Path(sys.executable).parent


def rows(command, **more):
    done = subprocess.run(command, check=True, capture_output=True, text=True, **more)
    return list(csv.DictReader(done.stdout.splitlines()))


def same(ours, theirs):
    if "" in (ours, theirs):
        # not reached
        return ours == theirs
    return abs(float(ours) - float(theirs)) < 1e-9


with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    (folder / "runs").mkdir()
    for name, operations in [("a", 100_000), ("b", 50_000)]:
        subprocess.run([hour, folder / "runs" / name, str(operations)], check=True)

    ours = {}
    for name in ["a", "b"]:
        asked = [tidemark, "cube", f"runs/{name}", "--by", "entity,operation", "--whole", "--format", "csv"]
        for row in rows(asked, cwd=folder):
            ours[name, row["entity"], row["operation"]] = row
    sql = (project / "docs/examples/cube.sql").read_text()
    theirs = rows([beside / "duckdb", "-csv"], cwd=folder, input=sql)
    assert len(theirs) == len(ours) == 12, (len(theirs), len(ours))
    for row in theirs:
        of = ours[row["run"], row["entity"], row["operation"]]
        assert (row["count"], row["errors"]) == (of["count"], of["errors"]), (row, of)
        assert same(of["median_ms"], row["median_ms"]) and same(of["p95_ms"], row["p95_ms"]), (row, of)
    print(f"DuckDB: {len(theirs)} cells of two runs are the same")

    subprocess.run([hour, folder / "one", "2000"], check=True)
    for number in range(RUNS):
        run = folder / "many" / f"run-{number:04}"
        run.mkdir(parents=True)
        os.link(folder / "one" / "operations.parquet", run / "operations.parquet")
    asked = [tidemark, "cube", "one", "--by", "entity,operation", "--whole", "--format", "csv"]
    one = {(row["entity"], row["operation"]): row for row in rows(asked, cwd=folder)}
    spark = dict(os.environ, PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1")
    theirs = rows([sys.executable, project / "docs/examples/cube_spark.py", folder / "many"], cwd=folder, env=spark)
    assert len(theirs) == len(one) == 6
    for row in theirs:
        of = one[row["entity"], row["operation"]]
        assert int(row["runs"]) == RUNS, row
        assert int(row["count"]) == RUNS * int(of["count"]), (row, of)
        assert int(row["errors"]) == RUNS * int(of["errors"]), (row, of)
    print(f"Spark: {RUNS} runs in a folder are {RUNS} times one of them")
