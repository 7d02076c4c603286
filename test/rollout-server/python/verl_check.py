"""Runs the agent loop for verl against a stand-in of verl, and a model that says what it was told to. Prints JSON."""

import asyncio
import json
import sys
from dataclasses import asdict, dataclass, field
from types import SimpleNamespace
from typing import Any, ClassVar

task = json.load(sys.stdin)
sys.path[:0] = [task["hooks"], task["standin"]]

import manyworlds_verl  # noqa: E402, F401 - registers its agent loop
from verl.experimental.agent_loop.agent_loop import registered  # noqa: E402

END = 256


class Bytes:
    """A tokenizer whose ids are bytes, and one more at the end of a turn."""

    eos_token, eos_token_id = "<end>", END

    def encode(self, text, add_special_tokens=True):
        parts = text.split(self.eos_token)
        ids = [list(part.encode()) for part in parts]
        return ids[0] + [id for part in ids[1:] for id in [END, *part]]

    def decode(self, ids):
        return "".join(self.eos_token if id == END else chr(id) for id in ids)

    def apply_chat_template(self, messages, tools=None, tokenize=True, add_generation_prompt=False):
        said = [
            f"{message['role']}: {message['content']}{self._calls(message)}{self.eos_token}\n" for message in messages
        ]
        return f"{len(tools or [])} tools\n{''.join(said)}{'assistant: ' if add_generation_prompt else ''}"

    def _calls(self, message):
        return "".join(f"[{call['function']['name']}]" for call in message.get("tool_calls") or [])


@dataclass
class TokenOutput:
    token_ids: list
    log_probs: list | None = None
    routed_experts: Any = None
    stop_reason: str | None = None
    num_preempted: int | None = None
    extra_fields: dict = field(default_factory=dict)


class LLMServerClient:
    """Calls a tool, with a space where the same call rendered anew has none; then answers."""

    calls: ClassVar[list] = []

    async def generate(
        self,
        request_id,
        *,
        prompt_ids: list[int],
        sampling_params: dict[str, Any],
        image_data: list[Any] | None = None,
        video_data: list[Any] | None = None,
        audio_data: list[Any] | None = None,
        mm_processor_kwargs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> TokenOutput:
        await asyncio.sleep(0.01)
        text = Bytes().decode(prompt_ids)
        if "too long" in text:
            raise ValueError("no room to generate")
        said = (
            "that is 3"
            if "tool: " in text
            else '<tool_call> {"name": "add", "arguments": {"a": 1, "b":  2}}</tool_call>'
        )
        # The last turn is cut short: no end of the turn.
        ids = Bytes().encode(said) + ([END] if "tool: " not in text else [])
        found = {"request": request_id, "prompt": prompt_ids, "ids": ids, "sampling": {**sampling_params}}
        self.calls.append(found)
        logprobs = [-id / 512 for id in ids] if sampling_params.pop("logprobs") else None
        return TokenOutput(ids, logprobs, stop_reason="completed")


config = SimpleNamespace(
    actor_rollout_ref=SimpleNamespace(rollout=SimpleNamespace(prompt_length=4096, response_length=task["length"]))
)
sampling = {"temperature": 0.7, "top_p": 0.9, "top_k": -1, "repetition_penalty": 1.0, "logprobs": False}


def loop(**more):
    own = {"url": task["url"], "token": task["token"], **more}
    wrapped = {"trainer_config": SimpleNamespace(config=config), "data_config": SimpleNamespace(config={})}
    return registered["manyworlds"](
        **wrapped,
        server_manager=LLMServerClient(),
        tokenizer=tokenizer,
        processor=None,
        dataset_cls=None,
        tools=None,
        **own,
    )


async def outcome(agent_loop, prompt, **fields):
    raw = [{"role": "system", "content": "you add"}, {"role": "user", "content": prompt}]
    try:
        return asdict(await agent_loop.run(sampling, raw_prompt=raw, **fields))
    except Exception as error:  # noqa: BLE001 - the test compares the message
        return {"error": str(error)}


async def main():
    truth = {"ground_truth": 1}
    return await asyncio.gather(
        outcome(loop(), "what is 1 + 2", reward_model=truth, data_source="sums", index=7),
        outcome(loop(), "ignored", reward_model={"ground_truth": 0}, extra_info={"input": "what is 2 + 1"}),
        outcome(loop(attempts=1), "too long", reward_model=truth),
        outcome(loop(attempts=1, failed_reward=-1), "too long", reward_model=truth),
    )


tokenizer = Bytes()
json.dump({"outputs": asyncio.run(main()), "calls": LLMServerClient.calls, "sampling": sampling}, sys.stdout)
