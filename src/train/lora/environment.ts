import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ManyworldsError } from '../../errors.ts'
import { cacheFolder } from '../../private-folder.ts'
import { pythonFolder } from '../../python/base-folder.ts'
import { ensureEnvironment, type PythonEnvSpec } from '../../python/environment.ts'
import { lockOf } from '../../python/locks.ts'

/** The same version as in test/python/environments.ts for TRL, so that uv stores only one copy of PyTorch. */
const TORCH = '2.15.0'
const PYTHON = '3.11'
const PACKAGES = [
  `torch==${TORCH}`,
  'transformers==5.22.2',
  'peft==0.21.2',
  // Places large models on several GPUs.
  'accelerate==1.15.0',
  // Reads base models in llama.cpp's format.
  'gguf==0.19.0',
  // Chat templates.
  'jinja2==3.1.6',
]

/**
 * The builds of PyTorch: that of the package registry, which is locked, or one of PyTorch's own index, by uv's names.
 */
export const TORCH_BUILD: RegExp = /^(pypi|auto|cpu|cu\d{2,3}|rocm[\d.]+|xpu)$/

/** The Python environment of the sidecar. */
export function loraNeeds(torch = 'pypi'): PythonEnvSpec {
  const folder = `lora-torch-${TORCH}`
  if (torch === 'pypi')
    return { title: 'LoRA', folder, packages: PACKAGES, python: PYTHON, lock: lockOf(`${folder}.txt`) }
  return {
    ...{ title: `LoRA with the PyTorch build '${torch}'`, folder: `${folder}-${torch}`, packages: PACKAGES },
    // Not locked: the wheels of PyTorch's own index have other hashes and dependencies.
    ...{ python: PYTHON, lock: undefined, installOptions: ['--torch-backend', torch] },
  }
}

const choiceFile = (folder: string) => join(folder, 'lora-torch')

/** The build last chosen with `manyworlds setup lora`. */
export function chosenTorch(): string {
  const file = choiceFile(cacheFolder('python'))
  const chosen = existsSync(file) ? readFileSync(file, 'utf8').trim() : 'pypi'
  return TORCH_BUILD.test(chosen) ? chosen : 'pypi'
}

/** Makes sidecars of this user run with this build from now on. */
export const chooseTorch = (torch: string): void => writeFileSync(choiceFile(pythonFolder()), torch)

/** The Python of a sidecar: MANYWORLDS_LORA_PYTHON, or our own environment, which is created if it is missing. */
export async function loraPython(notice: (line: string) => void): Promise<string> {
  const own = process.env.MANYWORLDS_LORA_PYTHON
  if (own === undefined || own === '') return ensureEnvironment(loraNeeds(chosenTorch()), notice)
  if (existsSync(own)) return own
  throw new ManyworldsError(
    'PYTHON_MISSING',
    `MANYWORLDS_LORA_PYTHON is ${own}, which does not exist; correct it, or unset it to use the environment of \`manyworlds setup lora\``,
  )
}
