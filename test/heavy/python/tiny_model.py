"""A random model of two layers and a tokenizer of bytes: real to TRL, made in milliseconds, without a hub."""

from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, set_seed

# As ChatML, with calls and tools as JSON; `generation` marks what the assistant said.
TEMPLATE = """
{%- if tools %}<|im_start|>tools
{{ tools | tojson }}<|im_end|>
{% endif %}
{%- for message in messages %}<|im_start|>{{ message.role }}
{% if message.role == 'assistant' %}{% generation %}{{ message.content or '' }}
{%- for call in message.tool_calls or [] %}<call>{{ call.function.name }} {{ call.function.arguments }}</call>{% endfor -%}
<|im_end|>{% endgeneration %}
{%- else %}{{ message.content }}<|im_end|>{% endif %}
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


def tokenizer():
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    special = ["<|pad|>", "<|im_start|>", "<|im_end|>"]
    vocabulary = {token: id for id, token in enumerate([*special, *alphabet])}
    model = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    model.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    model.decoder = decoders.ByteLevel()
    model.add_special_tokens(special)
    return PreTrainedTokenizerFast(
        tokenizer_object=model, pad_token="<|pad|>", eos_token="<|im_end|>", chat_template=TEMPLATE
    )


def model():
    set_seed(1)
    config = LlamaConfig(
        vocab_size=259,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=4096,
        pad_token_id=0,
        eos_token_id=2,
        bos_token_id=None,
    )
    return LlamaForCausalLM(config)
