"""Decodes many requests together so that each gets the same bits, whatever its neighbors are: docs/decisions/0025-exact-sampling.md.

A step of the model sees one flat list of tokens, whole prompts or the last token of each row, padded to a multiple of TILE. Matrix
products then give each token the same bits wherever it stands. Only attention knows which tokens belong together: prompts attend
each on its own, rows to a cache that is padded behind with masked zeros, to a multiple of LENGTH.
"""

import contextlib

import torch
import torch.nn.functional as F

import lora_draws

TILE = 16
LENGTH = 64
# Prompts that are read together. More do not make it faster, and need more memory.
PROMPT_TOKENS = 512
MOST_ROWS = 128
CACHE_BYTES = 2 << 30
ATTENTION = "manyworlds_exact"


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

    AttentionInterface.register(ATTENTION, attention)
    config = base_of(model).config
    before = config._attn_implementation
    config._attn_implementation = ATTENTION
    try:
        yield
    finally:
        config._attn_implementation = before
        attention.of = None


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


class Decoder:
    """Rows that are decoded together. They may join at any time, and leave when they are done."""

    def __init__(self, model, stops):
        self.model = model
        self.stops = stops
        self.cache = Cache()
        self.rows = []
        self.waiting = []

    @property
    def busy(self):
        return bool(self.rows or self.waiting)

    def advance(self):
        """Reads prompts that wait, if there is room, and draws a token for each row. Those that are done."""
        done = []
        # Not one by one, as rows leave: prompts are read faster together.
        if self.waiting and len(self.rows) <= MOST_ROWS // 2:
            count = self.room()
            done += self.add(self.waiting[:count])
            del self.waiting[:count]
        return done + self.step() if self.rows else done

    def room(self):
        """How many of those that wait have room in the cache; one at least, if it is empty."""
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
        """Nobody waits for these."""
        self.waiting = [row for row in self.waiting if row.id not in ids]
        self.keep([row.id not in ids for row in self.rows])

    def add(self, rows):
        """Reads their prompts, each once, and draws their first tokens. Those that are done with one."""
        read = {}
        if not rows:
            return []
        for some in packs(list(dict.fromkeys(row.prompt for row in rows))):
            of = Prompts([len(prompt) for prompt in some])
            tokens = [token for prompt in some for token in prompt]
            positions = [place for prompt in some for place in range(len(prompt))]
            ends = torch.tensor([len(prompt) for prompt in some]).cumsum(0) - 1
            logits = logits_of(self.model, tokens, positions, ends, of)
            for place, prompt in enumerate(some):
                read[prompt] = (of.kept[place], logits[place])
        logits = torch.stack([read[row.prompt][1] for row in rows])
        lora_draws.draw(F.pad(logits, (0, 0, 0, up_to(TILE, len(rows)) - len(rows))), rows, self.stops)
        alive = [row for row in rows if row.finish is None]
        if alive:
            self.cache.add([read[row.prompt][0] for row in alive], up_to(LENGTH, 1 + max(row.length for row in alive)))
            self.rows += alive
        return [row for row in rows if row.finish is not None]

    def step(self):
        """A token for each row. Those that are done."""
        positions = [row.length - 1 for row in self.rows]
        of = Rows(self.cache, torch.tensor(positions, device=base_of(self.model).device), up_to(LENGTH, 1 + max(positions)))
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


def packs(prompts):
    """In turns of at most PROMPT_TOKENS, or one prompt that is longer."""
    some, size = [], 0
    for prompt in prompts:
        if some and size + len(prompt) > PROMPT_TOKENS:
            yield some
            some, size = [], 0
        some.append(prompt)
        size += len(prompt)
    if some:
        yield some
