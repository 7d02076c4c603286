"""
The same work as bench/spark.ts with nothing but PySpark, in one Spark that bench/spark.ts uses too. The first line of
output says where its Connect server is; each line of input is a job, answered by a line.
"""

import json
import os
import sys
import time

from pyspark.sql import SparkSession

master, workers = sys.argv[1], int(sys.argv[2])
session = (
    SparkSession.builder.master(master)
    .config("spark.plugins", "org.apache.spark.sql.connect.SparkConnectPlugin")
    .config("spark.connect.grpc.binding.address", "127.0.0.1")
    .config("spark.connect.grpc.binding.port", "0")
    .config("spark.ui.enabled", "false")
    .config("spark.ui.showConsoleProgress", "false")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .getOrCreate()
)
context = session.sparkContext
service = getattr(getattr(session._jvm.org.apache.spark.sql.connect.service, "SparkConnectService$"), "MODULE$")
out = os.fdopen(os.dup(1), "w")


def say(message):
    print(json.dumps(message), file=out, flush=True)


def sleep(seconds):
    for one in seconds:
        time.sleep(one)
        yield time.time()


def nothing(rows):
    yield from rows


say({"port": service.server().getPort()})
for line in sys.stdin:
    job = json.loads(line)
    began = time.time()
    if "sleeps" in job:
        seconds = [ms / 1000 for ms in job["sleeps"]]
        finished = context.parallelize(seconds, workers).mapPartitions(sleep).collect()
        ended = time.time()
        say({"seconds": ended - began, "lags": [ended - one for one in finished]})
    else:
        count = context.parallelize(range(job["noops"]), workers).mapPartitions(nothing).count()
        say({"seconds": time.time() - began, "count": count})
