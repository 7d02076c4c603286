"""Writes the tokenizer of bytes into a folder: `{ folder }` on standard input."""

import json
import sys

import tiny_model

tiny_model.tokenizer().save_pretrained(json.load(sys.stdin)["folder"])
print("{}")
