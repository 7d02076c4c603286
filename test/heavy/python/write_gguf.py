"""Writes a random Llama of two layers as a GGUF file, with a tokenizer of bytes, and the same as a folder of transformers. Arguments: file, folder."""

import sys

import gguf
import torch
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(1)
WIDTH, HEADS, LAYERS, FEED = 64, 4, 2, 128
tokens = ["<unk>", "<s>", "</s>", *[chr(33 + i) for i in range(59)], '!"', "#$"]
config = LlamaConfig(
    **{"vocab_size": len(tokens), "hidden_size": WIDTH, "intermediate_size": FEED, "num_hidden_layers": LAYERS},
    **{"num_attention_heads": HEADS, "num_key_value_heads": HEADS, "max_position_embeddings": 256},
    **{"rms_norm_eps": 1e-5, "tie_word_embeddings": False, "initializer_range": 0.1},
)
model = LlamaForCausalLM(config)
weights = model.state_dict()


def permuted(weight):
    """llama.cpp has the rows of queries and keys in another order."""
    return weight.reshape(HEADS, 2, WIDTH // HEADS // 2, WIDTH).swapaxes(1, 2).reshape(weight.shape)


writer = gguf.GGUFWriter(sys.argv[1], "llama")
writer.add_name("tiny")
writer.add_vocab_size(len(tokens))
writer.add_context_length(256)
writer.add_embedding_length(WIDTH)
writer.add_block_count(LAYERS)
writer.add_feed_forward_length(FEED)
writer.add_head_count(HEADS)
writer.add_head_count_kv(HEADS)
writer.add_rope_dimension_count(WIDTH // HEADS)
writer.add_layer_norm_rms_eps(1e-5)
writer.add_tokenizer_model("gpt2")
writer.add_tokenizer_pre("default")
writer.add_token_list(tokens)
writer.add_token_types([3, 3, 3, *[1] * 61])
writer.add_token_merges(['! "', "# $"])
writer.add_bos_token_id(1)
writer.add_eos_token_id(2)
names = {
    **{"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v"},
    **{
        "self_attn.o_proj": "attn_output",
        "mlp.gate_proj": "ffn_gate",
        "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down",
    },
    **{"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm"},
}
for layer in range(LAYERS):
    for ours, theirs in names.items():
        weight = weights[f"model.layers.{layer}.{ours}.weight"]
        weight = permuted(weight) if theirs in ("attn_q", "attn_k") else weight
        writer.add_tensor(f"blk.{layer}.{theirs}.weight", weight.contiguous().numpy())
writer.add_tensor("token_embd.weight", weights["model.embed_tokens.weight"].numpy())
writer.add_tensor("output_norm.weight", weights["model.norm.weight"].numpy())
writer.add_tensor("output.weight", weights["lm_head.weight"].numpy())
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
model.save_pretrained(sys.argv[2])
