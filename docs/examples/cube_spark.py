"""What the systems of all runs in a folder say that they did, for each entity and operation, by Spark:

    pip install pyspark        # and Java 17 or newer
    python3 docs/examples/cube_spark.py runs
"""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

folder = sys.argv[1] if len(sys.argv) > 1 else "runs"
spark = (
    SparkSession.builder.appName("cube")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.driver.host", "127.0.0.1")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")
operations = spark.read.parquet(f"{folder}/*/operations.parquet")
reached_us = f.when(f.col("status") < 400, f.col("duration_us").cast("double")).otherwise(float("inf"))
cube = (
    operations.withColumn("run", f.element_at(f.split(f.col("_metadata.file_path"), "/"), -2))
    .groupBy("entity", "operation")
    .agg(
        f.countDistinct("run").alias("runs"),
        f.count("*").alias("count"),
        f.sum((f.col("status") >= 400).cast("int")).alias("errors"),
        # what failed is slower than every bound
        (f.percentile_approx(reached_us, 0.95, 10_000) / 1000).alias("p95_ms"),
    )
    .orderBy("entity", "operation")
)
print(",".join(cube.columns))
for row in cube.collect():
    print(",".join(str(value) for value in row))
spark.stop()
