"""Reads prompts: the keys and values of their tokens, and the logits of the next token. Common prefixes are read once."""

from collections import OrderedDict
from itertools import pairwise
from os.path import commonprefix

import torch

from lora_attention import BLOCK, Prompts, attention, base_of, up_to

TILE = 16
# How many prompt tokens are read together. More would not be faster, and would need more memory.
PROMPT_TOKENS = 512
# The size of the cache of prefixes, because the next turn of a conversation starts with this one.
KEPT_BYTES = 256 << 20


def logits_of(model, tokens, positions, wanted, of):
    """Computes the tokens at the positions `wanted`. All lists are padded; results for the padding are ignored."""
    device = base_of(model).device
    padded = up_to(TILE, len(tokens))
    ids = torch.zeros(1, padded, dtype=torch.long)
    at = torch.zeros(1, padded, dtype=torch.long)
    ids[0, : len(tokens)] = torch.as_tensor(tokens)
    at[0, : len(tokens)] = torch.as_tensor(positions)
    places = torch.zeros(up_to(TILE, len(wanted)), dtype=torch.long)
    places[: len(wanted)] = torch.as_tensor(wanted)
    attention.of = of
    found = model(
        input_ids=ids.to(device), position_ids=at.to(device), use_cache=False, logits_to_keep=places.to(device)
    )
    return found.logits[0].float()


class Beginnings:
    """A cache of keys and values by layer, for whole blocks of tokens. The least recently used are dropped."""

    def __init__(self):
        self.known = OrderedDict()
        self.size = 0

    def longest(self, prompt):
        """(keys and values, length) of the longest known prefix; at least one token of the prompt is left to read."""
        for length in range((len(prompt) - 1) // BLOCK * BLOCK, 0, -BLOCK):
            found = self.known.get(prompt[:length])
            if found is not None:
                self.known.move_to_end(prompt[:length])
                return found, length
        return {}, 0

    def add(self, prompt, layers):
        length = len(prompt) // BLOCK * BLOCK
        if length == 0 or prompt[:length] in self.known:
            return
        # Copied, because a view would keep the whole tensor alive.
        kept = {layer: tuple(part[:, :length].clone() for part in parts) for layer, parts in layers.items()}
        self.known[prompt[:length]] = kept
        self.size += bytes_of(kept)
        while self.size > KEPT_BYTES:
            self.size -= bytes_of(self.known.popitem(last=False)[1])


def bytes_of(layers):
    return sum(part.numel() * part.element_size() for parts in layers.values() for part in parts)


def read_prompts(model, prompts, beginnings):
    """By prompt: (keys and values by layer, logits of the next token)."""
    prompts = sorted(prompts)
    shared = {common(one, other) for one, other in pairwise(prompts)} - {()}
    new = {prompt for prompt in shared if prompt not in beginnings.known}
    if new:
        read_prompts(model, new, beginnings)
    read = {}
    for some in packs([(prompt, *beginnings.longest(prompt)) for prompt in prompts]):
        of = Prompts([(before, start, len(prompt) - start) for prompt, before, start in some])
        tokens = [token for prompt, _, start in some for token in prompt[start:]]
        positions = [place for prompt, _, start in some for place in range(start, len(prompt))]
        ends = torch.tensor([length for _, _, length in of.pieces]).cumsum(0) - 1
        logits = logits_of(model, tokens, positions, ends, of)
        for place, (prompt, _, _) in enumerate(some):
            read[prompt] = (of.kept[place], logits[place])
            beginnings.add(prompt, of.kept[place])
    return read


def common(one, other):
    """The whole blocks that two prompts share; at least one token of each is left."""
    most = min(len(one), len(other)) - 1
    return one[: min(len(commonprefix([one, other])), most) // BLOCK * BLOCK]  # noqa: RUF071 - of tokens, not of paths


def packs(prompts):
    """In turns of at most PROMPT_TOKENS new tokens, or one prompt that has more."""
    some, size = [], 0
    for prompt in prompts:
        count = len(prompt[0]) - prompt[2]
        if some and size + count > PROMPT_TOKENS:
            yield some
            some, size = [], 0
        some.append(prompt)
        size += count
    if some:
        yield some
