"""Decodes many requests together so that each gets the same bits regardless of the others: docs/decisions/0025-exact-sampling.md.

A step of the model processes one flat list of tokens, whole prompts or the last token of each row, padded to a multiple of
TILE. Matrix products then give each token the same bits at every position. Only attention distinguishes rows: each prompt
attends to itself, block by block; rows attend to a cache that is padded with masked zeros to a multiple of LENGTH.
"""

import torch
import torch.nn.functional as F

import lora_draws
from lora_attention import LENGTH, Cache, Rows, base_of, up_to
from lora_prompts import TILE, Beginnings, logits_of, read_prompts

MOST_ROWS = 128
CACHE_BYTES = 2 << 30


class Decoder:
    """Rows that are decoded together. They can join at any time, and leave when they are finished."""

    def __init__(self, model, stops):
        self.model = model
        self.stops = stops
        self.cache = Cache()
        self.rows = []
        self.waiting = []
        self.beginnings = Beginnings()

    @property
    def busy(self):
        return bool(self.rows or self.waiting)

    def advance(self):
        """Reads waiting prompts, if there is room, and draws one token per row. Returns the finished rows."""
        done = []
        # Not one by one as rows leave, because prompts are read faster together.
        if self.waiting and len(self.rows) <= MOST_ROWS // 2:
            count = self.room()
            done += self.add(self.waiting[:count])
            del self.waiting[:count]
        return done + self.step() if self.rows else done

    def room(self):
        """How many of the waiting rows fit into the cache; at least one if it is empty."""
        config = base_of(self.model).config.get_text_config()
        heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        bytes_per_token = 2 * 4 * config.num_hidden_layers * heads * size
        longest = max((row.most_length for row in self.rows), default=0)
        count = 0
        for row in self.waiting[: MOST_ROWS - len(self.rows)]:
            longest = max(longest, row.most_length)
            if (len(self.rows) + count + 1) * longest * bytes_per_token > CACHE_BYTES:
                break
            count += 1
        return count if self.rows else max(count, 1)

    def drop(self, ids):
        """Drops rows whose results are no longer needed."""
        self.waiting = [row for row in self.waiting if row.id not in ids]
        self.keep([row.id not in ids for row in self.rows])

    def add(self, rows):
        """Reads the prompts of new rows and draws their first tokens. Returns the rows that are already finished."""
        if not rows:
            return []
        read = read_prompts(self.model, {row.prompt for row in rows}, self.beginnings)
        logits = torch.stack([read[row.prompt][1] for row in rows])
        lora_draws.draw(F.pad(logits, (0, 0, 0, up_to(TILE, len(rows)) - len(rows))), rows, self.stops)
        alive = [row for row in rows if row.finish is None]
        if alive:
            self.cache.add([read[row.prompt][0] for row in alive], up_to(LENGTH, 1 + max(row.length for row in alive)))
            self.rows += alive
        return [row for row in rows if row.finish is not None]

    def step(self):
        """Draws one token per row. Returns the finished rows."""
        positions = [row.length - 1 for row in self.rows]
        of = Rows(
            self.cache, torch.tensor(positions, device=base_of(self.model).device), up_to(LENGTH, 1 + max(positions))
        )
        logits = logits_of(self.model, [row.tokens[-1] for row in self.rows], positions, range(len(self.rows)), of)
        lora_draws.draw(logits, self.rows, self.stops)
        done = [row for row in self.rows if row.finish is not None]
        self.keep([row.finish is None for row in self.rows])
        return done

    def keep(self, kept):
        if all(kept):
            return
        self.rows = [row for row, stays in zip(self.rows, kept, strict=True) if stays]
        if self.rows:
            self.cache.keep([place for place, stays in enumerate(kept) if stays])
        else:
            self.cache = Cache()
