"""Log-probabilities of samples, from the current model or from its base model."""

import contextlib
import inspect
import traceback

import numpy as np
import torch

from lora_sheets import sheets_of

# Above this difference between packed and separate log-probabilities, packing is disabled. Float32 gives
# 1e-5, bf16 .1.
PACKING_ERROR = {torch.float32: 1e-3, torch.float64: 1e-6}
LOOSE_PACKING_ERROR = 0.3


class Sampled:
    """Log-probabilities of the samples of a sheet, and the entropy of their distributions."""

    def __init__(self, logits, targets, temperature):
        scaled = logits.float() / temperature[:, None]
        # The rest has one number per sample: on the CPU in float64, which not every device supports.
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
    """Computes logits only where they are needed, because vocabulary times length dominates memory."""
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
    """Of all samples, in order."""
    found = np.zeros(rows.count())
    for sheet in sheets_of(rows, packed, state.vocabulary):
        found[sheet.samples] = sampled(state, rows, sheet).log_probs.numpy()
    return found


def reference(state):
    """Within this context, the model is its base model, without gradients."""
    stack = contextlib.ExitStack()
    stack.enter_context(torch.no_grad())
    stack.enter_context(state.model.disable_adapter())
    return stack


def takes_logits_to_keep(model):
    return "logits_to_keep" in inspect.signature(model.get_base_model().forward).parameters


def packing_limit(state, asked):
    """The maximum number of tokens of a packed sequence; 0 if this model cannot be packed, because it depends on more than mask
    and positions (recurrent and convolutional layers) or ignores them (positions that it counts itself)."""
    if not asked:
        return 0
    limit = window_of(state.model.config) or 1 << 30
    if limit < SMALLEST_WINDOW:
        return 0
    try:
        error = apart(state)
    except Exception:  # noqa: BLE001 - some kernels refuse custom masks, each with an exception of its own
        # Some kernels do not support custom masks.
        traceback.print_exc()
        return 0
    # NaN is not below it either.
    return limit if error < PACKING_ERROR.get(state.dtype, LOOSE_PACKING_ERROR) else 0


SMALLEST_WINDOW = 64


def window_of(config):
    """A custom mask replaces that of a sliding window, so sequences must not be longer than the window."""
    if getattr(config, "use_sliding_window", True) is False:
        return None
    return getattr(config, "sliding_window", None)


def apart(state):
    """The difference between packed log-probabilities and those of rows computed one by one."""
    rows = TrialRows(state.vocabulary)
    return np.abs(log_probs_of(state, rows, 1 << 30) - log_probs_of(state, rows, 0)).max()


class TrialRows:
    """Two rows that share a prompt, and one that does not, which a model must keep apart."""

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
