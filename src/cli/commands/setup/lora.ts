import { chooseTorch, chosenTorch, loraNeeds, TORCH_BUILD } from '../../../train/lora/environment.ts'
import { UsageError } from '../../frame/usage-error.ts'
import { type Made, makeAndAsk } from './make.ts'
import type { SetupArgs } from './spec.ts'

const ASK = [
  '-c',
  `import torch, transformers, peft, platform
where = f"{torch.cuda.device_count()} GPUs" if torch.cuda.is_available() else "Apple GPU" if torch.backends.mps.is_available() else "no GPU, on the CPU"
print(f"PyTorch {torch.__version__} ({where}), transformers {transformers.__version__}, PEFT {peft.__version__} on Python {platform.python_version()}")`,
]

/** Makes the environment in which language models are trained. */
export async function setUpLora({ torch = chosenTorch(), force }: SetupArgs): Promise<Made> {
  if (!TORCH_BUILD.test(torch))
    throw new UsageError(
      `--torch must be pypi, auto, cpu or a build of PyTorch's index, such as cu128 or rocm6.4; it is ${torch}`,
    )
  // Libraries may print lines on import; the answer is the last line.
  const made = await makeAndAsk(loraNeeds(torch), force, ASK, (output) => output.trim().split('\n').at(-1))
  chooseTorch(torch)
  return made
}
