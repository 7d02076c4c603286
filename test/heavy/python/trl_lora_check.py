"""TRL's own loss of a model with a LoRA adapter, and its gradient. Takes a task as JSON, prints what it saw as JSON."""

import json
import os
import sys

# Libraries print to standard output, which is for the answer.
answer = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

import torch  # noqa: E402

torch.set_num_threads(1)

from datasets import Dataset  # noqa: E402
from safetensors.torch import load_file  # noqa: E402
from tiny_model import tokenizer  # noqa: E402
from transformers import AutoConfig, AutoModelForCausalLM  # noqa: E402
from trl import GRPOConfig, GRPOTrainer  # noqa: E402

task = json.load(sys.stdin)


def base_model():
    """The same random weights as the sidecar makes of the same seed. TRL loads the reference from where the model came from."""
    torch.manual_seed(task["seed"])
    home = os.path.join(task["folder"], "model")
    AutoModelForCausalLM.from_config(AutoConfig.for_model(**task["config"])).save_pretrained(home)
    return AutoModelForCausalLM.from_pretrained(home)


class WithAdapter(torch.nn.Module):
    """LoRA by its definition, W + alpha / rank · B A, without PEFT: so that PEFT is compared too."""

    def __init__(self, base, tensors):
        super().__init__()
        self.base, self.config, self.warnings_issued = base, base.config, {}
        self.tensors = {name: tensor.requires_grad_() for name, tensor in tensors.items()}

    def forward(self, **inputs):
        weights = dict(self.base.named_parameters())
        for name, b in self.tensors.items():
            if "lora_B" in name:
                a = self.tensors[name.replace("lora_B", "lora_A")]
                plain = name.removeprefix("base_model.model.").replace("lora_B.weight", "weight")
                weights[plain] = weights[plain].detach() + task["alpha"] / task["rank"] * (b @ a)
        return torch.func.functional_call(self.base, weights, kwargs=inputs)


def columns(rows):
    """Prompts are padded on the left, completions on the right, as TRL does."""
    wide, long = max(len(row["prompt"]) for row in rows), max(len(row["completion"]) for row in rows)

    def right(values, fill=0):
        return torch.tensor([[*value, *[fill] * (long - len(value))] for value in values])

    prompts = [[0] * (wide - len(row["prompt"])) + row["prompt"] for row in rows]
    masks = [[0] * (wide - len(row["prompt"])) + [1] * len(row["prompt"]) for row in rows]
    return {
        "prompt_ids": torch.tensor(prompts),
        "prompt_mask": torch.tensor(masks),
        "completion_ids": right([row["completion"] for row in rows]),
        "completion_mask": right([[1] * len(row["completion"]) for row in rows]),
        "tool_mask": right([row["mask"] for row in rows]),
        "advantages": torch.tensor([row["advantage"] for row in rows]),
        "old_per_token_logps": right([row["old"] for row in rows], 0.0),
        "num_items_in_batch": torch.tensor(sum(sum(row["mask"]) for row in rows)),
    }


def log_probs(trainer, model, inputs):
    ids = torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], 1)
    mask = torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], 1)
    with torch.no_grad():
        return trainer._get_per_token_logps_and_entropies(model, ids, mask, inputs["completion_ids"].size(1))[0]


def compared(case):
    args = GRPOConfig(
        output_dir=task["folder"],
        **{"report_to": "none", "use_cpu": True, "bf16": False, "temperature": task["temperature"]},
        **{"per_device_train_batch_size": 2, "num_generations": 2, **case},
    )
    prompts = Dataset.from_list([{"prompt": "a"}, {"prompt": "b"}])
    trainer = GRPOTrainer(
        model=base, processing_class=words, train_dataset=prompts, reward_funcs=lambda **_: 0, args=args
    )
    trainer.model.eval()
    inputs = columns(task["rows"])
    if args.beta != 0:
        inputs["ref_per_token_logps"] = log_probs(trainer, base, inputs)
    value = trainer._compute_loss(model, inputs)
    gradients = torch.autograd.grad(value, list(model.tensors.values()))
    return {
        "loss": value.item(),
        "gradient": {n: g.flatten().tolist() for n, g in zip(model.tensors, gradients, strict=True)},
    }


words = tokenizer()
base = base_model()
model = WithAdapter(base, load_file(task["adapter"]))
json.dump([compared(case) for case in task["cases"]], answer)
answer.flush()
