"""verl with rollouts of a manyworlds agent: an AgentLoop that calls a rollout server. Written for verl 0.9.

In the file named by `actor_rollout_ref.rollout.agent.agent_loop_config_path`:

    - name: manyworlds
      _target_: manyworlds_verl.ManyworldsAgentLoop
      url: http://127.0.0.1:8700
      token_file: /path/to/token.txt

and `actor_rollout_ref.rollout.agent.default_agent_loop=manyworlds`. This folder must be on PYTHONPATH of verl's workers. The
agent's model calls go to an endpoint in the worker, and on to `server_manager.generate`, so verl still manages weights,
versions and load balancing.
"""

import asyncio
import logging
import threading
import time
from functools import cache
from uuid import uuid4

from manyworlds_endpoint import ChatEndpoint, PromptTooLong, Sampled, hermes_calls
from manyworlds_rollouts import RolloutClient
from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopMetrics, AgentLoopOutput, register

logger = logging.getLogger("manyworlds")
KEYS = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")


@register("manyworlds")
class ManyworldsAgentLoop(AgentLoopBase):
    """One rollout of the agent behind a rollout server."""

    def __init__(
        self,
        *args,
        url,
        token=None,
        token_file=None,
        ca_file=None,
        timeout=3600.0,
        host="127.0.0.1",
        parse=hermes_calls,
        attempts=2,
        failed_reward=None,
        **kwargs,
    ):
        """`attempts`: how often a failed rollout is tried. `failed_reward`: the reward of a rollout that still fails, which is not
        trained on; None: the training ends with the error, because verl requires a reward for every rollout.
        """
        super().__init__(*args, **kwargs)
        self.client = RolloutClient(url, token=token, token_file=token_file, ca_file=ca_file, timeout=timeout)
        self.host, self.parse, self.attempts, self.failed_reward = host, parse, attempts, failed_reward

    async def run(self, sampling_params, **kwargs):
        loop = asyncio.get_running_loop()
        session = _Session(self.server_manager, loop, sampling_params, self.client.timeout)
        endpoint = _endpoint(self.tokenizer, self.host, self.parse)
        model = endpoint.open(session)
        sampling = {key: sampling_params[key] for key in KEYS if sampling_params.get(key) is not None}
        # verl uses -1 for "no limit".
        sampling = {key: value for key, value in sampling.items() if key != "top_k" or value > 0}
        began = time.monotonic()
        try:
            for attempt in range(1, self.attempts + 1):
                answer = await asyncio.to_thread(
                    self.client.rollouts, [_task(kwargs)], model=endpoint.chat.described(model), sampling=sampling
                )
                rollout = answer["groups"][0]["rollouts"][0]
                if rollout["refused"] is None and rollout["reward"] is not None:
                    break
                logger.warning("attempt %d: %s", attempt, _why(rollout))
        finally:
            endpoint.close(model)
        total = time.monotonic() - began
        metrics = AgentLoopMetrics(generate_sequences=session.seconds, tool_calls=max(0.0, total - session.seconds))
        extra = {"manyworlds_run": answer["run"], "manyworlds_trajectory": rollout["trajectory"]}
        return self._output(rollout, metrics, extra)

    def _output(self, rollout, metrics, extra):
        if rollout["refused"] is not None or rollout["reward"] is None:
            if self.failed_reward is None:
                raise RuntimeError(
                    f"a rollout cannot be trained on: {_why(rollout)}; to continue anyway, set `failed_reward`"
                )
            end = self.tokenizer.eos_token_id
            row = {"prompt_ids": [end], "completion_ids": [end], "env_mask": [0], "logprobs": [0.0]}
            return self._of(row, self.failed_reward, 0, metrics, extra)
        rows = sorted(rollout["rows"], key=lambda row: sum(row["env_mask"]))
        if len(rows) > 1:
            logger.warning(
                "%d rows are left out, because verl takes one row per rollout; the longest is used", len(rows) - 1
            )
        return self._of(rows[-1], rollout["reward"], rollout["num_turns"], metrics, extra)

    def _of(self, row, reward, turns, metrics, extra):
        rollout = self.config.actor_rollout_ref.rollout
        if len(row["prompt_ids"]) > rollout.prompt_length:
            raise ValueError(
                f"a prompt has {len(row['prompt_ids'])} tokens, but rollout.prompt_length is {rollout.prompt_length}; increase it"
            )
        # Truncated at the end; the remaining tokens are unchanged.
        most = rollout.response_length
        return AgentLoopOutput(
            prompt_ids=row["prompt_ids"],
            response_ids=row["completion_ids"][:most],
            response_mask=row["env_mask"][:most],
            response_logprobs=row["logprobs"][:most],
            reward_score=float(reward),
            num_turns=turns,
            metrics=metrics,
            extra_fields={"turn_scores": [], "tool_rewards": [], **extra},
        )


def _why(rollout):
    return (rollout["error"] or {}).get("message") or rollout["refused"] or "its grader returned no reward"


def _task(fields):
    """Converts a row of verl's data set to a task: `extra_info.input` or the last message, and the expected solution, if any."""
    info, truth = fields.get("extra_info") or {}, (fields.get("reward_model") or {}).get("ground_truth")
    given = info.get("input", list(fields["raw_prompt"])[-1]["content"])
    metadata = {"data_source": fields["data_source"]} if isinstance(fields.get("data_source"), str) else {}
    return {"input": given, "metadata": metadata, **({} if truth is None else {"groundTruth": truth})}


class _Session:
    """The model calls of one rollout."""

    def __init__(self, manager, loop, sampling_params, timeout):
        self.manager, self.loop, self.sampling_params, self.timeout = manager, loop, sampling_params, timeout
        self.seconds = 0.0

    def generate(self, request_id, prompt, body, ends):
        # Copied, because verl's servers modify the parameters.
        params = {**self.sampling_params, "logprobs": True}
        most = body.get("max_completion_tokens") or body.get("max_tokens")
        if most:
            params["max_tokens"] = most
        began = time.monotonic()
        call = self.manager.generate(request_id=request_id, prompt_ids=prompt, sampling_params=params)
        try:
            output = asyncio.run_coroutine_threadsafe(call, self.loop).result(self.timeout)
        except ValueError as error:
            raise PromptTooLong(str(error)) from error
        self.seconds += time.monotonic() - began
        if output.stop_reason == "aborted":
            raise RuntimeError("verl aborted the generation")
        ids = list(output.token_ids)
        finish = "stop" if ids and ids[-1] in ends else "length"
        return Sampled(ids, list(output.log_probs or []), finish)


class _Endpoint:
    """One endpoint for all rollouts of a worker; each rollout has its own model name."""

    def __init__(self, tokenizer, host, parse):
        self._sessions, self._lock = {}, threading.Lock()
        self.chat = ChatEndpoint(tokenizer, self._generate, parse=parse, host=host)
        end = tokenizer.eos_token_id
        self._ends = end if isinstance(end, (list, tuple)) else [end]

    def open(self, session):
        name = uuid4().hex
        with self._lock:
            self._sessions[name] = session
        return name

    def close(self, name):
        with self._lock:
            self._sessions.pop(name, None)

    def _generate(self, prompt, body):
        name = body["model"]
        with self._lock:
            session = self._sessions.get(name)
        if session is None:
            raise ValueError(f"rollout {name} has already ended")
        # All turns of a rollout go to the same server, which has the prefix in its cache.
        return session.generate(name, prompt, body, self._ends)


@cache
def _endpoint(tokenizer, host, parse):
    return _Endpoint(tokenizer, host, parse)
