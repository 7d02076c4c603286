"""Serves Python environments to one manyworlds process (TypeScript): many episodes at once, one request at a time.

It decides nothing: which episodes there are, what seeds they get and who is blamed for a crash is up to the caller.
A request is a line on stdin, `number operation episode JSON`; an answer is a line on stdout, `number JSON`, `number ~JSON`
if it contains values that JSON cannot represent, or `number !JSON` if an exception was raised. On fd 3 is a file of 8 bytes:
the number of the request being executed, so that the caller knows it when this process dies or hangs; 0 between requests.
"""

from __future__ import annotations

import base64
import json
import math
import mmap
import os
import re
import select
import signal
import struct
import sys
import threading
import time
import traceback
from typing import Any

MARK_FD = 3
MARK = struct.Struct("<d")
READ_BYTES = 1 << 20
"""The maximum time for which answers are collected while there are more requests."""
HOLD_S = 0.002
TRACE_CHARS = 4000
"""Data sets are cached, because making one can cost more than all of its questions."""
DATASETS_KEPT = 64
"""Larger integers are not exact in JavaScript."""
SAFE_INTEGER = 2**53 - 1
LONG_INTEGER = re.compile(r"(?<![\d.])\d{16,}(?![\d.eE])")


# ---- values


def plain(value: Any) -> Any:
    """Converts values that json does not support: numpy's arrays and numbers, sets; a string for everything else."""
    if isinstance(value, (bytes, bytearray)):
        raise TypeError("bytes must be written by `marked`")
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (set, frozenset)):
        return list(value)
    return repr(value)


def marked(value: Any) -> Any:
    """The same value, with objects of one key, `$float`, `$int`, `$bytes` or `$dict`, for what JSON cannot represent."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, int):
        return value if abs(value) <= SAFE_INTEGER else {"$int": str(int(value))}
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": str(float(value))}
    if isinstance(value, (list, tuple)):
        return [marked(one) for one in value]
    if isinstance(value, dict):
        return {"$dict": [[key if isinstance(key, str) else str(key), marked(one)] for key, one in value.items()]}
    if isinstance(value, (bytes, bytearray)):
        return {"$bytes": base64.b64encode(value).decode()}
    return marked(plain(value))


ENCODER = json.JSONEncoder(allow_nan=False, default=plain, separators=(",", ":"))


def encoded(value: Any) -> str:
    try:
        text = ENCODER.encode(value)
        if not LONG_INTEGER.search(text):
            return text
    except (TypeError, ValueError):
        pass  # An infinity, NaN, bytes, or keys that are no text.
    return "~" + json.dumps(marked(value), separators=(",", ":"))


# ---- Gymnasium


class Gymnasium:
    def __init__(self) -> None:
        import gymnasium
        import numpy

        self.gymnasium, self.spaces, self.numpy = gymnasium, gymnasium.spaces, numpy
        self.version = gymnasium.__version__

    def make(self, ask: dict[str, Any]) -> Any:
        limit = {} if ask.get("maxEpisodeSteps") is None else {"max_episode_steps": ask["maxEpisodeSteps"]}
        return self.gymnasium.make(ask["id"], **limit, **ask.get("kwargs", {}))

    def reset(self, ask: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        # Created for each episode, because not every environment resets its state completely.
        env = self.make(ask)
        observation, _ = env.reset(seed=ask["seed"], options=ask.get("options"))
        space = env.action_space
        actions = [int(space.n), int(space.start)] if isinstance(space, self.spaces.Discrete) else None
        return env, {"observation": observation, "actions": actions}

    def step(self, env: Any, action: Any) -> dict[str, Any]:
        observation, reward, terminated, truncated, info = env.step(self.action(env.action_space, action))
        answer = {
            "observation": observation,
            "reward": float(reward),
            "terminated": bool(terminated),
            "truncated": bool(truncated),
        }
        if "is_success" in info:
            answer["success"] = bool(info["is_success"])
        return answer

    def close(self, env: Any) -> None:
        env.close()

    def action(self, space: Any, action: Any) -> Any:
        """The action in the form of `space.sample()`: lists become arrays of the type that the environment expects."""
        spaces, numpy = self.spaces, self.numpy
        if isinstance(space, spaces.Discrete):
            whole = isinstance(action, int) and not isinstance(action, bool)
            if not whole or not 0 <= action - int(space.start) < int(space.n):
                raise InvalidAction(f"{action!r} is not an action of {space}")
            return space.dtype.type(action)
        if isinstance(space, spaces.Tuple):
            if not isinstance(action, list) or len(action) != len(space.spaces):
                raise InvalidAction(f"{action!r} is not a list of {len(space.spaces)} actions, as needed for {space}")
            return tuple(self.action(one, part) for one, part in zip(space.spaces, action, strict=True))
        if isinstance(space, spaces.Dict):
            if not isinstance(action, dict) or set(action) != set(space.spaces):
                raise InvalidAction(f"{action!r} does not have the keys of {space}")
            return {key: self.action(one, action[key]) for key, one in space.spaces.items()}
        if isinstance(space, (spaces.Box, spaces.MultiDiscrete, spaces.MultiBinary)):
            try:
                array = numpy.asarray(action, dtype=space.dtype)
            except (TypeError, ValueError, OverflowError):
                array = None
            # As in Gymnasium itself, the bounds of a box are up to the environment; most clip.
            if array is None or array.shape != space.shape:
                raise InvalidAction(f"{action!r} is not an action of {space}: its shape or type differs")
            if not isinstance(space, spaces.Box) and not space.contains(array):
                raise InvalidAction(f"{action!r} is not an action of {space}")
            return array
        if not space.contains(action):
            raise InvalidAction(f"{action!r} is not an action of {space}")
        return action

    def describe(self, ask: dict[str, Any]) -> dict[str, Any]:
        env = self.make(ask)
        try:
            return {
                "version": self.version,
                "observationSpace": self.space(env.observation_space),
                "actionSpace": self.space(env.action_space),
                "maxEpisodeSteps": env.spec.max_episode_steps if env.spec else None,
                "rewardThreshold": env.spec.reward_threshold if env.spec else None,
            }
        finally:
            env.close()

    def space(self, space: Any) -> dict[str, Any]:
        spaces = self.spaces
        told: dict[str, Any] = {"type": type(space).__name__, "text": str(space)}
        if isinstance(space, spaces.Discrete):
            told.update(n=int(space.n), start=int(space.start))
        elif isinstance(space, spaces.Box):
            told.update(shape=space.shape, dtype=str(space.dtype), low=space.low, high=space.high)
        elif isinstance(space, spaces.MultiDiscrete):
            told.update(nvec=space.nvec)
        elif isinstance(space, spaces.MultiBinary):
            told.update(n=space.n)
        elif isinstance(space, spaces.Tuple):
            told.update(spaces=[self.space(one) for one in space.spaces])
        elif isinstance(space, spaces.Dict):
            told.update(spaces={key: self.space(one) for key, one in space.spaces.items()})
        return told


# ---- reasoning-gym


class ReasoningGym:
    """Environments of one step: a question, then an answer. The solution stays here."""

    def __init__(self) -> None:
        from importlib.metadata import version

        import reasoning_gym

        self.reasoning_gym, self.version = reasoning_gym, version("reasoning-gym")
        self.datasets: dict[str, Any] = {}

    def dataset(self, ask: dict[str, Any]) -> Any:
        key = json.dumps([ask["dataset"], ask["config"]], sort_keys=True)
        found = self.datasets.pop(key, None)
        if found is None:
            found = self.reasoning_gym.create_dataset(ask["dataset"], **ask["config"])
        self.datasets[key] = found
        if len(self.datasets) > DATASETS_KEPT:
            del self.datasets[next(iter(self.datasets))]
        return found

    def entry(self, dataset: Any, index: int) -> dict[str, Any]:
        # Indexing creates a new entry, even beyond the end.
        if not 0 <= index < len(dataset):
            raise IndexError(f"entry {index} does not exist; the data set has {len(dataset)}")
        return dataset[index]

    def reset(self, ask: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        dataset = self.dataset(ask)
        entry = self.entry(dataset, ask["index"])
        return (dataset, entry), {"observation": entry["question"]}

    def step(self, episode: Any, action: Any) -> dict[str, Any]:
        dataset, entry = episode
        score = float(dataset.score_answer(action, entry))
        return {"observation": None, "reward": score, "terminated": True, "truncated": False, "success": score >= 1}

    def close(self, _episode: Any) -> None:
        pass

    def entries(self, ask: dict[str, Any]) -> list[dict[str, Any]]:
        dataset = self.dataset(ask)
        found = [self.entry(dataset, index) for index in range(ask["from"], min(ask["to"], len(dataset)))]
        # Only this part of the metadata, because the rest may contain the solution.
        return [{"question": one["question"], "difficulty": one["metadata"].get("difficulty")} for one in found]


# ---- requests


class InvalidAction(Exception):
    pass


class Server:
    def __init__(self, kind: Any) -> None:
        self.kind = kind
        self.episodes: dict[bytes, Any] = {}

    def perform(self, operation: bytes, episode: bytes, body: Any) -> Any:
        if operation == b"step":
            return self.kind.step(self.episodes[episode], body)
        if operation == b"reset":
            self.episodes[episode], first = self.kind.reset(body)
            return first
        if operation == b"close":
            return self.kind.close(self.episodes.pop(episode)) if episode in self.episodes else None
        if operation in (b"describe", b"entries"):
            return getattr(self.kind, operation.decode())(body)
        raise ValueError(f"unknown operation {operation!r}")


def failure(error: BaseException) -> str:
    try:
        message = str(error)
    except Exception:  # noqa: BLE001
        message = "(its message cannot be shown)"
    at = error.__traceback__
    while at is not None and at.tb_frame.f_code.co_filename == __file__:
        at = at.tb_next
    trace = "".join(traceback.format_exception(type(error), error, at))[-TRACE_CHARS:]
    kinds = [one.__name__ for one in type(error).__mro__[:-1]]
    return "!" + json.dumps(
        {"type": type(error).__name__, "kinds": kinds, "message": message[:TRACE_CHARS], "trace": trace}
    )


def answer(server: Server, line: bytes, mark: mmap.mmap) -> bytes:
    number, operation, episode, body = line.split(b" ", 3)
    MARK.pack_into(mark, 0, int(number))
    try:
        text = encoded(server.perform(operation, episode, json.loads(body)))
    except BaseException as error:  # noqa: BLE001
        text = failure(error)
    return number + b" " + text.encode() + b"\n"


def serve(server: Server, requests: int, answers: int, mark: mmap.mmap) -> None:
    waiting = bytearray()
    while chunk := os.read(requests, READ_BYTES):
        known = len(waiting)
        waiting += chunk
        end = waiting.rfind(b"\n", known) + 1
        lines, out, began = bytes(waiting[:end]).split(b"\n")[:-1], [], time.monotonic()
        del waiting[:end]
        for line in lines:
            out.append(answer(server, line, mark))
            if time.monotonic() - began > HOLD_S:
                MARK.pack_into(mark, 0, 0)
                write(answers, b"".join(out))
                out, began = [], time.monotonic()
        MARK.pack_into(mark, 0, 0)
        write(answers, b"".join(out))


def write(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


# ---- the process


def end_with_caller(requests: int) -> None:
    """Exits with the parent, even in an endless step: by a thread and, on Linux, by the kernel, in case a step holds the GIL."""
    if sys.platform == "linux":
        import ctypes

        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)

    def watch() -> None:
        poll = select.poll()
        poll.register(requests, 0)
        poll.poll()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def main() -> None:
    # Environments print and may read: neither reaches the caller. Programs that they start inherit none of
    # it.
    requests, answers = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    end_with_caller(requests)
    # Ctrl-C at the terminal is for the caller, which then ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    mark = mmap.mmap(MARK_FD, MARK.size)
    os.close(MARK_FD)
    kind = {"gymnasium": Gymnasium, "reasoning-gym": ReasoningGym}[sys.argv[1]]()
    write(answers, b'0 {"version":' + json.dumps(kind.version).encode() + b"}\n")
    serve(Server(kind), requests, answers, mark)


if __name__ == "__main__":
    main()
