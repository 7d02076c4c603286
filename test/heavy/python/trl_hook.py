"""GRPOTrainer takes three steps on rollouts of an agent behind a rollout server. Takes a task as JSON, prints what it saw as JSON."""

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

# Libraries print to standard output, which is for the answer.
answer = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

import torch  # noqa: E402

torch.set_num_threads(1)

from datasets import Dataset  # noqa: E402
from tiny_model import model, tokenizer  # noqa: E402
from trl import GRPOConfig, GRPOTrainer  # noqa: E402

task = json.load(sys.stdin)
sys.path.insert(0, task["hooks"])

import manyworlds_trl  # noqa: E402

STEPS, GROUPS, SIZE, TEMPERATURE = 3, 2, 4, 0.8
sampled = []


class Recorded(manyworlds_trl.Sampler):
    """Remembers what the model sampled, at the one place where it does."""

    def __call__(self, prompt, body):
        found = super().__call__(prompt, body)
        sampled[-1].append({"prompt": prompt, "ids": found.ids, "logprobs": found.logprobs})
        return found


manyworlds_trl.Sampler = Recorded


def babble(text, tools):
    """A random model never writes a call: about every second reply counts as one."""
    total = sum(map(ord, text))
    return ("", [("add", json.dumps({"a": total, "b": 1}))]) if total % 2 else (text, [])


rollouts = manyworlds_trl.rollout_func(
    task["url"],
    token=task["token"],
    tasks={
        "q0": {"id": "q0", "input": {"question": "1 + 1", "failing": 2}, "groundTruth": 0},
        "q1": {"id": "q1", "input": {"question": "twenty and twenty-two"}, "groundTruth": 10},
    },
    parse=babble,
    sampling={"max_tokens": 6},
    timeout=120,
)
returned = []


def recorded_rollouts(prompts, trainer):
    sampled.append([])
    returned.append(rollouts(prompts, trainer))
    return returned[-1]


class Vllm(BaseHTTPRequestHandler):
    """What of a vLLM server the hook and the agent call."""

    def do_GET(self):
        known = {"/v1/models": {"data": [{"id": "tiny"}]}}
        known["/server_info?config_format=json"] = {
            "vllm_config": {"model_config": {"logprobs_mode": "processed_logprobs"}}
        }
        self._answer(known[self.path])

    def do_POST(self):
        self._answer(vllm_model.complete(json.loads(self.rfile.read(int(self.headers["content-length"])))))

    def _answer(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def with_vllm():
    """A trainer with a vLLM server, as far as the hook looks at it: the agent calls that server."""
    global vllm_model
    sampler = Recorded(model().eval(), tokenizer())
    vllm_model = manyworlds_trl.ChatEndpoint(tokenizer(), sampler, parse=babble)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Vllm)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    trainer = SimpleNamespace(
        **{
            "use_vllm": True,
            "vllm_mode": "server",
            "temperature": 0.7,
            "max_completion_length": 6,
            "top_p": 1.0,
            "top_k": 0,
        },
        **{"min_p": None, "repetition_penalty": 1.0, "eos_token_ids": [2], "state": SimpleNamespace(global_step=0)},
        accelerator=SimpleNamespace(process_index=0),
        args=SimpleNamespace(vllm_server_base_url=f"http://127.0.0.1:{server.server_address[1]}", seed=1),
    )
    with sampler.serving():
        recorded_rollouts(["q1", "q1", "q0"], trainer)
    server.shutdown()


class Watched(GRPOTrainer):
    """Remembers what its loss was given, and what the model that is trained says of the same tokens."""

    def _compute_loss(self, model, inputs):
        row = {key: value.tolist() for key, value in inputs.items() if torch.is_tensor(value)}
        ids = torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], dim=1)
        mask = torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], dim=1)
        keep = inputs["completion_ids"].size(1)
        with torch.no_grad():
            logits = model(input_ids=ids, attention_mask=mask).logits[:, -keep - 1 : -1] / TEMPERATURE
            logps = torch.log_softmax(logits, -1).gather(-1, inputs["completion_ids"].unsqueeze(-1)).squeeze(-1)
        trained = inputs["completion_mask"] * inputs["tool_mask"]
        self.given.append(
            {**row, "difference": ((logps - inputs["sampling_per_token_logps"]).abs() * trained).max().item()}
        )
        return super()._compute_loss(model, inputs)


trainer = Watched(
    model=model(),
    processing_class=tokenizer(),
    train_dataset=Dataset.from_list([{"prompt": f"q{index}"} for index in range(GROUPS)]),
    reward_funcs=manyworlds_trl.reward_of_rollout,
    rollout_func=recorded_rollouts,
    args=GRPOConfig(
        output_dir=task["folder"],
        max_steps=STEPS,
        learning_rate=1e-2,
        logging_steps=1,
        report_to="none",
        save_strategy="no",
        use_cpu=True,
        bf16=False,
        disable_tqdm=True,
        seed=1,
        per_device_train_batch_size=GROUPS * SIZE,
        num_generations=SIZE,
        temperature=TEMPERATURE,
        beta=0.0,
        max_completion_length=64,
    ),
)
trainer.given = []
before = {name: value.detach().clone() for name, value in trainer.model.named_parameters()}
trainer.train()
rollouts.close()
with_vllm()
words = tokenizer()
found = {
    "moved": any(not torch.equal(before[name], value) for name, value in trainer.model.named_parameters()),
    "losses": [entry["loss"] for entry in trainer.state.log_history if "loss" in entry],
    "rewards": [entry["reward"] for entry in trainer.state.log_history if "reward" in entry],
    "given": trainer.given,
    "sampled": sampled,
    "returned": [{key: list(values) for key, values in one.items()} for one in returned],
    "between": [
        words.decode([id for id, own in zip(ids, mask, strict=True) if own == 0])
        for one in returned
        for ids, mask in zip(one["completion_ids"], one["env_mask"], strict=True)
    ],
}
json.dump(found, answer)
answer.flush()
