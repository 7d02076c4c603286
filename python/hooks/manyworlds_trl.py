"""TRL's GRPOTrainer with rollouts of a manyworlds agent.

    from manyworlds_trl import reward_of_rollout, rollout_func

    trainer = GRPOTrainer(
        model=…,
        train_dataset=Dataset.from_list([{"prompt": "q1"}, …]),
        reward_funcs=reward_of_rollout,
        rollout_func=rollout_func("http://127.0.0.1:8700", tasks={"q1": {"input": …, "groundTruth": …}, …}),
    )

With `use_vllm=True, vllm_mode="server"`, the agent calls the trainer's vLLM server. Otherwise it calls the trainer's own
model through an endpoint in this process, which works for a single process and small models. Written for TRL 1.16.
"""

import contextlib
import itertools
import json
import logging
import urllib.request

from manyworlds_endpoint import ChatEndpoint, hermes_calls
from manyworlds_rollouts import RolloutClient
from manyworlds_sampler import Sampler

logger = logging.getLogger("manyworlds")


def reward_of_rollout(reward, **_):
    """Returns the rewards of the rollouts. None: the rollout failed, or its reward is unknown; TRL gives it no advantage."""
    return reward


def rollout_func(url, *, tasks=None, token=None, token_file=None, ca_file=None, timeout=3600.0, **options):
    """A `rollout_func` for GRPOTrainer.

    `tasks`: the task of each prompt, `{"input", "groundTruth"?, "metadata"?, "id"?}`, as a dict or a function. Default: the
    prompt is the input; for a list of messages, the content of the last one.
    """
    return Rollouts(
        RolloutClient(url, token=token, token_file=token_file, ca_file=ca_file, timeout=timeout), tasks, **options
    )


class Rollouts:
    """A `rollout_func` of TRL."""

    def __init__(
        self, client, tasks, *, sampling=None, parse=hermes_calls, host="127.0.0.1", vllm_api_key=None, batch=64
    ):
        """`sampling` overrides the trainer's sampling settings. `parse`, `host`, `batch` configure the endpoint in this process."""
        self.client, self.tasks, self.sampling, self.parse = client, tasks, sampling or {}, parse
        self.host, self.vllm_api_key, self.batch = host, vllm_api_key, batch
        self.calls, self._sampler, self._endpoint = 0, None, None

    def __call__(self, prompts, trainer):
        groups = [(prompt, len(list(same))) for prompt, same in itertools.groupby(prompts)]
        rows = [None] * len(groups)
        with self._model(trainer) as model:
            for count in sorted({count for _, count in groups}):
                indexes = [index for index, (_, own) in enumerate(groups) if own == count]
                answer = self._ask([groups[index][0] for index in indexes], count, model, trainer)
                for index, group in zip(indexes, answer["groups"], strict=True):
                    rows[index] = [{**_row(rollout, trainer), "run": answer["run"]} for rollout in group["rollouts"]]
        found = [row for group in rows for row in group]
        _report(found)
        return {key: [row[key] for row in found] for key in found[0]}

    def _ask(self, prompts, count, model, trainer):
        self.calls += 1
        step, process = trainer.state.global_step, trainer.accelerator.process_index
        # Every call of every process of a training has a different seed.
        seed = hash((trainer.args.seed, step, self.calls, process)) & 0x7FFFFFFF
        sampling = {**_sampling(trainer), **self.sampling}
        return self.client.rollouts(
            _with_own_ids([self._task(prompt) for prompt in prompts]),
            rollouts=count,
            model=model,
            seed=seed,
            sampling=sampling,
        )

    def _task(self, prompt):
        if callable(self.tasks):
            return self.tasks(prompt)
        if self.tasks is not None:
            return self.tasks[prompt]
        return {"input": prompt[-1]["content"] if isinstance(prompt, list) else prompt}

    @contextlib.contextmanager
    def _model(self, trainer):
        """The model that the agent calls during the rollouts."""
        if getattr(trainer, "use_vllm", False):
            yield self._vllm(trainer)
            return
        if trainer.accelerator.num_processes > 1:
            raise RuntimeError(
                "with several processes, set use_vllm=True and vllm_mode='server'; the endpoint here serves only one process"
            )
        model = trainer.accelerator.unwrap_model(trainer.model)
        if self._sampler is None or self._sampler.model is not model:
            self.close()
            self._sampler = Sampler(model, trainer.processing_class, batch=self.batch, seed=trainer.args.seed)
            self._endpoint = ChatEndpoint(self._sampler.tokenizer, self._sampler, parse=self.parse, host=self.host)
        training = model.training
        model.eval()
        try:
            with self._sampler.serving():
                yield self._endpoint.described()
        finally:
            self._endpoint.forget()
            model.train(training)

    def close(self):
        """Closes the endpoint in this process; otherwise it ends with the process."""
        if self._sampler is not None:
            self._endpoint.close()
            self._sampler.close()
            self._sampler = self._endpoint = None

    def _vllm(self, trainer):
        if trainer.vllm_mode != "server":
            raise RuntimeError(
                "vllm_mode='colocate' has no server for the agent to call; use vllm_mode='server', or use_vllm=False"
            )
        own = trainer.args
        base = (own.vllm_server_base_url or f"http://{own.vllm_server_host}:{own.vllm_server_port}").rstrip("/")
        key = {"apiKey": self.vllm_api_key} if self.vllm_api_key else {}
        name = self._get(f"{base}/v1/models")["data"][0]["id"]
        mode = self._get(f"{base}/server_info?config_format=json")["vllm_config"]["model_config"]["logprobs_mode"]
        logprobs = "processed" if mode == "processed_logprobs" else "raw"
        return {"baseURL": f"{base}/v1", "model": name, "logprobs": logprobs, **key}

    def _get(self, url):
        headers = {"authorization": f"Bearer {self.vllm_api_key}"} if self.vllm_api_key else {}
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=60) as response:
            return json.load(response)


def _sampling(trainer):
    found = {"temperature": trainer.temperature, "max_tokens": trainer.max_completion_length}
    if trainer.top_p is not None and trainer.top_p < 1:
        found["top_p"] = trainer.top_p
    if trainer.top_k:
        found["top_k"] = trainer.top_k
    if trainer.min_p:
        found["min_p"] = trainer.min_p
    if trainer.repetition_penalty != 1.0:
        found["repetition_penalty"] = trainer.repetition_penalty
    return found


def _with_own_ids(tasks):
    """Makes ids unique, because a prompt may be drawn twice for a batch."""
    seen, own = {}, []
    for task in tasks:
        name = task.get("id")
        seen[name] = seen.get(name, 0) + 1
        own.append(task if name is None or seen[name] == 1 else {**task, "id": f"{name}~{seen[name]}"})
    return own


def _row(rollout, trainer):
    """A rollout as one row for TRL. If it has no row, nothing is trained: its only token is masked, and its reward is None."""
    rows = sorted(rollout["rows"], key=lambda row: sum(row["env_mask"]))
    end = trainer.eos_token_ids[0]
    row = rows.pop() if rows else {"prompt_ids": [end], "completion_ids": [end], "logprobs": [0.0], "env_mask": [0]}
    trained = rollout["refused"] is None
    return {
        **{key: row[key] for key in ("prompt_ids", "completion_ids", "logprobs", "env_mask")},
        "reward": rollout["reward"] if trained else None,
        "success": rollout["success"],
        "trajectory": rollout["trajectory"],
        "num_turns": rollout["num_turns"],
        "failed": None if trained else (rollout["error"] or {}).get("message") or rollout["refused"],
        "left_out_rows": len(rows),
    }


def _report(rows):
    failed = [row["failed"] for row in rows if row["failed"] is not None]
    if len(failed) == len(rows):
        raise RuntimeError(f"none of the {len(rows)} rollouts can be trained on; the first error: {failed[0]}")
    if failed:
        logger.warning("%d of %d rollouts cannot be trained on; the first error: %s", len(failed), len(rows), failed[0])
    left_out = sum(row["left_out_rows"] for row in rows)
    if left_out:
        logger.warning("%d rows are left out, because TRL takes one row per rollout; the longest is used", left_out)
