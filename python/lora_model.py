"""Opens the base model of a LoRA policy from a folder, the hub, a GGUF file or a configuration."""

import contextlib
import hashlib
import os
import shutil

import torch


class Refused(Exception):
    """An error that the caller can fix; `code` is an error code of manyworlds."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class State:
    """The state shared by operations. `model` is a PeftModel if the role is 'train', else the transformers base model."""

    def __init__(self):
        self.model = None
        self.tokenizer = None
        self.device = None
        self.dtype = None
        self.settings = None
        self.vocabulary = None
        # For training: whether the model can compute logits for selected positions, and the maximum length of
        # a packed sequence.
        self.keeps_logits = False
        self.packed = 0
        # The optimizer, and the sums since the last step.
        self.optimizer = None
        self.tally = None


def open_model(state, args):
    # Before transformers is imported, which reads this once.
    os.environ["HF_HUB_OFFLINE"] = "0" if args.get("download") else os.environ.get("HF_HUB_OFFLINE", "1")
    torch.set_num_threads(args["threads"])
    torch.manual_seed(args["seed"])
    state.settings = args
    state.device = device_of(args["device"])
    state.dtype = getattr(torch, args["dtype"])
    base, state.tokenizer = load_base(args, state)
    base.config.use_cache = args["role"] == "sample"
    state.model = add_lora(base, args) if args["role"] == "train" else base
    # Never .train(), because dropout would make the ratio differ from 1 before anything was learned.
    state.model.eval()
    state.vocabulary = base.get_input_embeddings().num_embeddings
    if args["role"] == "train":
        start_training(state, args)
    return described(state)


def device_of(name):
    if name != "auto":
        return torch.device(name)
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def load_base(args, state):
    base = args["base"]
    if isinstance(base, str):
        return from_folder(base, args, state)
    if "gguf" in base:
        return from_folder(converted(base["gguf"], args["cache"]), args, state)
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    folder = base.get("tokenizer")
    tokenizer = None if folder is None else AutoTokenizer.from_pretrained(existing(folder))
    # The same seed gives the same weights in the training and the sampling process.
    torch.manual_seed(args["seed"])
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**base["config"])).to(state.device, state.dtype)
    return model, tokenizer


def existing(folder):
    if os.path.isdir(folder):
        return folder
    raise Refused("LEARNER_INVALID", f"the folder {folder} does not exist")


def from_folder(name, args, state):
    """`name`: a folder, or a model of the hub."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    if os.path.isabs(name) or name.startswith("."):
        existing(name)
    # Accelerate distributes a large model over several GPUs; with one device, everything goes there.
    several = args["device"] == "auto" and torch.cuda.device_count() > 1
    with hub_errors(name, args):
        model = AutoModelForCausalLM.from_pretrained(
            name, dtype=state.dtype, device_map="auto" if several else {"": str(state.device)}
        )
        return model, AutoTokenizer.from_pretrained(name)


@contextlib.contextmanager
def hub_errors(name, args):
    """transformers always says that the name may be wrong; the right advice depends on whether the hub was asked."""
    try:
        yield
    except (OSError, ValueError) as error:
        if getattr(error, "errno", None) is not None or os.path.isdir(name):
            raise
        offline = os.environ["HF_HUB_OFFLINE"] != "0"
        advice = (
            "it is neither a local folder nor in the hub's cache; give a folder, or allow downloads from the hub with "
            "`download: true`"
            if offline
            else "it is not a local folder, and cannot be downloaded from the hub; give a folder, or check the name and the network"
        )
        raise Refused(
            "LEARNER_INVALID", f"cannot open the base model {name}: {advice} ({first_line(error)})"
        ) from error


def first_line(error):
    return str(error).strip().split("\n")[0]


def converted(path, cache):
    """Converts a GGUF file to a transformers folder once, because loading it takes half a minute and marks the model as quantized."""
    if not os.path.isfile(path):
        raise Refused("LEARNER_INVALID", f"the GGUF file {path} does not exist")
    folder = os.path.join(cache, f"gguf-{digest_of(path)}")
    if not os.path.isdir(folder):
        half = f"{folder}.{os.getpid()}"
        try:
            convert(path, half)
            with contextlib.suppress(FileExistsError, NotADirectoryError):
                os.replace(half, folder)
        finally:
            # A full disk may have left it incomplete, or another process was faster.
            shutil.rmtree(half, ignore_errors=True)
    return folder


def digest_of(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def convert(path, folder):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    home, file = os.path.split(os.path.abspath(path))
    read = AutoModelForCausalLM.from_pretrained(home, gguf_file=file, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(home, gguf_file=file)
    config = read.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    plain = AutoModelForCausalLM.from_config(config)
    plain.load_state_dict(read.state_dict())
    plain.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def add_lora(base, args):
    from peft import LoraConfig, get_peft_model

    lora = args["lora"]
    config = LoraConfig(
        r=lora["rank"],
        lora_alpha=lora["alpha"],
        lora_dropout=0.0,
        target_modules=lora["targets"],
        task_type="CAUSAL_LM",
    )
    # In float32 even if the base model is bf16, because steps of 1e-5 would be rounded away.
    return get_peft_model(base, config, autocast_adapter_dtype=True)


def start_training(state, args):
    from lora_logprobs import packing_limit, takes_logits_to_keep
    from lora_tally import Tally

    options = args["optimizer"]
    weights = [weight for weight in state.model.parameters() if weight.requires_grad]
    state.optimizer = torch.optim.AdamW(
        weights,
        lr=0.0,
        betas=tuple(options["betas"]),
        eps=options["eps"],
        weight_decay=options["weightDecay"],
        foreach=False,
    )
    state.tally = Tally()
    state.keeps_logits = takes_logits_to_keep(state.model)
    state.packed = packing_limit(state, args["packed"])


def described(state):
    parameters = list(state.model.parameters())
    return {
        "device": str(state.device),
        "trainable": sum(weight.numel() for weight in parameters if weight.requires_grad),
        "parameters": sum(weight.numel() for weight in parameters),
        "vocabulary": state.vocabulary,
        "packed": state.packed > 0,
        "tokenizer": state.tokenizer is not None,
    }
