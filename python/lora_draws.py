"""Draws the next token of each row, with random numbers that depend only on the row's seed and position."""

import hashlib
import struct

import torch

# Few enough bits that u * sum stays below the sum.
BITS = 40


class Row:
    """One request: its parameters and its tokens so far."""

    def __init__(self, prompt, options, context):
        self.id = options.get("id")
        self.prompt = prompt
        self.seed = options["seed"]
        self.temperature = options.get("temperature", 1.0)
        self.top_p = options.get("topP") or 1.0
        self.top_k = options.get("topK") or 0
        self.min_p = options.get("minP") or 0.0
        self.most = min(options["maxTokens"], context - len(prompt))
        self.stop_ids = frozenset(options.get("stopIds") or ())
        self.stop_texts = options.get("stopTexts") or []
        self.tokens = []
        self.log_probs = []
        # Whether top_p, top_k or min_p removed tokens.
        self.truncated = False
        # 'stop' or 'length' when the row is finished.
        self.finish = None

    @property
    def length(self):
        return len(self.prompt) + len(self.tokens)

    @property
    def most_length(self):
        return len(self.prompt) + self.most

    @property
    def truncates(self):
        return self.temperature > 0 and (self.top_p < 1 or self.top_k > 0 or self.min_p > 0)


class Stops:
    """`texts`: stop texts, which are searched for in the last tokens."""

    def __init__(self, ids, tokenizer):
        self.ids = frozenset(ids)
        self.tokenizer = tokenizer

    def ends(self, row):
        last = row.tokens[-1]
        if last in self.ids or last in row.stop_ids:
            return True
        if not row.stop_texts:
            return False
        # A token has at least one byte, a character at most four.
        window = 4 * max(len(text) for text in row.stop_texts) + 8
        tail = self.tokenizer.decode(row.tokens[-window:], skip_special_tokens=True)
        return any(text in tail for text in row.stop_texts)


def uniform(seed, place):
    digest = hashlib.blake2b(struct.pack("<QQ", seed & (2**64 - 1), place), digest_size=8).digest()
    return ((int.from_bytes(digest, "little") >> (64 - BITS)) + 0.5) / 2**BITS


def draw(logits, rows, stops):
    """`logits` may have additional rows as padding."""
    heat = torch.ones(len(logits), 1, dtype=logits.dtype)
    heat[: len(rows), 0] = torch.tensor([row.temperature or 1.0 for row in rows])
    scaled = logits / heat.to(logits.device)
    log_probs = torch.log_softmax(scaled, -1)
    for place, row in enumerate(rows):
        if row.truncates:
            log_probs[place] = truncated(log_probs[place], row)
    picks = picked(log_probs, rows)
    chosen = log_probs.gather(1, picks[:, None])[:, 0]
    if not torch.isfinite(chosen[: len(rows)]).all():
        raise ValueError(
            "the model returned probabilities that are not finite; the adapter or the base model is damaged"
        )
    for row, token, log_prob in zip(rows, picks.tolist(), chosen.tolist(), strict=False):
        row.tokens.append(token)
        row.log_probs.append(log_prob)
        if stops.ends(row):
            row.finish = "stop"
        elif len(row.tokens) >= row.most:
            row.finish = "length"


def picked(log_probs, rows):
    """Draws by the inverse of the cumulative distribution; at temperature 0, takes the most probable token."""
    sums = log_probs.exp().cumsum(-1, dtype=torch.float64)
    numbers = torch.zeros(len(log_probs), 1, dtype=torch.float64)
    numbers[: len(rows), 0] = torch.tensor([uniform(row.seed, len(row.tokens)) for row in rows], dtype=torch.float64)
    picks = torch.searchsorted(sums, numbers.to(sums.device) * sums[:, -1:], right=True)[:, 0]
    # Only if the sums are NaN; the caller then finds that the token has no probability.
    picks.clamp_(max=log_probs.shape[1] - 1)
    greedy = [place for place, row in enumerate(rows) if row.temperature == 0]
    if greedy:
        picks[greedy] = log_probs[greedy].argmax(-1)
    return picks


def truncated(log_probs, row):
    """Log-probabilities after top_k, top_p and min_p, in this order, renormalized."""
    order = torch.sort(log_probs, descending=True, stable=True)
    kept = order.values.exp()
    count = len(kept)
    if row.top_k > 0:
        count = min(count, row.top_k)
    if row.top_p < 1:
        share = kept[:count] / kept[:count].sum()
        # The token that crosses the limit is kept.
        before = share.cumsum(-1) - share
        count = max(1, int((before < row.top_p).sum()))
    if row.min_p > 0:
        count = max(1, min(count, int((kept >= row.min_p * kept[0]).sum())))
    if count == len(kept):
        return log_probs
    row.truncated = True
    left = torch.full_like(log_probs, float("-inf"))
    best = order.indices[:count]
    left[best] = torch.log_softmax(log_probs[best], -1)
    return left
