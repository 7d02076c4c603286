"""Log-probabilities of samples, from the model as it is or from its base."""

import contextlib
import inspect
import traceback

import numpy as np
import torch

from lora_sheets import sheets_of

# How far packed and separate log-probabilities of a model may be apart before packing is given up. Float32 gives 1e-5, bf16 .1.
PACKING_ERROR = {torch.float32: 1e-3, torch.float64: 1e-6}
LOOSE_PACKING_ERROR = 0.3


class Sampled:
    """Of the samples of a sheet: log-probabilities, and the entropy of what they were drawn from."""

    def __init__(self, logits, targets, temperature):
        scaled = logits.float() / temperature[:, None]
        # What follows is a number per sample: on the CPU, in float64, which not every device has.
        self.log_probs = -torch.nn.functional.cross_entropy(scaled, targets, reduction="none").cpu().double()
        self.scaled = scaled

    def entropy(self, with_gradient):
        with contextlib.nullcontext() if with_gradient else torch.no_grad():
            log_probs = torch.log_softmax(self.scaled, -1)
            return -(log_probs.exp() * log_probs).sum(-1).cpu().double()


def sampled(state, rows, sheet):
    logits = logits_of(state, sheet)
    device = logits.device
    temperature = torch.from_numpy(rows.temperature[sheet.samples]).to(device, torch.float32)
    return Sampled(logits, torch.from_numpy(sheet.targets).to(device), temperature)


def logits_of(state, sheet):
    """Only where they are needed: vocabulary times length is most of the memory."""
    kept = np.unique(sheet.places)
    inputs = {"input_ids": torch.from_numpy(sheet.ids).to(state.device), "use_cache": False}
    if sheet.positions is not None:
        inputs["position_ids"] = torch.from_numpy(sheet.positions).to(state.device)
    if sheet.mask is not None:
        inputs["attention_mask"] = additive(sheet.mask, state)
    if state.keeps_logits:
        inputs["logits_to_keep"] = torch.from_numpy(kept).to(state.device)
    logits = state.model(**inputs).logits
    places = np.searchsorted(kept, sheet.places) if state.keeps_logits else sheet.places
    return logits[torch.from_numpy(sheet.lines), torch.from_numpy(places)]


def additive(mask, state):
    zeros = torch.zeros(1, 1, *mask.shape, dtype=state.dtype)
    return zeros.masked_fill(~mask, torch.finfo(state.dtype).min).to(state.device)


@torch.no_grad()
def log_probs_of(state, rows, packed):
    """Of all samples, in their order."""
    found = np.zeros(rows.count())
    for sheet in sheets_of(rows, packed, state.vocabulary):
        found[sheet.samples] = sampled(state, rows, sheet).log_probs.numpy()
    return found


def reference(state):
    """Inside of it, the model is its base. Without a gradient."""
    stack = contextlib.ExitStack()
    stack.enter_context(torch.no_grad())
    stack.enter_context(state.model.disable_adapter())
    return stack


def takes_logits_to_keep(model):
    return "logits_to_keep" in inspect.signature(model.get_base_model().forward).parameters


def packing_limit(state, asked):
    """How many tokens a packed sequence may have; 0: this model cannot be packed, because it looks at more than mask and positions
    say (recurrent and convolutional layers), or at less (positions that are counted by itself)."""
    if not asked:
        return 0
    limit = window_of(state.model.config) or 1 << 30
    if limit < SMALLEST_WINDOW:
        return 0
    try:
        error = apart(state)
    except Exception:
        # Some kernels refuse masks of our own.
        traceback.print_exc()
        return 0
    # A NaN is not below it either.
    return limit if error < PACKING_ERROR.get(state.dtype, LOOSE_PACKING_ERROR) else 0


SMALLEST_WINDOW = 64


def window_of(config):
    """A mask of our own replaces that of a sliding window, which is right only for what is no longer than the window."""
    if getattr(config, "use_sliding_window", True) is False:
        return None
    return getattr(config, "sliding_window", None)


def apart(state):
    """How far packed log-probabilities are from those of rows that are computed one by one."""
    rows = TrialRows(state.vocabulary)
    return np.abs(log_probs_of(state, rows, 1 << 30) - log_probs_of(state, rows, 0)).max()


class TrialRows:
    """Two rows that share a prompt, and one that does not: what a model must keep apart."""

    def __init__(self, vocabulary):
        draw = np.random.default_rng(1)
        prompt = draw.integers(0, vocabulary, 6)
        self.ids = [np.concatenate([prompt, draw.integers(0, vocabulary, 5)]) for _ in range(2)]
        self.ids.append(draw.integers(0, vocabulary, 9))
        self.samples = [np.arange(6, 11), np.arange(6, 11), np.arange(4, 9)]
        self.begins = np.array([0, 5, 10, 15])
        self.temperature = np.ones(15)

    def count(self):
        return 15
