#!/usr/bin/env python3
"""A package of accelerators as an environment in the style of Gymnasium, without a dependency on it.

    env = ChipEnv("--mix", "light", "--load", "0.9")     # options of `cotenant chip env`
    observation, info = env.reset(seed=7)
    observation, reward, terminated, truncated, info = env.step([["start", task, unit]])

Observations and actions are those of docs/chip-env.md. The reward of a step is 1 for every request that was answered in
time since the last one and -1 for every other. As a program it plays episodes of random legal actions.
"""
import json
import os
import random
import subprocess
import sys


class ChipEnv:
    def __init__(self, *options, program=None):
        command = [program or os.environ.get("COTENANT", "cotenant"), "chip", "env", *options]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.description = self._read()  # the hello: units, tenants, costs of layers

    def _read(self):
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"cotenant chip env ended with code {self._process.wait()}; stderr says why")
        return json.loads(line)

    def _ask(self, message):
        self._process.stdin.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        self._process.stdin.flush()
        answer = self._read()
        if answer["type"] == "error":  # nothing has changed: another action can follow
            raise ValueError(answer["message"])
        return answer

    def reset(self, seed=None, options=None):
        """Begins an episode, also in the middle of one. options: load, requests."""
        message = dict(options or {})
        if seed is not None:
            message["seed"] = seed
        return self._ask({"reset": message}), {}

    def step(self, actions):
        """actions: a list of ["start", task, unit], ["drop", task], ["throttle", unit, bytes_ns], ["wake", time]."""
        answer = self._ask({"actions": actions})
        return answer, answer["reward"], answer["done"], False, answer.get("summary", {})

    def legal_starts(self, observation):
        """All (task, unit) of waiting tasks and free units that can compute their next layers."""
        kind_of, tenants, tasks = self.description["kind_of"], self.description["tenants"], observation["tasks"]
        for task in observation["waiting"]:
            ns = tenants[tasks[task][1]]["ns"][tasks[task][5]]
            yield from ((task, unit) for unit in observation["free"] if ns[kind_of[unit]] is not None)

    def close(self):
        self._process.stdin.close()
        self._process.stdout.close()
        return self._process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()


def play(env, seed):
    rng, total, done = random.Random(seed), 0, False
    observation, info = env.reset(seed=seed)
    while not done:
        starts = list(env.legal_starts(observation))
        actions = [["start", *rng.choice(starts)]] if starts else []
        observation, reward, done, _, info = env.step(actions)
        total += reward
    return total, info


if __name__ == "__main__":
    with ChipEnv(*sys.argv[1:]) as chip:
        for episode in range(1, 4):
            print(json.dumps(dict(zip(("reward", "summary"), play(chip, episode)), seed=episode)))
