"""The sampling half of the sidecar: adapters by name, chat templates, and sampling that does not depend on the batch."""

import numpy as np
import torch

from lora_attention import base_of, exact_attention
from lora_decoding import Decoder
from lora_draws import Row, Stops
from lora_exactness import is_exact
from lora_model import Refused
from lora_rendering import encode, render
from lora_served import Served


def ops(state):
    sampler = Sampler(state)
    return {
        "samplerInfo": sampler.info,
        "loadAdapter": sampler.load,
        "unloadAdapter": sampler.unload,
        "render": sampler.render,
        "encode": sampler.encode,
        "decode": sampler.decode,
        "sample": sampler.sample,
    }


class Sampler:
    def __init__(self, state):
        self.state = state
        self.adapters = Served(state)
        # Running requests between calls, by adapter.
        self.running = {}

    @torch.no_grad()
    def info(self, args, parts):
        """`exact`: whether, on this machine, requests get the same bits regardless of their batch. Takes a second or two."""
        with self.adapters.using(None) as model:
            exact = is_exact(model, self.state.settings["lora"]["rank"]) if args.get("test", True) else None
        return {
            "exact": exact,
            "context": self.context,
            "stopIds": sorted(self.stop_ids),
            "vocabulary": self.config.vocab_size,
        }

    def load(self, args, parts):
        self.adapters.load(args["name"], parts[0])
        self.running.pop(args["name"], None)
        return {}

    def unload(self, args, parts):
        self.adapters.unload(args["name"])
        self.running.pop(args["name"], None)
        return {}

    def render(self, args, parts):
        found = [render(self.tokenizer, conversation) for conversation in args["conversations"]]
        ids = [ids for ids, _ in found]
        return {"lengths": [len(some) for some in ids], "prefixUsed": [used for _, used in found]}, [joined(ids)]

    def encode(self, args, parts):
        ids = [encode(self.tokenizer, text) for text in args["texts"]]
        return {"lengths": [len(some) for some in ids]}, [joined(ids)]

    def decode(self, args, parts):
        ids = split(parts[0], args["lengths"])
        special = args.get("special", False)
        return {"texts": [self.tokenizer.decode(some, skip_special_tokens=not special) for some in ids]}

    @torch.no_grad()
    def sample(self, args, parts):
        """
        One prompt of ids per request, all in one part. Without `steps`, all are completed. With `steps`, they join the running
        requests, and those finished after at most this many steps are returned; `drop` has ids of requests to abandon.
        """
        name = args.get("adapter")
        prompts = split(parts[0], [request["length"] for request in args["requests"]])
        rows = [self.row(prompt, request) for prompt, request in zip(prompts, args["requests"], strict=True)]
        with self.adapters.using(name) as model, exact_attention(model):
            steps = args.get("steps")
            decoder = (
                Decoder(model, Stops(self.stop_ids, self.state.tokenizer))
                if steps is None
                else self.decoder(name, model)
            )
            decoder.drop(set(args.get("drop") or ()))
            decoder.waiting += rows
            if steps is None:
                while decoder.busy:
                    decoder.advance()
                return self.answer(rows, args)
            try:
                return self.answer(until_done(decoder, steps), args)
            except BaseException:
                # All running requests are lost, and their callers get the error.
                del self.running[name]
                raise

    def decoder(self, name, model):
        if name not in self.running:
            self.running[name] = Decoder(model, Stops(self.stop_ids, self.state.tokenizer))
        # Loading the first adapter wraps the model.
        self.running[name].model = model
        return self.running[name]

    def answer(self, rows, args):
        result = {
            "ids": [row.id for row in rows],
            "lengths": [len(row.tokens) for row in rows],
            "finish": [row.finish for row in rows],
            "truncated": [row.truncated for row in rows],
            **self.texts(rows, args.get("pieces", False)),
        }
        log_probs = np.array([value for row in rows for value in row.log_probs], dtype="<f8")
        return result, [joined([row.tokens for row in rows]), log_probs.tobytes()]

    def row(self, prompt, request):
        if not prompt:
            raise Refused("LEARNER_INVALID", "a prompt is empty")
        if len(prompt) >= self.context:
            raise Refused(
                "LEARNER_INVALID",
                f"a prompt has {len(prompt)} tokens, but the context of the model has only {self.context}",
            )
        if not 0 <= min(prompt) <= max(prompt) < self.config.vocab_size:
            raise Refused(
                "LEARNER_INVALID",
                f"a prompt contains a token id outside of the vocabulary of {self.config.vocab_size} tokens",
            )
        return Row(tuple(prompt), request, self.context)

    def texts(self, rows, pieces):
        """`pieces`: the text of each token that occurs."""
        tokenizer = self.state.tokenizer
        if tokenizer is None:
            return {}
        texts = [tokenizer.decode(row.tokens, skip_special_tokens=True) for row in rows]
        seen = {token for row in rows for token in row.tokens} if pieces else ()
        return {"texts": texts, "pieces": {str(token): tokenizer.decode([token]) for token in sorted(seen)}}

    @property
    def config(self):
        return base_of(self.state.model).config.get_text_config()

    @property
    def context(self):
        return getattr(self.config, "max_position_embeddings", None) or 1 << 20

    @property
    def tokenizer(self):
        if self.state.tokenizer is None:
            raise Refused("LEARNER_INVALID", "the base model has no tokenizer; send token ids, or set `base.tokenizer`")
        return self.state.tokenizer

    @property
    def stop_ids(self):
        """The tokens that end a turn, of the tokenizer and of the model."""
        base = base_of(self.state.model)
        found = [getattr(self.state.tokenizer, "eos_token_id", None), self.config.eos_token_id]
        found.append(getattr(getattr(base, "generation_config", None), "eos_token_id", None))
        ids = [id for some in found for id in (some if isinstance(some, list) else [some])]
        return {id for id in ids if id is not None}


def until_done(decoder, steps):
    """Returns the first finished rows, or none after this many steps."""
    for _ in range(steps):
        done = decoder.advance() if decoder.busy else []
        if done or not decoder.busy:
            return done
    return []


def joined(lists):
    return np.array([value for some in lists for value in some], dtype="<i4").tobytes()


def split(part, lengths):
    ids = np.frombuffer(part, dtype="<i4").tolist()
    if len(ids) != sum(lengths):
        raise ValueError(f"received {len(ids)} ids, but the lengths add up to {sum(lengths)}")
    found, start = [], 0
    for length in lengths:
        found.append(ids[start : start + length])
        start += length
    return found
