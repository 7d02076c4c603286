import type { ArgsOf, Option, Spec } from '../../frame/command.ts'
import { nodeAccess } from '../../options/node-access.ts'
import { doctors } from './engine-doctors.ts'

export const doctorSpec = {
  name: 'doctor',
  summary: 'Check this machine: what is there, what is missing, what to do',
  about: [
    [
      'Looks for Node, npm, Python, uv and what engines need, and whether run files can be written here. The local engine needs only Node and a folder for its run files.',
      ...doctors.map(({ about }) => about),
    ]
      .filter((sentence) => sentence !== undefined)
      .join(' '),
    doctors
      .map(({ asks }) => asks)
      .filter((sentence) => sentence !== undefined)
      .join(' '),
  ],
  positionals: {},
  options: {
    ...namingOptions(),
    tokenFile: {
      ...nodeAccess.tokenFile,
      description: 'the token of the nodes, or of the cluster; default: the file that MANYWORLDS_TOKEN_FILE names',
    },
    tlsCa: nodeAccess.tlsCa,
    json: { type: 'flag', description: 'print one JSON object' },
  },
  examples: [
    { about: 'a table to read', line: 'manyworlds doctor' },
    { about: 'in CI, before anything else', line: 'manyworlds doctor --json' },
    ...doctors.map(({ example }) => example).filter((example) => example !== undefined),
  ],
  exitCodes: {
    0: 'what the local engine needs is there, and what was named can be used',
    1: 'something that it needs is missing, or a node or the cluster cannot be used',
  },
} as const satisfies Spec

export type DoctorArgs = ArgsOf<typeof doctorSpec>

/** Options that name what is to be asked. One at a time: the token beside it is for that one. */
function namingOptions(): Readonly<Record<string, Option>> {
  const all: Record<string, Option> = {}
  for (const { options = {} } of doctors)
    for (const [key, option] of Object.entries(options)) all[key] = { ...option, excludes: Object.keys(all) }
  return all
}
