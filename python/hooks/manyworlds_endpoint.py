"""An endpoint through which agents call a trainer's own model like any other server. Uses only the standard library."""

import hmac
import json
import re
import secrets
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MAX_BODY_BYTES = 64 * 1024 * 1024
# Conversations that may be continued.
MAX_CONVERSATIONS = 16384


@dataclass
class Sampled:
    """Sampled ids with their log-probabilities. `finish` is "stop" if the last id ends the turn."""

    ids: list
    logprobs: list
    finish: str = "length"


class PromptTooLong(ValueError):
    """The prompt leaves no room for a reply."""


def hermes_calls(text, tools):
    """The tool calls in a reply of a Qwen or Hermes model: <tool_call>{"name": …, "arguments": {…}}</tool_call>."""
    calls = []
    for found in re.findall(r"<tool_call>(.*?)</tool_call>", text, re.DOTALL):
        try:
            call = json.loads(found)
            calls.append((call["name"], json.dumps(call.get("arguments", {}))))
        except (ValueError, KeyError, TypeError, AttributeError):
            # Not a call: the text stays part of the reply.
            continue
    return (re.sub(r"<tool_call>.*?</tool_call>", "", text, flags=re.DOTALL).strip() if calls else text), calls


class ChatEndpoint:
    """Serves a model with OpenAI's chat completions API, with token ids and log-probabilities as in vLLM.

    `generate(prompt_ids, body)` samples and returns `Sampled`; it is called in a thread per request, and may wait for other
    requests to form a batch. `parse(text, tools)` returns the text and the calls, `[(name, arguments as JSON)]`, of a reply.

    A conversation is continued by its tokens: the prompt contains the sampled tokens unchanged, and only new messages are
    tokenized. If a reply were rendered again, its tokens could differ from those that were sampled.
    """

    def __init__(
        self, tokenizer, generate, *, parse=hermes_calls, host="127.0.0.1", port=0, model="policy", template=None
    ):
        self.tokenizer, self.generate, self.parse, self.model = tokenizer, generate, parse, model
        self.api_key = secrets.token_urlsafe(24)
        self._template = template or {}
        self._known = OrderedDict()
        self._lock = threading.Lock()
        self._server = _Server((host, port), _Handler)
        self._server.endpoint = self
        self._host = host
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True)
        self._thread.start()

    @property
    def base_url(self):
        return f"http://{self._host}:{self._server.server_address[1]}/v1"

    def described(self, model=None):
        """The `model` field of a request to the rollout server."""
        model = model or self.model
        return {"baseURL": self.base_url, "model": model, "apiKey": self.api_key, "logprobs": "processed"}

    def forget(self):
        """Forgets the conversations of finished rollouts."""
        with self._lock:
            self._known.clear()

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def complete(self, body):
        """Returns the response to a request body."""
        messages, tools = [_plain(message) for message in body["messages"]], body.get("tools") or None
        prompt = self._prompt(messages, tools)
        sampled = self.generate(prompt, body)
        ids, ended = list(sampled.ids), sampled.finish == "stop"
        text = self.tokenizer.decode(ids[:-1] if ended else ids)
        content, calls = self.parse(text, tools) if tools else (text, [])
        message = {"role": "assistant", "content": content}
        if calls:
            named = [(f"call_{secrets.token_hex(12)}", name, arguments) for name, arguments in calls]
            message["content"] = content or None
            message["tool_calls"] = [
                {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
                for id, name, arguments in named
            ]
        self._remember([*messages, message], tools, (prompt + ids, ended))
        choice = {
            "index": 0,
            "message": message,
            "finish_reason": "tool_calls" if calls else sampled.finish,
            "token_ids": ids,
            "logprobs": {
                "content": [{"token": "", "logprob": value, "top_logprobs": []} for value in sampled.logprobs]
            },
        }
        return {
            "id": f"chatcmpl-{secrets.token_hex(12)}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": body.get("model", self.model),
            "prompt_token_ids": prompt,
            "choices": [choice],
            "usage": {
                "prompt_tokens": len(prompt),
                "completion_tokens": len(ids),
                "total_tokens": len(prompt) + len(ids),
            },
        }

    def _remember(self, messages, tools, tokens):
        with self._lock:
            self._known[_key(messages, tools)] = tokens
            while len(self._known) > MAX_CONVERSATIONS:
                self._known.popitem(last=False)

    def _prompt(self, messages, tools):
        for index in range(len(messages) - 1, -1, -1):
            if messages[index]["role"] != "assistant":
                continue
            with self._lock:
                known = self._known.get(_key(messages[: index + 1], tools))
            if known is None:
                continue
            ids, ended = known
            tail = self._tail(messages, index, tools, ended)
            if tail is not None:
                return ids + tail
        return self._encode(self._render(messages, tools, True))

    def _tail(self, messages, index, tools, ended):
        """The tokens from the end of a reply to the next one; None if the template changes earlier messages."""
        before, whole = self._render(messages[: index + 1], tools, False), self._render(messages, tools, True)
        if not whole.startswith(before):
            return None
        end = self.tokenizer.eos_token
        # The model did not sample what the template writes after the end of the turn, such as a line break.
        _, found, rest = before.rpartition(end)
        closes = bool(found) and not rest.strip()
        return self._encode((end if closes and not ended else "") + (rest if closes else "") + whole[len(before) :])

    def _render(self, messages, tools, ask):
        return self.tokenizer.apply_chat_template(
            messages, tools=tools, tokenize=False, add_generation_prompt=ask, **self._template
        )

    def _encode(self, text):
        return list(self.tokenizer.encode(text, add_special_tokens=False))


def _plain(message):
    """A message in the form that templates expect: content as one string, arguments of calls as objects."""
    plain = {**message}
    if isinstance(plain.get("content"), list):
        plain["content"] = "".join(part.get("text", "") for part in plain["content"])
    if plain.get("content") is None:
        plain["content"] = ""
    if plain.get("tool_calls"):
        plain["tool_calls"] = [
            {**call, "function": {**call["function"], "arguments": _object(call["function"]["arguments"])}}
            for call in plain["tool_calls"]
        ]
    return plain


def _object(arguments):
    try:
        found = json.loads(arguments)
        return found if isinstance(found, dict) else arguments
    except (ValueError, TypeError):
        return arguments


def _key(messages, tools):
    """The key of a conversation. Calls are identified by their ids, because clients may reformat the arguments."""
    parts = [
        ["assistant", [call["id"] for call in message["tool_calls"]]]
        if message.get("tool_calls")
        else [message["role"], message.get("content") or "", message.get("tool_call_id")]
        for message in messages
    ]
    return sha256(json.dumps([parts, tools]).encode()).digest()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 600

    def do_POST(self):
        endpoint = self.server.endpoint
        length = int(self.headers.get("content-length") or 0)
        if length > MAX_BODY_BYTES:
            return self._error(413, "the request body is too large")
        text = self.rfile.read(length)
        given = (self.headers.get("authorization") or "").removeprefix("Bearer ").strip()
        if not hmac.compare_digest(given.encode(), endpoint.api_key.encode()):
            return self._error(401, "the API key is wrong")
        if self.path != "/v1/chat/completions":
            return self._error(404, f"{self.path} not found; use /v1/chat/completions")
        try:
            self._answer(200, endpoint.complete(json.loads(text)))
        except PromptTooLong as error:
            self._error(400, str(error), "context_length_exceeded")
        except (KeyError, TypeError, ValueError) as error:
            self._error(400, f"{type(error).__name__}: {error}")
        except BrokenPipeError:
            self.close_connection = True
        except Exception as error:  # noqa: BLE001 - any error of the model: the rollout fails with it
            self._error(500, f"{type(error).__name__}: {error}")

    def _error(self, status, message, code=None):
        self.close_connection = True
        self._answer(status, {"error": {"message": message, "code": code}})

    def _answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass
