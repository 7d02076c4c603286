"""
A Spark of one's own, with a Connect server in it, for as long as standard input is open. The first line of standard input
has what to start, as JSON; the first line of standard output, where it is. The token is in the environment.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import threading

PLUGIN = "org.apache.spark.sql.connect.SparkConnectPlugin"


def main() -> None:
    asked = json.loads(sys.stdin.readline())
    # For what Python leaves behind while it starts Spark, and for tables: which there are is forgotten when Spark ends.
    folder = tempfile.tempdir = tempfile.mkdtemp(prefix="manyworlds-spark-")
    threading.Thread(target=leave_with_the_driver, args=[folder], daemon=True).start()
    try:
        serve(asked, os.path.join(folder, "warehouse"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def serve(asked: dict, warehouse: str) -> None:
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

    conf = SparkConf().setMaster(asked["master"]).setAppName(asked["name"])
    for key, value in asked["conf"].items():
        conf.set(key, value)
    conf.setIfMissing("spark.sql.warehouse.dir", warehouse)
    plugins = [PLUGIN, *filter(None, conf.get("spark.plugins", "").split(","))]
    conf.set("spark.plugins", ",".join(dict.fromkeys(plugins)))
    session = SparkSession.builder.config(conf=conf).getOrCreate()
    jvm = session._jvm
    # A Scala object: there is one of it, and it is called this.
    service = getattr(getattr(jvm.org.apache.spark.sql.connect.service, "SparkConnectService$"), "MODULE$")
    say({"port": service.server().getPort(), "version": session.version, "jvm": jvm.java.lang.ProcessHandle.current().pid()})
    # A Spark that has died is no use to anybody.
    session.sparkContext._gateway.proc.wait()
    sys.exit("the JVM has ended")


def say(message: dict) -> None:
    os.write(1, (json.dumps(message) + "\n").encode())


def leave_with_the_driver(folder: str) -> None:
    """Whatever else is going on: Spark may hang while it starts. The JVM stops Spark and ends when this process does."""
    while os.read(0, 65536):
        pass
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


if __name__ == "__main__":
    main()
