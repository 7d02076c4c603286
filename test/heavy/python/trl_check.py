"""What TRL makes of our exports and of our numbers. Takes a task as JSON, prints what it saw as JSON."""

import json
import os
import sys

# Libraries print to standard output, which is for the answer.
answer = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

import torch  # noqa: E402

torch.set_num_threads(1)

from datasets import Dataset, load_dataset  # noqa: E402
from tiny_model import model, tokenizer  # noqa: E402
from transformers import LlamaForCausalLM  # noqa: E402
from trl import DPOConfig, DPOTrainer, GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer  # noqa: E402

STEPS = 3
task = json.load(sys.stdin)
common = {
    "output_dir": task["folder"],
    "max_steps": STEPS,
    "learning_rate": 1e-2,
    "lr_scheduler_type": "constant",
    "logging_steps": 1,
    "report_to": "none",
    "save_strategy": "no",
    "use_cpu": True,
    "bf16": False,
    "disable_tqdm": True,
    "seed": 1,
}


def rows(path):
    kind = "parquet" if path.endswith(".parquet") else "json"
    return load_dataset(kind, data_files=path, split="train")


def losses(trainer):
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


def trained(trainer):
    """Runs the training, and says whether the weights moved."""
    before = {name: value.detach().clone() for name, value in trainer.model.named_parameters()}
    trainer.train()
    moved = any(not torch.equal(before[name], value) for name, value in trainer.model.named_parameters())
    return {"losses": losses(trainer), "moved": moved}


def sft(path):
    """Conversations with tools, as they are in the file; only what the assistant said is learned."""
    words = tokenizer()
    trainer = SFTTrainer(
        model=model(),
        processing_class=words,
        train_dataset=rows(path),
        args=SFTConfig(**common, per_device_train_batch_size=4, max_length=None, assistant_only_loss=True),
    )
    batch = next(iter(trainer.get_train_dataloader()))
    seen = [
        {"text": words.decode(ids[ids != words.pad_token_id]), "learned": words.decode(labels[labels != -100])}
        for ids, labels in zip(batch["input_ids"], batch["labels"], strict=True)
    ]
    return {"seen": seen, **trained(trainer)}


def verl(path):
    """Rows of tokens with a mask, for a trainer that takes tokens as they are."""
    masked = [
        {
            "input_ids": row["prompt_ids"] + row["response_ids"],
            "completion_mask": [0] * len(row["prompt_ids"]) + row["response_mask"],
        }
        for row in rows(path)
    ]
    trainer = SFTTrainer(
        model=model(),
        processing_class=tokenizer(),
        train_dataset=Dataset.from_list(masked),
        args=SFTConfig(**common, per_device_train_batch_size=len(masked), max_length=None, completion_only_loss=True),
    )
    seen = [
        [label for label in labels if label != -100]
        for batch in trainer.get_train_dataloader()
        for labels in batch["labels"].tolist()
    ]
    return {"learned": sorted(seen), **trained(trainer)}


def preference(path):
    """Pairs of conversations, as they are in the file."""
    words = tokenizer()
    trainer = DPOTrainer(
        model=model(),
        ref_model=model(),
        processing_class=words,
        train_dataset=rows(path),
        args=DPOConfig(**common, per_device_train_batch_size=2, max_length=None),
    )
    batch = next(iter(trainer.get_train_dataloader()))
    # The better ones come first, then the worse ones.
    learned = [
        words.decode(ids[mask.bool()]) for ids, mask in zip(batch["input_ids"], batch["completion_mask"], strict=True)
    ]
    return {"learned": learned, **trained(trainer)}


class Watched(GRPOTrainer):
    """Remembers what its loss was given."""

    def _compute_loss(self, model, inputs):
        self.given.append({key: value.tolist() for key, value in inputs.items() if torch.is_tensor(value)})
        return super()._compute_loss(model, inputs)


def grpo(path):
    """Our rows are what the rollout function returns: groups of rollouts, in their order."""
    found = rows(path).to_list()
    groups = {}
    for row in found:
        groups.setdefault(row["group_id"], []).append(row)
    size = len(next(iter(groups.values())))

    def rollouts(prompts, trainer):
        turn = {name: iter(sorted(group, key=lambda row: row["rollout"])) for name, group in groups.items()}
        chosen = [next(turn[prompt]) for prompt in prompts]
        return {key: [row[key] for row in chosen] for key in chosen[0]}

    trainer = Watched(
        model=model(),
        processing_class=tokenizer(),
        train_dataset=Dataset.from_list([{"prompt": name} for name in groups]),
        reward_funcs=lambda reward, **_: reward,
        rollout_func=rollouts,
        args=GRPOConfig(
            **common, per_device_train_batch_size=len(found), num_generations=size, beta=0.0, max_completion_length=64
        ),
    )
    trainer.given = []
    moved = trained(trainer)
    first = trainer.given[0]
    return {**moved, "first": first, "rewards": [log["reward"] for log in trainer.state.log_history if "reward" in log]}


def loss(case):
    """TRL's own loss of given log-probabilities, and its derivative by each of them."""
    tensor = lambda key: torch.tensor(case[key], dtype=torch.float64)  # noqa: E731
    logps = tensor("logProbs").requires_grad_()
    mask = torch.tensor(case["mask"])
    args = GRPOConfig(**common, per_device_train_batch_size=2, num_generations=2, **case["config"])
    prompts = Dataset.from_list([{"prompt": "a"}, {"prompt": "b"}])
    trainer = GRPOTrainer(
        model=shared_model, processing_class=words, train_dataset=prompts, reward_funcs=lambda **_: 0, args=args
    )
    trainer._get_per_token_logps_and_entropies = lambda *_, **__: (logps, torch.zeros_like(logps), None)
    trainer.model.eval()
    ones = torch.ones_like(mask)
    inputs = {
        **{"prompt_ids": ones[:, :1], "prompt_mask": ones[:, :1], "completion_ids": ones, "completion_mask": ones},
        **{"tool_mask": mask, "advantages": tensor("advantages"), "num_items_in_batch": mask.sum()},
    }
    if case["old"] is not None:
        inputs["old_per_token_logps"] = tensor("old")
    if case["sampling"] is not None:
        # As TRL computes it for the mode "token_truncate", when a server has sampled.
        trainer.use_vllm = trainer.vllm_importance_sampling_correction = True
        ratio = torch.exp(tensor("old") - tensor("sampling"))
        inputs["importance_sampling_ratio"] = torch.clamp(ratio, max=case["cap"])
    if case["reference"] is not None:
        inputs["ref_per_token_logps"] = tensor("reference")
    value = trainer._compute_loss(trainer.model, inputs)
    value.backward()
    return {"loss": value.item(), "byLogProb": logps.grad.tolist()}


words = tokenizer()
# TRL loads the reference model from where the model came from.
home = os.path.join(task["folder"], "model")
model().save_pretrained(home)
shared_model = LlamaForCausalLM.from_pretrained(home)
found = {
    "sft": sft(task["sft"]),
    "verl": verl(task["verl"]),
    "preference": preference(task["preference"]),
    "grpo": grpo(task["trl"]),
    "losses": [loss(case) for case in task["losses"]],
}
json.dump(found, answer)
answer.flush()
