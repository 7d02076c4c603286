"""A world for tests: what a step does is up to its action, and most of it is what worlds should not do."""

import os
import random
import signal
import subprocess
import sys
import time

import gymnasium
import numpy

SEEDED, KILL, HANG, LEAVE, RAISE, PRINT, VALUES, DIE, UNSEEDED, END, CUT, BOTH, BIG, SOLVED = range(14)


class Odd(gymnasium.Env):
    action_space = gymnasium.spaces.Discrete(14)
    observation_space = gymnasium.spaces.Box(-numpy.inf, numpy.inf, (3,), numpy.float64)

    def __init__(self, note=None):
        self.note = note

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if options:
            return {"options": options, "note": self.note, "pid": os.getpid()}, {}
        return self.np_random.random(3), {}

    def step(self, action):
        observation = self.np_random.random(3)
        if action == KILL:
            os.kill(os.getpid(), signal.SIGKILL)
        if action == HANG:
            while True:
                time.sleep(1)
        if action == LEAVE:
            sys.exit("a world that leaves")
        if action == RAISE:
            raise ValueError("a world that raises \u2603")
        if action == PRINT:
            print('0 {"not": "an answer"}\n' * 1000, flush=True)
            os.write(1, b"99 {}\n")
            subprocess.run(["echo", "7 null"], check=True)
            observation = {"read": sys.stdin.read()}
        if action == VALUES:
            observation = {
                "floats": [float("nan"), float("inf"), -float("inf"), -0.0, 0.1 + 0.2, 5e-324, 1.7976931348623157e308],
                "ints": [2**53 - 1, 2**53 + 1, -(2**64)],
                "numpy": [numpy.float32(0.1), numpy.int64(3), numpy.bool_(True), numpy.array([[1, 2], [3, 4]])],
                "text": "a\u2028b \ud800 \u2603 12345678901234567890",
                "bytes": b"\x00\xff",
                "$float": "a key of the world's own",
                7: (None, True),
            }
        if action == DIE:
            print("last words", file=sys.stderr, flush=True)
            os._exit(7)
        if action == UNSEEDED:
            observation = [random.random()]
        if action == BIG:
            observation = "x" * (65 * 1024 * 1024)
        info = {"is_success": True} if action == SOLVED else {}
        return observation, 0.5, action in (END, BOTH, SOLVED), action in (CUT, BOTH), info


class Boxed(Odd):
    action_space = gymnasium.spaces.Dict(
        {"box": gymnasium.spaces.Box(-1, 1, (2,), numpy.float64), "pair": gymnasium.spaces.MultiDiscrete([3, 2])}
    )

    def step(self, action):
        told = {"box": action["box"], "kinds": [type(one).__name__ + str(one.dtype) for one in action.values()]}
        return {**told, "pair": action["pair"]}, 0, False, False, {}


gymnasium.register("Odd-v0", "odd_worlds:Odd")
gymnasium.register("Boxed-v0", "odd_worlds:Boxed")
