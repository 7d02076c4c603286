"""Converts messages to token ids with the model's chat template."""

import json

from lora_model import Refused

# A placeholder for a reply whose tokens are known; no template or user writes it.
REPLY = "\ue000reply\ue001"


def render(tokenizer, conversation):
    """The ids of a conversation; with `prefix`, those after its tokens if they can be determined: (ids, whether they could)."""
    if not getattr(tokenizer, "chat_template", None):
        raise Refused("LEARNER_INVALID", "the base model has no chat template; use text completions instead")
    prefix = conversation.get("prefix")
    if prefix is not None:
        tail = after_reply(tokenizer, conversation, prefix["messages"], prefix["last"])
        if tail is not None:
            return tail, True
    return encode(tokenizer, text_of(tokenizer, conversation, conversation["messages"])), False


def encode(tokenizer, text):
    return tokenizer(text, add_special_tokens=False)["input_ids"]


def text_of(tokenizer, conversation, messages):
    from jinja2 import TemplateError

    goes_on = bool(conversation.get("continueFinal"))
    try:
        return tokenizer.apply_chat_template(
            [plain(message) for message in messages],
            tools=conversation.get("tools") or None,
            add_generation_prompt=not goes_on and conversation.get("addGenerationPrompt", True),
            continue_final_message=goes_on,
            tokenize=False,
        )
    except (TemplateError, TypeError, KeyError, ValueError) as error:
        raise Refused("LEARNER_INVALID", f"the chat template does not accept these messages: {error}") from error


def after_reply(tokenizer, conversation, count, last):
    """
    What the template writes after the reply that is message `count`. None if it cannot be determined, because the template
    renders earlier messages differently when more follow, or renders the reply more than once.
    """
    messages = conversation["messages"]
    if count == len(messages) and conversation.get("continueFinal"):
        return []
    known = [*messages[: count - 1], {"role": "assistant", "content": REPLY}]
    try:
        whole = text_of(tokenizer, conversation, [*known, *messages[count:]])
        began = text_of(tokenizer, {**conversation, "continueFinal": False, "addGenerationPrompt": False}, known)
    except Refused:
        return None
    before, _, tail = whole.partition(REPLY)
    if REPLY in tail or REPLY not in whole or began.partition(REPLY)[0] != before:
        return None
    ids = encode(tokenizer, tail)
    # The reply may already include its end of turn, unless it was truncated.
    return ids[1:] if ids and ids[0] == last else ids


def plain(message):
    """Messages in the form that templates expect: content as a string, arguments of calls as objects."""
    message = {**message, "content": content_of(message.get("content"))}
    if message.get("tool_calls"):
        message["tool_calls"] = [{**call, "function": called(call["function"])} for call in message["tool_calls"]]
    return message


def content_of(content):
    if isinstance(content, list):
        return "".join(part["text"] for part in content)
    return "" if content is None else content


def called(function):
    try:
        arguments = json.loads(function["arguments"])
    except (TypeError, ValueError):
        return function
    return {**function, "arguments": arguments} if isinstance(arguments, dict) else function
