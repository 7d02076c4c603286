"""
A local Spark with a Connect server, which runs as long as standard input is open. The first line of standard input is what
to start, as JSON; the first line of standard output is its address. The token is in the environment.
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
    # For files that Python leaves behind while it starts Spark, and for tables, whose catalog is lost when
    # Spark exits.
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
    # A Scala singleton object; this is how Py4J names it.
    service = getattr(getattr(jvm.org.apache.spark.sql.connect.service, "SparkConnectService$"), "MODULE$")
    say(
        {
            "port": service.server().getPort(),
            "version": session.version,
            "jvm": jvm.java.lang.ProcessHandle.current().pid(),
        }
    )
    # A Spark that has died is useless.
    session.sparkContext._gateway.proc.wait()
    sys.exit("the JVM has ended")


def say(message: dict) -> None:
    os.write(1, (json.dumps(message) + "\n").encode())


def leave_with_the_driver(folder: str) -> None:
    """Exits in any case, because Spark may hang while it starts. The JVM stops Spark and exits with this process."""
    while os.read(0, 65536):
        pass
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


if __name__ == "__main__":
    main()
