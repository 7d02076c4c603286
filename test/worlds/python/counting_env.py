"""An OpenEnv server for tests, with OpenEnv's own code: `counting_env.py PORT SESSIONS`. It counts up to the goal of its reset."""

import os
import random
import sys
import threading
import time

import uvicorn
from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State

PEAK_S = 25
LOCK = threading.Lock()


class Add(Action):
    number: int
    """Waits until so many sessions were open at once."""
    peak: int = 0


class Total(Observation):
    total: int
    drawn: float
    sessions: int


class Counting(Environment):
    SUPPORTS_CONCURRENT_SESSIONS = True
    open = 0
    peak = 0

    def __init__(self):
        super().__init__()
        # Each session has a thread of its own.
        with LOCK:
            Counting.open += 1
            Counting.peak = max(Counting.peak, Counting.open)

    def reset(self, seed: int | None = None, episode_id: str | None = None, goal: int = 10, **_) -> Total:
        self.random, self.total, self.goal, self.episode_id = random.Random(seed), 0, goal, episode_id
        return self.seen(None)

    def step(self, action: Add, timeout_s: float | None = None, **_) -> Total:
        until = time.monotonic() + PEAK_S
        while Counting.peak < action.peak and time.monotonic() < until:
            time.sleep(0.02)
        if action.number == 13:
            raise ValueError("thirteen is bad luck")
        if action.number == 666:
            os._exit(1)
        self.total += action.number
        return self.seen(float(action.number))

    def seen(self, reward) -> Total:
        done = self.total >= self.goal
        return Total(total=self.total, drawn=self.random.random(), sessions=Counting.open, reward=reward, done=done)

    @property
    def state(self) -> State:
        return State(episode_id=self.episode_id, step_count=self.total)

    def close(self) -> None:
        with LOCK:
            Counting.open -= 1


app = create_fastapi_app(Counting, Add, Total, max_concurrent_envs=int(sys.argv[2]))
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
