import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ManyworldsError } from '../../errors.ts'
import { cacheFolder } from '../../private-folder.ts'
import { pythonFolder } from '../../python/base-folder.ts'
import { ensureEnvironment, type Needs } from '../../python/environment.ts'
import { lockOf } from '../../python/locks.ts'

/** As test/python/environments.ts has it for TRL, so that uv keeps one copy of PyTorch for both. */
const TORCH = '2.15.0'
const PYTHON = '3.11'
const PACKAGES = [
  `torch==${TORCH}`,
  'transformers==5.22.2',
  'peft==0.21.2',
  // Large models: placed on several GPUs.
  'accelerate==1.15.0',
  // Base models in files of llama.cpp.
  'gguf==0.19.0',
  // Templates of chats.
  'jinja2==3.1.6',
]

/** The builds of PyTorch: that of the package registry, which is locked, or one of PyTorch's own index, as uv names them. */
export const TORCH_BUILD: RegExp = /^(pypi|auto|cpu|cu\d{2,3}|rocm[\d.]+|xpu)$/

/** What the sidecar runs in. */
export function loraNeeds(torch = 'pypi'): Needs {
  const folder = `lora-torch-${TORCH}`
  if (torch === 'pypi')
    return { title: 'LoRA', folder, packages: PACKAGES, python: PYTHON, lock: lockOf(`${folder}.txt`) }
  return {
    ...{ title: `LoRA with the PyTorch build '${torch}'`, folder: `${folder}-${torch}`, packages: PACKAGES },
    // The wheels of PyTorch's own index have other hashes, and other packages beside them: they cannot be locked.
    ...{ python: PYTHON, lock: undefined, installOptions: ['--torch-backend', torch] },
  }
}

const choiceFile = (folder: string) => join(folder, 'lora-torch')

/** The build that `manyworlds setup lora` was last asked for. */
export function chosenTorch(): string {
  const file = choiceFile(cacheFolder('python'))
  const chosen = existsSync(file) ? readFileSync(file, 'utf8').trim() : 'pypi'
  return TORCH_BUILD.test(chosen) ? chosen : 'pypi'
}

/** From now on, sidecars of this user run with this build. */
export const chooseTorch = (torch: string): void => writeFileSync(choiceFile(pythonFolder()), torch)

/** The Python that a sidecar runs in: the one that is named by MANYWORLDS_LORA_PYTHON, or our own, which is made if it is missing. */
export async function loraPython(notice: (line: string) => void): Promise<string> {
  const own = process.env.MANYWORLDS_LORA_PYTHON
  if (own === undefined || own === '') return ensureEnvironment(loraNeeds(chosenTorch()), notice)
  if (existsSync(own)) return own
  throw new ManyworldsError('PYTHON_MISSING', `MANYWORLDS_LORA_PYTHON names ${own}, which does not exist`)
}
