"""Serializes what was learned: `weights` are a PEFT adapter in one safetensors file; `state` also has the optimizer."""

import json

import torch

from lora_model import Refused

FORMAT = "manyworlds.lora.1"


def named(state):
    return {name: weight for name, weight in state.model.named_parameters() if weight.requires_grad}


def plain(tensor):
    """A copy on the CPU, which the next step does not change."""
    return tensor.detach().to("cpu", copy=True).contiguous()


def adapter_bytes(state):
    """Uses PEFT's names. There is only one metadata entry, because the order of several is not deterministic."""
    import safetensors.torch
    from peft import get_peft_model_state_dict

    tensors = {name: plain(tensor) for name, tensor in get_peft_model_state_dict(state.model).items()}
    return safetensors.torch.save(tensors, {"adapter_config": adapter_config(state)})


def adapter_config(state):
    config = state.model.peft_config["default"]
    # Sets have a different order in each process, but the same version must have the same bytes.
    given = {key: sorted(value) if isinstance(value, set) else value for key, value in config.to_dict().items()}
    targets = given.get("target_modules")
    given["target_modules"] = targets if isinstance(targets, str) else sorted(targets)
    # As PEFT writes it, because adapters are opened for inference.
    given["inference_mode"] = True
    base = state.settings["base"]
    given["base_model_name_or_path"] = base if isinstance(base, str) else base.get("gguf", "")
    return json.dumps(given, sort_keys=True, default=str)


def state_bytes(state):
    import safetensors.torch

    tensors, step = {}, 0
    for name, weight in named(state).items():
        tensors[f"weight/{name}"] = plain(weight)
        moments = state.optimizer.state.get(weight)
        if moments:
            step = int(moments["step"].item())
            tensors[f"mean/{name}"] = plain(moments["exp_avg"])
            tensors[f"square/{name}"] = plain(moments["exp_avg_sq"])
    return safetensors.torch.save(tensors, {FORMAT: json.dumps({"step": step})})


def load_state(state, data):
    tensors, metadata = read(data)
    about = metadata.get(FORMAT)
    if about is None:
        raise Refused("POLICY_INVALID", "these bytes are not the state of a LoRA learner, or they are damaged")
    step = json.loads(about)["step"]
    weights = named(state)
    kinds = ["weight", "mean", "square"] if step > 0 else ["weight"]
    # Everything is checked before anything is changed.
    check(tensors, {f"{kind}/{name}": weight for kind in kinds for name, weight in weights.items()})
    state.optimizer.state.clear()
    with torch.no_grad():
        for name, weight in weights.items():
            weight.copy_(tensors[f"weight/{name}"])
            if step > 0:
                state.optimizer.state[weight] = {
                    "step": torch.tensor(float(step)),
                    "exp_avg": tensors[f"mean/{name}"].to(weight.device),
                    "exp_avg_sq": tensors[f"square/{name}"].to(weight.device),
                }


def load_adapter(state, data):
    """Starts with published weights and a new optimizer."""
    from peft import get_peft_model_state_dict, set_peft_model_state_dict

    tensors, _ = read(data)
    check(tensors, get_peft_model_state_dict(state.model))
    set_peft_model_state_dict(state.model, tensors)
    state.optimizer.state.clear()


def read(data):
    import safetensors
    import safetensors.torch

    try:
        size = int.from_bytes(data[:8], "little")
        metadata = json.loads(data[8 : 8 + size]).get("__metadata__") or {}
        return safetensors.torch.load(data), metadata
    except (safetensors.SafetensorError, ValueError, AttributeError) as error:
        raise Refused(
            "POLICY_INVALID", f"these {len(data)} bytes are not safetensors, or they are damaged: {error}"
        ) from error


def check(tensors, expected):
    missing = sorted(expected.keys() - tensors.keys()) or sorted(tensors.keys() - expected.keys())
    if missing:
        raise Refused(
            "POLICY_INVALID",
            f"the weights are of another base model or other `targets`: {missing[0]} is only in one of them",
        )
    for name, tensor in tensors.items():
        if tensor.shape != expected[name].shape:
            shapes = f"{list(tensor.shape)} instead of {list(expected[name].shape)}"
            raise Refused(
                "POLICY_INVALID", f"the weights are of another base model or `rank`: the shape of {name} is {shapes}"
            )
