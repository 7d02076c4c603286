"""Attention of many requests in one flat list of tokens, and the cache of their keys and values."""

import contextlib

import torch
import torch.nn.functional as F

LENGTH = 64
NAME = "manyworlds_exact"


def up_to(multiple, count):
    return -(-count // multiple) * multiple


def base_of(model):
    """Without the wrapper of PEFT, whose layers stay in place."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


class Cache:
    """Keys and values of rows, by layer: (rows, heads, length, head size). All rows of a step have written their token."""

    def __init__(self):
        self.keys = {}
        self.values = {}

    def write(self, layer, rows, positions, keys, values, length):
        """One token for each row; `keys`: (rows, heads, head size)."""
        for kept, new in ((self.keys, keys), (self.values, values)):
            kept[layer] = grown(kept[layer], length)
            kept[layer][rows, :, positions] = new
        return self.keys[layer][:, :, :length], self.values[layer][:, :, :length]

    def add(self, prompts, length):
        """Rows behind those that are there, one for each prompt: its (keys, values) by layer."""
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
    """Attention of whole prompts, each on its own. Keeps their keys and values."""

    def __init__(self, lengths):
        self.lengths = lengths
        self.kept = [{} for _ in lengths]

    def attend(self, layer, query, key, value, options):
        out = torch.zeros_like(query)
        start = 0
        for kept, length in zip(self.kept, self.lengths, strict=True):
            part = slice(start, start + length)
            start += length
            kept[layer] = (key[0, :, part].clone(), value[0, :, part].clone())
            mask = window_mask(torch.arange(length, device=query.device), length, options)
            causal = {"is_causal": True} if mask is None else {"attn_mask": mask}
            out[:, :, part] = F.scaled_dot_product_attention(
                query[:, :, part], key[:, :, part], value[:, :, part], scale=options.get("scaling"), enable_gqa=True, **causal
            )
        return out


class Rows:
    """Attention of one token of each row to all that the row has in the cache."""

    def __init__(self, cache, positions, length):
        self.cache = cache
        self.positions = positions
        self.rows = torch.arange(len(positions), device=positions.device)
        self.length = length
        self.masks = {}

    def attend(self, layer, query, key, value, options):
        count = len(self.rows)
        keys, values = self.cache.write(
            layer, self.rows, self.positions, key[0, :, :count].transpose(0, 1), value[0, :, :count].transpose(0, 1), self.length
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
            places = torch.arange(self.length, device=self.positions.device)
            seen = places <= self.positions[:, None]
            if window is not None:
                seen &= places > self.positions[:, None] - window
            self.masks[window] = torch.zeros(seen.shape, dtype=dtype, device=seen.device).masked_fill_(~seen, float("-inf"))[:, None, None]
        return self.masks[window]


def window_mask(places, length, options):
    window = options.get("sliding_window")
    if window is None or length <= window:
        return None
    apart = places[:, None] - places
    return (apart >= 0) & (apart < window)


class Attention:
    """What transformers calls in each layer; `of` is what the tokens of this step are."""

    of = None

    def __call__(self, module, query, key, value, attention_mask, dropout=0.0, scaling=None, **options):
        for name in ("softcap", "s_aux", "position_bias"):
            if options.get(name) is not None:
                raise ValueError(f"this sampler does not know the attention of this model ({name}): serve it with vLLM or SGLang")
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
