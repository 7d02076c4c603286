"""Connects the driver (TypeScript, on stdin and stdout) and Ray: creates one actor per worker and routes bytes.

It decides nothing: which workers there are, when one is given up and what runs where is up to the driver.
A message is `u32 length | u8 kind | u32 worker | u32 generation | body`, little-endian: kind 0 is JSON, 1 bytes of a
worker, 2 code. The generation counts the processes of a worker: a message for one of them never reaches the next.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import struct
import sys
from collections.abc import Coroutine
from typing import Any

import ray_worker

HEADER = struct.Struct("<IBII")
LENGTH_BYTES = 4
CONTROL, DATA, CODE = 0, 1, 2
READ_LIMIT = 1 << 24
"""The maximum concurrent calls of an actor, which mostly wait."""
CALLS_AT_ONCE = 1000
PUSHES_AT_ONCE = 2
"""How often the lease of an actor is extended. Much more often than `LEASE_SECONDS` in `ray_worker.py`."""
BEAT_SECONDS = 2
"""How long actors may take to remove their files."""
LEAVE_SECONDS = 2


class Bridge:
    def __init__(self, out: int) -> None:
        self.out = out
        self.actors: dict[int, Any] = {}
        self.code: dict[str, Any] = {}
        self.blobs: dict[str, Any] = {}
        self.waiting: list[bytes] = []
        self.outgoing: dict[int, list[tuple[int, bytes]]] = {}
        self.pushing: dict[int, int] = {}
        self.pushed: dict[int, int] = {}
        self.starting: set[int] = set()
        self.tasks: set[asyncio.Task[None]] = set()
        self.loop = asyncio.get_running_loop()

    def in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """The event loop holds tasks weakly: without another reference, one that waits may be garbage-collected."""
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    # ---- what the driver says

    async def run(self) -> None:
        # It must not block: a driver that reads nothing for a while must not cost its actors their leases.
        pipe = await self.loop.connect_write_pipe(asyncio.streams.FlowControlMixin, os.fdopen(self.out, "wb"))
        self.writer = asyncio.StreamWriter(*pipe, None, self.loop)
        reader = asyncio.StreamReader(limit=READ_LIMIT)
        await self.loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        announced: list[str] = []
        try:
            while True:
                length, kind, worker, generation = HEADER.unpack(await reader.readexactly(HEADER.size))
                body = await reader.readexactly(length - HEADER.size + LENGTH_BYTES)
                if kind == DATA:
                    self.push(worker, generation, body)
                elif kind == CODE:
                    await self.publish(announced.pop(0), body)
                else:
                    message = json.loads(body)
                    if message["op"] == "publish":
                        announced.append(message["sha256"])
                    elif message["op"] == "stop":
                        break
                    else:
                        self.in_background(self.perform(message))
        except asyncio.IncompleteReadError:
            pass  # The driver is gone.
        self.stop()

    async def perform(self, message: dict[str, Any]) -> None:
        try:
            await getattr(self, message.pop("op"))(**message)
        except Exception as error:  # noqa: BLE001 - whatever it is, the driver has to know
            worker = message.get("worker")
            if worker is not None:
                return self.lost(worker, self.actors.get(worker), error)
            self.say(event="error", kind=type(error).__name__, text=shorten(str(error)))

    async def init(self, token: str | None = None, **options: Any) -> None:
        if token is not None:
            # Ray reads it from here. Other processes see the environment that this one was started with.
            os.environ["RAY_AUTH_TOKEN"] = token
        import ray

        # The cluster does not have our files, so the actor's code is sent with it.
        ray.cloudpickle.register_pickle_by_value(ray_worker)
        # It blocks for long, so it must not run in the event loop.
        await self.loop.run_in_executor(None, lambda: ray.init(log_to_driver=False, logging_level="ERROR", **options))
        self.say(event="init", ray=ray.__version__, python=sys.version.split()[0], nodes=nodes())

    async def look(self) -> None:
        self.say(event="nodes", nodes=await self.loop.run_in_executor(None, nodes))

    async def publish(self, sha256: str, body: bytes) -> None:
        import ray

        try:
            self.code[sha256] = await self.loop.run_in_executor(None, ray.put, body)
        except Exception as error:  # noqa: BLE001 - too large for the object store, say
            return self.say(event="published", sha256=sha256, error=f"{type(error).__name__}: {error}"[:2000])
        self.say(event="published", sha256=sha256)

    async def spawn(self, worker: int, name: str, options: dict[str, Any]) -> None:
        import ray

        node = options.pop("node_affinity", None)
        if node is not None:
            from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

            options["scheduling_strategy"] = NodeAffinitySchedulingStrategy(node_id=node["id"], soft=node["soft"])
        settings = {"max_concurrency": CALLS_AT_ONCE, "max_restarts": 0, "max_task_retries": 0, **options}
        actor = ray.remote(ray_worker.Worker).options(name=name, **settings).remote()
        self.actors[worker] = actor
        try:
            place = await actor.place.remote()
        except Exception as error:  # noqa: BLE001
            return self.lost(worker, actor, error)
        self.in_background(self.beat(worker, actor))
        self.say(event="placed", worker=worker, **place)

    async def beat(self, worker: int, actor: Any) -> None:
        """Extends the actor's lease. While it starts a process, which may take long, the driver hears that it is alive."""
        while self.actors.get(worker) is actor:
            try:
                await actor.beat.remote()
            except Exception as error:  # noqa: BLE001
                return self.lost(worker, actor, error)
            if worker in self.starting:
                self.say(event="starting", worker=worker)
            await asyncio.sleep(BEAT_SECONDS)

    async def put_blob(self, sha256: str, path: str) -> None:
        """A blob from a local file. It is not sent through stdin, because it would block everything else."""
        try:
            self.blobs[sha256] = await self.loop.run_in_executor(None, put_file, path)
        except Exception as error:  # noqa: BLE001 - too large for the object store, say
            return self.say(event="blob-put", sha256=sha256, error=f"{type(error).__name__}: {error}"[:2000])
        self.say(event="blob-put", sha256=sha256)

    async def bring_blob(self, worker: int, sha256: str, request: int) -> None:
        """Brings a later blob to an existing actor."""
        await self.keep(worker, self.actors.get(worker), [sha256])
        self.say(event="blob-brought", worker=worker, request=request)

    async def drop_blob(self, sha256: str) -> None:
        self.blobs.pop(sha256, None)
        for actor in self.actors.values():
            actor.drop.remote(sha256)

    async def keep(self, worker: int, actor: Any, blobs: list[str]) -> None:
        """An actor that cannot store a blob still works: its process gets the bytes over its link."""
        here = {sha256: [self.blobs[sha256]] for sha256 in blobs if sha256 in self.blobs}
        if actor is None or not here:
            return
        try:
            failed = await actor.keep.remote(here)
        except Exception:  # noqa: BLE001
            return  # It is lost, which whoever waits for its process is told.
        for sha256, text in failed.items():
            self.say(event="blob-missing", worker=worker, sha256=sha256, text=shorten(text))

    async def start(
        self, worker: int, generation: int, codes: list[str], blobs: list[str], program: dict[str, Any]
    ) -> None:
        """Starts a process in an existing actor, and forwards its output until it exits."""
        actor = self.actors.get(worker)
        if actor is None:
            return
        self.starting.add(worker)
        await self.keep(worker, actor, blobs)
        try:
            # In a list, because an object reference as an argument would be fetched before the call, and
            # would fail it if it is lost.
            pid = await actor.start.remote(generation, {sha256: [self.code[sha256]] for sha256 in codes}, program)
            self.starting.discard(worker)
            self.say(event="started", worker=worker, generation=generation, pid=pid)
            while True:
                await self.writer.drain()
                data, beats, printed, exited = await actor.poll.remote(generation)
                if self.actors.get(worker) is not actor:
                    return
                if printed:
                    self.say(event="printed", worker=worker, generation=generation, text=printed)
                if data:
                    self.send(DATA, worker, generation, data)
                if beats is not None:
                    self.say(event="beat", worker=worker, tasks=beats)
                if exited is not None:
                    return self.say(event="ended", worker=worker, generation=generation, **exited)
        except Exception as error:  # noqa: BLE001
            self.lost(worker, actor, error)

    async def bring(self, worker: int, codes: list[str], request: int) -> None:
        """Brings later code to an existing actor."""
        actor = self.actors.get(worker)
        if actor is not None:
            await actor.store.remote({sha256: [self.code[sha256]] for sha256 in codes})
        self.say(event="brought", worker=worker, request=request)

    async def end(self, worker: int, generation: int) -> None:
        """Ends the process, and keeps the actor."""
        actor = self.actors.get(worker)
        if actor is not None:
            await actor.end.remote(generation)

    async def kill(self, worker: int) -> None:
        await self.loop.run_in_executor(None, end_actor, self.forget(worker))

    def push(self, worker: int, generation: int, body: bytes) -> None:
        """Messages that arrive during a call go with the next one, because calls are expensive. They are numbered, because calls may arrive in any order."""
        actor = self.actors.get(worker)
        if actor is None:
            return
        self.outgoing.setdefault(worker, []).append((generation, body))
        if self.pushing.get(worker, 0) < PUSHES_AT_ONCE:
            self.pushing[worker] = self.pushing.get(worker, 0) + 1
            self.in_background(self.push_all(worker, actor))

    async def push_all(self, worker: int, actor: Any) -> None:
        while waiting := self.outgoing.pop(worker, None):
            # Messages for an earlier process are dropped.
            generation = waiting[-1][0]
            body = b"".join(part for of, part in waiting if of == generation)
            number = self.pushed.get(worker, 0)
            self.pushed[worker] = number + 1
            try:
                await actor.push.remote(number, generation, body)
            except Exception as error:  # noqa: BLE001
                # Later calls would wait for this one forever.
                self.lost(worker, actor, error)
                break
            self.say(event="taken", worker=worker, generation=generation, bytes=len(body))
        self.pushing[worker] -= 1

    def lost(self, worker: int, actor: Any, error: Exception) -> None:
        if self.actors.get(worker) is not actor:
            return
        self.forget(worker)
        cause = getattr(error, "cause", None) or error
        self.say(event="lost", worker=worker, kind=type(cause).__name__, text=shorten(str(cause)))
        # It may only have been unreachable for a moment. It is being replaced, so it must not continue.
        self.loop.run_in_executor(None, end_actor, actor)

    def forget(self, worker: int) -> Any:
        for by_worker in (self.outgoing, self.pushed):
            by_worker.pop(worker, None)
        self.starting.discard(worker)
        return self.actors.pop(worker, None)

    # ---- what the driver is told

    def say(self, **message: Any) -> None:
        self.send(CONTROL, 0, 0, json.dumps(message).encode())

    def send(self, kind: int, worker: int, generation: int, body: bytes) -> None:
        if not self.waiting:
            self.loop.call_soon(self.flush)
        self.waiting += (HEADER.pack(HEADER.size - LENGTH_BYTES + len(body), kind, worker, generation), body)

    def flush(self) -> None:
        self.writer.write(b"".join(self.waiting))
        self.waiting = []

    def stop(self) -> None:
        import ray

        if self.blobs:
            ray.wait(
                [actor.leave.remote() for actor in self.actors.values()],
                num_returns=len(self.actors),
                timeout=LEAVE_SECONDS,
            )
        for actor in self.actors.values():
            end_actor(actor)
        ray.shutdown()
        os._exit(0)


def shorten(text: str) -> str:
    """The problem is at the start or at the end."""
    return text if len(text) <= 4000 else f"{text[:1000]}\n...\n{text[-3000:]}"


def put_file(path: str) -> Any:
    import ray

    with open(path, "rb") as file:
        return ray.put(file.read())


def end_actor(actor: Any) -> None:
    import ray

    try:
        if actor is not None:
            ray.kill(actor)
    except Exception:  # noqa: BLE001 - it is gone
        pass


def nodes() -> list[dict[str, Any]]:
    import ray

    return [
        {"id": n["NodeID"], "host": n["NodeManagerHostname"], "resources": n["Resources"]}
        for n in ray.nodes()
        if n["Alive"]
    ]


if __name__ == "__main__":
    # Ray prints to stdout too, so messages for the driver use a separate descriptor.
    out = os.dup(1)
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    async def main() -> None:
        await Bridge(out).run()

    asyncio.run(main())
