"""Tests whether, on this machine, a request gets the same bits regardless of its batch. This depends on the kernels."""

import torch
import torch.nn.functional as F

from lora_attention import base_of, exact_attention
from lora_decoding import Decoder
from lora_draws import Row, Stops
from lora_prompts import TILE

# All layers have the same shapes, so two are enough.
LAYERS = 2
PROMPTS = (1, 5, 17, 40, 63, 70, 130)
TOKENS = 3
# The allowed difference from the plain model, which sums in another order.
NEAR = 1e-2


def is_exact(model, rank):
    config = base_of(model).config
    layers = config.num_hidden_layers
    # Transformers models run this many layers.
    config.num_hidden_layers = min(layers, LAYERS)
    try:
        return adapters_exact(model, rank) and rows_exact(model)
    finally:
        config.num_hidden_layers = layers


def adapters_exact(model, rank):
    """The two matrix products of each adapter, in each shape of the model."""
    generator = torch.Generator().manual_seed(0)
    shapes = {tuple(part.weight.shape) for part in base_of(model).modules() if isinstance(part, torch.nn.Linear)}
    for wide, narrow in {(size, rank) for shape in shapes for size in shape}:
        for inner, outer in ((wide, narrow), (narrow, wide)):
            weight = torch.randn(outer, inner, generator=generator).to(base_of(model).device)
            tokens = torch.randn(20 * TILE, inner, generator=generator).to(base_of(model).device)
            alone = F.linear(tokens[:TILE], weight)
            if not all(torch.equal(F.linear(tokens[: n * TILE], weight)[:TILE], alone) for n in (2, 3, 7, 20)):
                return False
    return True


def rows_exact(model):
    generator = torch.Generator().manual_seed(1)
    vocabulary = base_of(model).config.get_text_config().vocab_size

    def random(n):
        return torch.randint(0, vocabulary, (n,), generator=generator).tolist()

    # Half of each prompt is the same, because shared prefixes must not change bits either.
    shared = random(max(PROMPTS))
    prompts = [(*shared[: n // 2], *random(n - n // 2)) for n in PROMPTS]

    def rows(places):
        return [Row(prompts[n], {"seed": n, "maxTokens": TOKENS}, 1 << 20) for n in places]

    everyone = range(len(prompts))
    alone = [outcome(model, [row])[0] for row in rows(everyone)]
    for places in (list(everyone), [*reversed(everyone)] * 4, [5, 1, 1, 6]):
        if outcome(model, rows(places)) != [alone[n] for n in places]:
            return False
    check_plain(model, prompts[3], alone[3])
    return True


def outcome(model, rows):
    with exact_attention(model):
        decoder = Decoder(model, Stops((), None))
        # Half of them join later.
        half = (len(rows) + 1) // 2
        for some in (rows[:half], rows[half:]):
            if some:
                decoder.add(some)
                decoder.step()
        while decoder.rows:
            decoder.step()
    return [(row.tokens, row.log_probs) for row in rows]


def check_plain(model, prompt, outcome):
    """A model with a different kind of attention would be sampled wrongly without anyone noticing."""
    tokens, log_probs = outcome
    ids = torch.tensor([[*prompt, *tokens]], device=base_of(model).device)
    plain = torch.log_softmax(model(input_ids=ids, use_cache=False).logits[0, len(prompt) - 1 : -1].float(), -1)
    apart = (plain[torch.arange(len(tokens)), torch.tensor(tokens)].cpu() - torch.tensor(log_probs)).abs().max()
    if not apart < NEAR:
        raise ValueError(
            f"this sampler computes this model differently than transformers (log-probabilities differ by {apart:.3g}); serve it with vLLM or SGLang"
        )
