"""Episodes in plain Gymnasium, for comparison: a JSON list of [id, seed] on stdin, a JSON list of transitions for each on stdout."""

import json
import sys

import gymnasium
import numpy


def action(name, seed, step, observation):
    if name == "FrozenLake-v1":
        return (seed * 31 + step * 17 + (step * step) % 7) % 4
    if name == "CartPole-v1":
        return 1 if float(observation[2]) + float(observation[3]) > 0 else 0
    return numpy.array([float(observation[1]) * 3], dtype=numpy.float32)


def plain(value):
    return value.tolist() if hasattr(value, "tolist") else value


for name, seed in json.load(sys.stdin):
    env = gymnasium.make(name, **({"max_episode_steps": 30} if name == "Pendulum-v1" else {}))
    observation, _ = env.reset(seed=seed)
    steps, ended = [], False
    while not ended:
        seen = observation
        observation, reward, terminated, truncated, _ = env.step(action(name, seed, len(steps), seen))
        ended = terminated or truncated
        steps.append([plain(seen), float(reward)])
    print(json.dumps({"steps": steps, "last": plain(observation), "terminated": bool(terminated)}))
