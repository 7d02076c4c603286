"""Attention of many requests in one flat list of tokens, and the cache of their keys and values."""

import contextlib

import torch
import torch.nn.functional as F

LENGTH = 64
BLOCK = 32
NAME = "manyworlds_exact"


def up_to(multiple, count):
    return -(-count // multiple) * multiple


def base_of(model):
    """The model without PEFT's wrapper; PEFT's layers stay in place."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


class Cache:
    """Keys and values of rows, by layer: (rows, heads, length, head size). In a step, every row adds one token."""

    def __init__(self):
        self.keys = {}
        self.values = {}

    def write(self, layer, rows, positions, keys, values, length):
        """Adds one token per row; `keys`: (rows, heads, head size)."""
        for kept, new in ((self.keys, keys), (self.values, values)):
            kept[layer] = grown(kept[layer], length)
            kept[layer][rows, :, positions] = new
        return self.keys[layer][:, :, :length], self.values[layer][:, :, :length]

    def add(self, prompts, length):
        """Appends rows, one per prompt: its (keys, values) by layer."""
        for layer in prompts[0]:
            for which, kept in enumerate((self.keys, self.values)):
                first = prompts[0][layer][which]
                heads, _, size = first.shape
                old = kept.get(layer)
                count = 0 if old is None else old.shape[0]
                capacity = max(length, 0 if old is None else old.shape[2])
                new = first.new_zeros(count + len(prompts), heads, capacity, size)
                if old is not None:
                    new[:count, :, : old.shape[2]] = old
                for place, prompt in enumerate(prompts):
                    part = prompt[layer][which]
                    new[count + place, :, : part.shape[1]] = part
                kept[layer] = new

    def keep(self, rows):
        for kept in (self.keys, self.values):
            for layer, tensor in kept.items():
                kept[layer] = tensor[rows]


def grown(tensor, length):
    if tensor.shape[2] >= length:
        return tensor
    # A quarter more than needed, so that a long completion does not copy its cache at every step.
    return F.pad(tensor, (0, 0, 0, up_to(LENGTH, length + length // 4) - tensor.shape[2]))


class Prompts:
    """
    Attention of prompts, or of what follows a prefix that was read before. A block of tokens attends to everything up to its
    end, so its result depends only on the tokens up to there: prompts with a common prefix can share it.
    """

    def __init__(self, pieces):
        """Each: (keys and values of the prefix by layer, its length, the number of tokens that follow)."""
        self.pieces = pieces
        self.kept = [{} for _ in pieces]
        self.masks = {}

    def attend(self, layer, query, key, value, options):
        out = torch.zeros_like(query)
        offset = 0
        for kept, (before, start, length) in zip(self.kept, self.pieces, strict=True):
            new = (key[0, :, offset : offset + length], value[0, :, offset : offset + length])
            old = before.get(layer)
            keys, values = (part.clone() if old is None else torch.cat([old[i], part], 1) for i, part in enumerate(new))
            kept[layer] = (keys, values)
            for begin in range(start, start + length, BLOCK):
                end = min(begin + BLOCK, start + length)
                rows = slice(offset + begin - start, offset + end - start)
                out[:, :, rows] = F.scaled_dot_product_attention(
                    query[:, :, rows],
                    keys[None, :, :end],
                    values[None, :, :end],
                    attn_mask=self.mask(begin, end, options, query),
                    scale=options.get("scaling"),
                    enable_gqa=True,
                )
            offset += length
        return out

    def mask(self, begin, end, options, like):
        window = options.get("sliding_window")
        if (begin, end, window) not in self.masks:
            places = torch.arange(begin, end, device=like.device)
            self.masks[begin, end, window] = mask_of(places, end, window, like.dtype)
        return self.masks[begin, end, window]


class Rows:
    """Attention of one token per row to everything the row has in the cache."""

    def __init__(self, cache, positions, length):
        self.cache = cache
        self.positions = positions
        self.rows = torch.arange(len(positions), device=positions.device)
        self.length = length
        self.masks = {}

    def attend(self, layer, query, key, value, options):
        count = len(self.rows)
        keys, values = self.cache.write(
            layer,
            self.rows,
            self.positions,
            key[0, :, :count].transpose(0, 1),
            value[0, :, :count].transpose(0, 1),
            self.length,
        )
        out = torch.zeros_like(query)
        found = F.scaled_dot_product_attention(
            query[0, :, :count].transpose(0, 1).unsqueeze(2),
            keys,
            values,
            attn_mask=self.mask(options, query.dtype),
            scale=options.get("scaling"),
            enable_gqa=True,
        )
        out[0, :, :count] = found.squeeze(2).transpose(0, 1)
        return out

    def mask(self, options, dtype):
        window = options.get("sliding_window")
        if window not in self.masks:
            self.masks[window] = mask_of(self.positions, self.length, window, dtype)[:, None, None]
        return self.masks[window]


def mask_of(positions, length, window, dtype):
    """The mask of tokens at these positions: they attend to themselves and earlier tokens, within the window if there is one."""
    apart = positions[:, None] - torch.arange(length, device=positions.device)
    seen = apart >= 0 if window is None else (apart >= 0) & (apart < window)
    return torch.zeros(seen.shape, dtype=dtype, device=seen.device).masked_fill_(~seen, float("-inf"))


class Attention:
    """The attention function that transformers calls in each layer; `of` describes the tokens of this step."""

    of = None

    def __call__(self, module, query, key, value, attention_mask, dropout=0.0, scaling=None, **options):
        for name in ("softcap", "s_aux", "position_bias"):
            if options.get(name) is not None:
                raise ValueError(
                    f"this sampler does not support the attention of this model ({name}); serve it with vLLM or SGLang"
                )
        options["scaling"] = scaling
        return self.of.attend(module.layer_idx, query, key, value, options).transpose(1, 2), None


attention = Attention()


@contextlib.contextmanager
def exact_attention(model):
    from transformers import AttentionInterface

    AttentionInterface.register(NAME, attention)
    config = base_of(model).config
    before = config._attn_implementation
    config._attn_implementation = NAME
    try:
        yield
    finally:
        config._attn_implementation = before
        attention.of = None
