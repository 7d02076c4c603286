"""Samples from a transformers model in this process, for many requests at a time."""

import contextlib
import queue
import threading
from dataclasses import dataclass, field

import torch

from manyworlds_endpoint import PromptTooLong, Sampled

# How long to wait for another request before computing, because agents that were answered together ask again
# together.
GATHER_S = 0.02


@dataclass
class _Request:
    prompt: list
    temperature: float
    top_p: float
    top_k: int
    min_p: float
    most: int
    done: threading.Event = field(default_factory=threading.Event)
    sampled: Sampled = None
    error: Exception = None


class Sampler:
    """Batches concurrent requests to a model in this process. Called from many threads; a single thread computes."""

    def __init__(self, model, tokenizer, *, batch=64, seed=0):
        self.model, self.tokenizer, self.batch = model, getattr(tokenizer, "tokenizer", tokenizer), batch
        ends = getattr(model.generation_config, "eos_token_id", None)
        own = ends if isinstance(ends, list) else [ends]
        self.ends = sorted({end for end in [*own, self.tokenizer.eos_token_id] if end is not None})
        self.random = torch.Generator(device=model.device).manual_seed(seed)
        self.longest = getattr(model.config, "max_position_embeddings", None)
        self._queue, self._serves = queue.SimpleQueue(), False
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def __call__(self, prompt, body):
        if body.get("repetition_penalty", 1.0) != 1.0:
            raise ValueError("repetition_penalty is not supported by this sampler; use a vLLM server")
        room = None if self.longest is None else self.longest - len(prompt)
        if room is not None and room < 1:
            raise PromptTooLong(f"the prompt has {len(prompt)} tokens, but the model accepts only {self.longest}")
        most = body.get("max_completion_tokens") or body.get("max_tokens") or 1024
        temperature = body.get("temperature")
        request = _Request(
            prompt,
            1.0 if temperature is None else temperature,
            body.get("top_p") or 1.0,
            body.get("top_k") or 0,
            body.get("min_p") or 0.0,
            most if room is None else min(most, room),
        )
        if not self._serves:
            raise RuntimeError("the trainer is not collecting rollouts at the moment")
        self._queue.put(request)
        while not request.done.wait(1.0):
            if not self._thread.is_alive():
                raise RuntimeError("the sampler thread has ended")
        if request.error is not None:
            raise request.error
        return request.sampled

    @contextlib.contextmanager
    def serving(self):
        """Serves requests only within this context, because an abandoned rollout must not use a model that is being trained."""
        self._serves = True
        try:
            yield
        finally:
            self._serves = False

    def close(self):
        self._queue.put(None)
        self._thread.join()

    def _work(self):
        while True:
            first = self._queue.get()
            if first is None:
                return
            batch = [first]
            with contextlib.suppress(queue.Empty):
                while len(batch) < self.batch:
                    batch.append(self._queue.get(timeout=GATHER_S))
            ending = None in batch
            asked = [request for request in batch if request is not None]
            try:
                for request, sampled in zip(asked, self._sample(asked), strict=True):
                    request.sampled = sampled
            except Exception as error:  # noqa: BLE001 - reported to each caller
                for request in asked:
                    request.error = error
            for request in asked:
                request.done.set()
            if ending:
                return

    @torch.no_grad()
    def _sample(self, asked):
        device, pad = self.model.device, self.tokenizer.pad_token_id or 0
        width = max(len(request.prompt) for request in asked)
        rows = [[pad] * (width - len(request.prompt)) + request.prompt for request in asked]
        ids = torch.tensor(rows, device=device)
        mask = torch.tensor(
            [[0] * (width - len(request.prompt)) + [1] * len(request.prompt) for request in asked], device=device
        )
        positions = (mask.cumsum(-1) - 1).clamp(min=0)
        found = [Sampled([], [], "length") for _ in asked]
        open_rows, past = set(range(len(asked))), None
        while open_rows:
            out = self.model(
                input_ids=ids,
                attention_mask=mask,
                position_ids=positions,
                past_key_values=past,
                use_cache=True,
                logits_to_keep=1,
            )
            past = out.past_key_values
            chosen, logprobs = self._choose(out.logits[:, -1].float(), asked)
            for row in sorted(open_rows):
                sampled = found[row]
                sampled.ids.append(chosen[row])
                sampled.logprobs.append(logprobs[row])
                if chosen[row] in self.ends:
                    sampled.finish = "stop"
                if sampled.finish == "stop" or len(sampled.ids) >= asked[row].most:
                    open_rows.discard(row)
            ids = torch.tensor(chosen, device=device).unsqueeze(1)
            mask = torch.cat([mask, torch.ones_like(mask[:, :1])], dim=1)
            positions = positions[:, -1:] + 1
        return found

    def _choose(self, logits, asked):
        """One id per row, and its log-probability in the distribution it was actually drawn from."""
        temperatures = torch.tensor([request.temperature for request in asked], device=logits.device).unsqueeze(1)
        greedy = temperatures <= 0
        logprobs = torch.log_softmax(logits / temperatures.clamp(min=1e-6), dim=-1)
        for row, request in enumerate(asked):
            logprobs[row] = _cut(logprobs[row], request)
        drawn = torch.multinomial(logprobs.exp(), 1, generator=self.random)
        chosen = torch.where(greedy, logits.argmax(-1, keepdim=True), drawn)
        picked = torch.where(greedy, torch.zeros_like(temperatures), logprobs.gather(-1, chosen))
        return chosen.squeeze(1).tolist(), picked.squeeze(1).tolist()


def _cut(logprobs, request):
    """Applies top_k, top_p and min_p, and renormalizes."""
    keep = torch.ones_like(logprobs, dtype=torch.bool)
    if request.top_k > 0:
        keep &= logprobs >= logprobs.topk(min(request.top_k, logprobs.numel())).values[-1]
    if request.min_p > 0:
        keep &= logprobs.exp() >= request.min_p * logprobs.exp().max()
    if request.top_p < 1:
        order = logprobs.argsort(descending=True)
        before = logprobs[order].exp().cumsum(-1) - logprobs[order].exp()
        keep[order[before >= request.top_p]] = False
    return logprobs if keep.all() else torch.log_softmax(logprobs.masked_fill(~keep, float("-inf")), dim=-1)
