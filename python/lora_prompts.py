"""Reads prompts: the keys and values of their tokens, and the logits of what comes next. Beginnings that they share are read once."""

from collections import OrderedDict
from os.path import commonprefix

import torch

from lora_attention import BLOCK, Prompts, attention, base_of, up_to

TILE = 16
# Prompts that are read together. More do not make it faster, and need more memory.
PROMPT_TOKENS = 512
# Of the beginnings that are kept for prompts to come: the next turn of a conversation begins with this one.
KEPT_BYTES = 256 << 20


def logits_of(model, tokens, positions, wanted, of):
    """Of the tokens at the places `wanted`. All lists are padded; what is computed for the padding is not used."""
    device = base_of(model).device
    padded = up_to(TILE, len(tokens))
    ids = torch.zeros(1, padded, dtype=torch.long)
    at = torch.zeros(1, padded, dtype=torch.long)
    ids[0, : len(tokens)] = torch.as_tensor(tokens)
    at[0, : len(tokens)] = torch.as_tensor(positions)
    places = torch.zeros(up_to(TILE, len(wanted)), dtype=torch.long)
    places[: len(wanted)] = torch.as_tensor(wanted)
    attention.of = of
    found = model(input_ids=ids.to(device), position_ids=at.to(device), use_cache=False, logits_to_keep=places.to(device))
    return found.logits[0].float()


class Beginnings:
    """Keys and values by layer of whole blocks of tokens, by these tokens. Those that were not used for long are forgotten."""

    def __init__(self):
        self.known = OrderedDict()
        self.size = 0

    def longest(self, prompt):
        """(keys and values, length) of the longest that is known; one token of the prompt at least is left to read."""
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
        # A copy of its own: the whole would be kept alive otherwise.
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
    shared = {common(one, other) for one, other in zip(prompts, prompts[1:])} - {()}
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
    """The whole blocks that two prompts begin with; at least one token of each is left."""
    most = min(len(one), len(other)) - 1
    return one[: min(len(commonprefix([one, other])), most) // BLOCK * BLOCK]


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
