"""Scores in plain reasoning-gym, for comparison: JSON on stdin, [name, size, seed] of data sets; for each entry, on stdout, an
answer, its score, and what would have been right. Every third answer is right, every third is the question, the others are nearly right."""

import json
import sys

import reasoning_gym

told = []
for name, size, seed in json.load(sys.stdin):
    dataset = reasoning_gym.create_dataset(name, size=size, seed=seed)
    for index, entry in enumerate(dataset):
        right = entry["answer"]
        answer = [right, entry["question"], f"{right} or so"][index % 3]
        told.append(
            {
                "question": entry["question"],
                "answer": answer,
                "score": dataset.score_answer(answer, entry),
                "right": right,
            }
        )
print(json.dumps(told))
