"""Rows of tokens, as sent by src/train/lora/row-parts.ts, and their samples: the tokens that are trained on."""

import numpy as np

from lora_model import Refused


class Rows:
    """`ids` and `samples` (the positions of samples) are per row. Other arrays have one number per sample, row by row."""

    def __init__(self, parts, with_loss):
        lengths = np.frombuffer(parts[0], "<i4")
        self.ids = np.split(np.frombuffer(parts[1], "<i4").astype(np.int64), np.cumsum(lengths)[:-1])
        counts = np.frombuffer(parts[2], "u1") == 1
        figures = [np.frombuffer(part, "<f8") for part in parts[4:]]
        if with_loss:
            # As in src/train/losses.ts, samples without weight are ignored.
            counts = counts & (figures[3] != 0)
            self.behavior, self.proximal, self.advantage, self.weight = (figure[counts] for figure in figures)
        masks = np.split(counts, np.cumsum(lengths)[:-1])
        self.samples = [np.flatnonzero(mask) for mask in masks]
        sizes = [len(places) for places in self.samples]
        self.temperature = np.repeat(np.frombuffer(parts[3], "<f8"), sizes)
        self.begins = np.concatenate([[0], np.cumsum(sizes)])
        self.lengths = lengths
        self.counts = counts
        self.check()

    def check(self):
        for row, places in enumerate(self.samples):
            if len(places) > 0 and places[0] == 0:
                raise Refused(
                    "ROW_INVALID", f"row {row}: its first token cannot be trained on, because no token precedes it"
                )

    def check_ids(self, vocabulary):
        for row, ids in enumerate(self.ids):
            if len(ids) > 0 and (ids.min() < 0 or ids.max() >= vocabulary):
                raise Refused(
                    "ROW_INVALID",
                    f"row {row} contains token id {ids.max() if ids.min() >= 0 else ids.min()}, but "
                    f"the vocabulary of the base model has {vocabulary} tokens",
                )

    def count(self):
        return int(self.begins[-1])

    def per_token(self, values):
        """One number per token, for responses; 0 for tokens that are not trained on."""
        found = np.zeros(len(self.counts), "<f8")
        found[self.counts] = values
        return found
