"""Two actors of one machine, without Ray: who fetches a blob, and when its file is there."""

import asyncio
import hashlib
import json
import os
import sys

sys.path.insert(0, sys.argv[1])
import ray_worker

DATA = os.urandom(1 << 20)
SHA256 = hashlib.sha256(DATA).hexdigest()
fetched = 0


class Reference:
    """As the reference of an object in Ray's store: it can be awaited again and again."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __await__(self):
        return self.fetch().__await__()

    async def fetch(self) -> bytes:
        global fetched
        fetched += 1
        await asyncio.sleep(0.1)
        return self.data


async def main() -> None:
    first, second = ray_worker.Worker(), ray_worker.Worker()
    folder = os.path.join(first.folder, ray_worker.BLOBS_FOLDER)
    blobs = {SHA256: [Reference(DATA)]}
    files = lambda: sorted(name for name in os.listdir(folder) if name != ray_worker.BLOBS_LOCK)  # noqa: E731
    failed = await asyncio.gather(first.keep(blobs), second.keep(blobs), first.keep(blobs))
    with open(os.path.join(folder, SHA256), "rb") as file:
        right = file.read() == DATA
    both = files()
    await first.drop(SHA256)
    one = files()
    await second.leave()
    none = files()
    spoilt = await first.keep({SHA256: [Reference(DATA[1:])]})
    # Of an actor that was killed: nobody has it open.
    with open(os.path.join(folder, "ab" * 32), "wb") as file:
        file.write(b"left")
    await second.keep(blobs)
    ray_worker.remove_unused_blobs(first.folder)
    print(
        json.dumps(
            {
                "failed": failed,
                "fetched": fetched,
                "right": right,
                "both": len(both),
                "one": len(one),
                "none": none,
                "spoilt": list(spoilt.values()),
                "left": files() == [SHA256],
            }
        )
    )


asyncio.run(main())
