import type { ArgsOf, Spec } from '../../frame/command.ts'
import { setups } from './engine-setups.ts'

const engines = [...setups.values()]
const withAddress = `with ${[...setups]
  .filter(([, { takes }]) => takes.includes('address'))
  .map(([name]) => name)
  .join(' or ')}`

export const setupSpec = {
  name: 'setup',
  summary: 'Make a Python environment: for an engine, a kind of worlds, or LoRA',
  about: [
    'Engines and worlds make it automatically when they first need it; this command makes and tests it beforehand. It is made with uv, in ~/.cache/manyworlds/python; the Python of the system is not changed. If it already exists, it is only tested.',
    ...engines.map(({ about }) => about).filter((text) => text !== undefined),
    'gymnasium and reasoning-gym are for pythonWorld(): run the command on each machine that runs workers, so that the first episodes there do not wait. reasoning-gym needs a C compiler.',
    'lora is for training language models: PyTorch, transformers and PEFT. PyTorch comes from the package registry, on Linux with CUDA: 2.8 GB to download, 5 GB on disk. Other builds (--torch) come from the index of PyTorch, and are not pinned by a lock file.',
  ],
  positionals: {
    what: {
      value: 'WHAT',
      description: [
        ...[...setups].map(([name, { for: purpose }]) => `${name}: ${purpose}`),
        ...['gymnasium, reasoning-gym: for worlds of this kind', 'lora: for loraCore()'],
      ].join('; '),
      choices: [...setups.keys(), 'gymnasium', 'reasoning-gym', 'lora'],
    },
  },
  options: {
    version: {
      type: 'text',
      value: 'VERSION',
      description: `the version of ${engines.map(({ title }) => title).join(' or ')}: ${engines.map(({ version }) => version).join(', ')}; default: the tested version`,
      excludes: ['address'],
    },
    address: {
      type: 'text',
      value: 'ADDRESS',
      description: `${withAddress}: the versions that the cluster at this address has: head:6379`,
    },
    tokenFile: {
      type: 'text',
      value: 'FILE',
      description: 'the token of that cluster; default: the file that RAY_AUTH_TOKEN_PATH names',
      suggest: 'files',
      needs: 'address',
    },
    packages: {
      type: 'text',
      value: 'A,B',
      description: 'with gymnasium and reasoning-gym: additional packages that a world needs: "gymnasium[box2d],swig"',
    },
    torch: {
      type: 'text',
      value: 'BUILD',
      description:
        'with lora: the build of PyTorch. pypi: the build of the package registry; auto: the build for the GPU driver; cpu, cu128, …; default: as set up before, or pypi',
    },
    force: { type: 'flag', description: 'make it again' },
  },
  examples: [
    ...engines.flatMap(({ examples }) => examples),
    { about: 'the environment of Gymnasium worlds', line: 'manyworlds setup gymnasium' },
    { about: 'the environment for training language models', line: 'manyworlds setup lora' },
  ],
  exitCodes: { 0: 'the environment works', 1: 'it could not be made or does not work, or the cluster does not answer' },
} as const satisfies Spec

export type SetupArgs = ArgsOf<typeof setupSpec>
