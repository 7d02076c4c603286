"""The same work as bench/ray.ts with nothing but Ray: a Ray task each, or a call of an actor each. Prints one line of JSON."""

import json
import os
import sys
import time

import ray

tasks, calls, sleeps = (int(word) for word in sys.argv[1:4])
ray.init(address=os.environ["BENCH_RAY_ADDRESS"], log_to_driver=False, logging_level="ERROR")


@ray.remote(num_cpus=1)
def echo(x):
    return x


@ray.remote(num_cpus=1)
def pause(seconds):
    time.sleep(seconds)


@ray.remote(num_cpus=1)
class Echo:
    def echo(self, x):
        return x


def timed(body):
    began = time.perf_counter()
    body()
    return time.perf_counter() - began


payload = {"id": 1, "text": "x" * 100}
ray.get([echo.remote(payload) for _ in range(20)])
task_seconds = timed(lambda: ray.get([echo.remote(payload) for _ in range(tasks)]))
sleep_seconds = timed(lambda: ray.get([pause.remote(0.1) for _ in range(sleeps)]))
actors = [Echo.remote() for _ in range(2)]
ray.get([actor.echo.remote(payload) for actor in actors])
call_seconds = timed(lambda: ray.get([actors[i % 2].echo.remote(payload) for i in range(calls)]))
print(json.dumps({"tasks": tasks / task_seconds, "calls": calls / call_seconds, "sleeps": sleep_seconds}))
