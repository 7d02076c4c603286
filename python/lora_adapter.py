"""What was learned, as bytes: `weights` are a PEFT adapter in one safetensors file, `state` has the optimizer too."""

import json

import torch

from lora_model import Refused

FORMAT = "manyworlds.lora.1"


def named(state):
    return {name: weight for name, weight in state.model.named_parameters() if weight.requires_grad}


def plain(tensor):
    """On the CPU, and not changed by the next step."""
    return tensor.detach().to("cpu", copy=True).contiguous()


def adapter_bytes(state):
    """The names are those of PEFT. One entry of metadata: the order of several is not always the same."""
    import safetensors.torch
    from peft import get_peft_model_state_dict

    tensors = {name: plain(tensor) for name, tensor in get_peft_model_state_dict(state.model).items()}
    return safetensors.torch.save(tensors, {"adapter_config": adapter_config(state)})


def adapter_config(state):
    config = state.model.peft_config["default"]
    # Sets have another order in each process; the same version must have the same bytes.
    given = {key: sorted(value) if isinstance(value, set) else value for key, value in config.to_dict().items()}
    targets = given.get("target_modules")
    given["target_modules"] = targets if isinstance(targets, str) else sorted(targets)
    # As PEFT writes it: whoever opens it acts.
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
        raise Refused("POLICY_INVALID", "these bytes are not the state of a LoRA learner")
    step = json.loads(about)["step"]
    weights = named(state)
    kinds = ["weight", "mean", "square"] if step > 0 else ["weight"]
    # All of it is compared before anything is changed.
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
    """Begins with weights that were published; the optimizer begins anew."""
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
        raise Refused("POLICY_INVALID", f"these {len(data)} bytes are damaged, or are no safetensors: {error}") from error


def check(tensors, expected):
    missing = sorted(expected.keys() - tensors.keys()) or sorted(tensors.keys() - expected.keys())
    if missing:
        raise Refused("POLICY_INVALID", f"they are of another base model or other `targets`: {missing[0]} is only in one")
    for name, tensor in tensors.items():
        if tensor.shape != expected[name].shape:
            shapes = f"{list(tensor.shape)}, and {list(expected[name].shape)} here"
            raise Refused("POLICY_INVALID", f"they are of another base model or `rank`: {name} is {shapes}")
