"""The training half of the sidecar: gradients of rows, optimizer steps, and checkpoints."""

import math

import numpy as np
import torch

from lora_adapter import adapter_bytes, load_adapter, load_state, state_bytes
from lora_logprobs import log_probs_of, reference, sampled
from lora_losses import Rule, Samples, policy_loss, sampled_kl
from lora_model import Refused
from lora_rows import Rows
from lora_sheets import sheets_of
from lora_tally import Tally


def ops(state):
    return {
        "forward": lambda args, parts: forward(state, args, parts),
        "forwardBackward": lambda args, parts: forward_backward(state, args, parts),
        "optimStep": lambda args, _: optim_step(state, args),
        "gradient": lambda *_: gradient(state),
        "weights": lambda *_: ({}, [adapter_bytes(state)]),
        "state": lambda *_: ({}, [state_bytes(state)]),
        "load": lambda _, parts: load(state, parts[0], load_state),
        "loadWeights": lambda _, parts: load(state, parts[0], load_adapter),
    }


def read_rows(state, parts, with_loss):
    if state.optimizer is None:
        raise Refused("LEARNER_INVALID", "the model is not open for training; call `open` with the role 'train' first")
    rows = Rows(parts, with_loss)
    rows.check_ids(state.vocabulary)
    return rows


def forward(state, args, parts):
    rows = read_rows(state, parts, with_loss=False)
    if args["of"] == "reference":
        with reference(state):
            found = log_probs_of(state, rows, state.packed)
    else:
        found = log_probs_of(state, rows, state.packed)
    return {}, [rows.per_token(found)]


def forward_backward(state, args, parts):
    rows, rule = read_rows(state, parts, with_loss=True), Rule(args["rule"])
    for sheet in sheets_of(rows, state.packed, state.vocabulary):
        add_gradient(state, rows, sheet, rule)
    return finite(state.tally.metrics())


def add_gradient(state, rows, sheet, rule):
    """Adds the gradient of the weighted sum of losses; micro-batches affect only the last bits."""
    base = None
    if rule.kl > 0:
        with reference(state):
            base = sampled(state, rows, sheet).log_probs
    found = sampled(state, rows, sheet)
    samples = Samples(found.log_probs, rows, sheet, rule)
    policy, clipped = policy_loss(samples, rule)
    entropy = found.entropy(with_gradient=rule.entropy > 0)
    kl = None if base is None else sampled_kl(samples, base, rule)
    loss = policy - rule.entropy * entropy
    total = samples.weight * (loss if kl is None else loss + rule.kl * kl)
    total.sum().backward()
    state.tally.add(samples, policy, clipped, entropy, kl, total)


def finite(metrics):
    for name, value in metrics.items():
        if not math.isfinite(value):
            raise Refused(
                "LEARNER_FAILED",
                f"`{name}` is {value}, not a finite number; lower the learning rate, or set `clipNorm`",
            )
    return metrics


def trained(state):
    return state.optimizer.param_groups[0]["params"]


def optim_step(state, args):
    weights = trained(state)
    for weight in weights:
        # A batch without weight is a step too, as with other cores.
        weight.grad = torch.zeros_like(weight) if weight.grad is None else weight.grad
    norm = torch.linalg.vector_norm(
        torch.stack([torch.linalg.vector_norm(weight.grad).cpu().double() for weight in weights])
    ).item()
    if not math.isfinite(norm):
        begin_gradient(state)
        raise Refused(
            "LEARNER_FAILED", f"the gradient norm is {norm}, not a finite number; the weights were not changed"
        )
    clip_norm = args.get("clipNorm") or math.inf
    scale = clip_norm / norm if norm > clip_norm else 1.0
    if scale != 1.0:
        for weight in weights:
            weight.grad.mul_(scale)
    state.optimizer.param_groups[0]["lr"] = args["lr"]
    state.optimizer.step()
    begin_gradient(state)
    for weight in weights:
        if not torch.isfinite(weight).all():
            raise Refused(
                "LEARNER_FAILED", f"a weight is not finite after an optimizer step with lr {args['lr']}; lower `lr`"
            )
    return {"gradientNorm": norm, "gradientScale": scale}


def begin_gradient(state):
    state.optimizer.zero_grad(set_to_none=True)
    state.tally = Tally()


def gradient(state):
    """The accumulated gradient, for tests."""
    names = [name for name, weight in state.model.named_parameters() if weight.requires_grad]
    parts = [weight.grad if weight.grad is not None else torch.zeros_like(weight) for weight in trained(state)]
    return {"names": names}, [part.cpu().numpy().astype(np.float64) for part in parts]


def load(state, data, how):
    how(state, data)
    begin_gradient(state)
    return {}
