"""Adapters by name, for sampling. In a training process, the adapter being trained is not affected."""

import contextlib
import json
import warnings

import torch

from lora_adapter import check, read
from lora_model import Refused


class Served:
    def __init__(self, state):
        self.state = state
        # PEFT uses these names for modules, so they must not contain dots.
        self.keys = {}
        self.count = 0

    def load(self, name, data):
        from peft import PeftModel, get_peft_model_state_dict, set_peft_model_state_dict

        tensors, metadata = read(data)
        config = config_in(metadata)
        config.inference_mode = True
        self.unload(name)
        key = f"sampled_{self.count}"
        self.count += 1
        # New weights are drawn before they are replaced; this must not affect the random numbers of a
        # training.
        with torch.random.fork_rng(devices=[]), self.unchanged():
            if isinstance(self.state.model, PeftModel):
                self.state.model.add_adapter(key, config)
            else:
                self.state.model = PeftModel(self.state.model, config, adapter_name=key).eval()
            try:
                check(tensors, get_peft_model_state_dict(self.state.model, adapter_name=key))
                set_peft_model_state_dict(self.state.model, tensors, adapter_name=key)
            except BaseException:
                self.delete(key)
                raise
        self.keys[name] = key

    def unload(self, name):
        key = self.keys.pop(name, None)
        if key is not None:
            with self.unchanged():
                self.delete(key)

    def delete(self, key):
        model = self.state.model
        if list(model.peft_config) == [key]:
            # PEFT needs at least one adapter.
            self.state.model = model.unload()
            return
        with warnings.catch_warnings(action="ignore"):
            model.delete_adapter(key)

    @contextlib.contextmanager
    def using(self, name):
        """None: the base model."""
        if name is not None and name not in self.keys:
            known = ", ".join(sorted(self.keys)) or "none"
            raise Refused("POLICY_INVALID", f"adapter {name} not found; loaded: {known}")
        model = self.state.model
        if not hasattr(model, "disable_adapter"):
            yield model
        elif name is None:
            with model.disable_adapter():
                yield model
        else:
            with self.unchanged():
                model.set_adapter(self.keys[name], inference_mode=True)
                yield model

    @contextlib.contextmanager
    def unchanged(self):
        """Restores the active adapter and the trainable parameters afterwards."""
        model = self.state.model
        if "default" not in getattr(model, "peft_config", {}):
            yield
            return
        trained = [weight for weight in model.parameters() if weight.requires_grad]
        try:
            yield
        finally:
            model.set_adapter("default")
            for weight in trained:
                weight.requires_grad_(True)


def config_in(metadata):
    """PEFT's configuration of an adapter, without fields that only a newer PEFT has."""
    from dataclasses import fields

    from peft import LoraConfig

    given = metadata.get("adapter_config")
    if given is None:
        raise Refused("POLICY_INVALID", "these are not the weights of a LoRA policy: adapter_config is missing")
    known = {field.name for field in fields(LoraConfig) if field.init}
    return LoraConfig(**{name: value for name, value in json.loads(given).items() if name in known})
