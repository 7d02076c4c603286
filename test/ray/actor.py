"""The actor without Ray: two processes in a row, and bytes for the first that come when the second is there."""

import asyncio
import json
import os
import sys

sys.path.insert(0, sys.argv[1])
import ray_worker


def frame(words: bytes) -> bytes:
    return len(words).to_bytes(4, "little") + words


async def heard(worker: ray_worker.Worker, generation: int, until: bytes = b"") -> tuple[str, dict | None]:
    """What a process says, up to a word, or to its end."""
    out = b""
    while True:
        data, _, _, exited = await worker.poll(generation)
        out += data
        if exited is not None or (until and out.endswith(until)):
            return "".join(part[4:].decode() for part in ray_worker.Frames().feed(out)), exited


async def main() -> None:
    worker = ray_worker.Worker()
    program = {"nodeBinary": sys.argv[2], "execArgv": [], "env": {}, "shows": False, "runtime": "none"}
    await worker.start(1, {}, program)
    # Calls arrive in any order: this one waits for the one before it.
    await worker.push(1, 1, frame(b"two."))
    await worker.push(0, 1, frame(b"one."))
    first, _ = await heard(worker, 1, b"two.")
    await worker.end(1)
    _, exited = await heard(worker, 1)
    await worker.start(2, {}, program)
    await worker.push(3, 1, frame(b"too late."))
    await worker.push(2, 1, frame(b"also too late."))
    await worker.end(1)
    await worker.push(4, 2, frame(b"for the second."))
    second, _ = await heard(worker, 2, b"second.")
    await worker.end(2)
    await heard(worker, 2)
    folder = worker.folder
    print(json.dumps({"first": first, "signal": exited["signal"], "second": second, "left": os.listdir(folder)}))
    print(folder)


asyncio.run(main())
