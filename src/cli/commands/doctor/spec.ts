import type { ArgsOf, Option, Spec } from '../../frame/command.ts'
import { nodeAccess } from '../../options/node-access.ts'
import { doctors } from './engine-doctors.ts'

export const doctorSpec = {
  name: 'doctor',
  summary: 'Check this machine: what is installed, what is missing, what to do',
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
    { about: 'as a first step in CI', line: 'manyworlds doctor --json' },
    ...doctors.map(({ example }) => example).filter((example) => example !== undefined),
  ],
  exitCodes: {
    0: 'the local engine works here, and the named nodes or cluster can be used',
    1: 'something that the local engine needs is missing, or a node or the cluster cannot be used',
  },
} as const satisfies Spec

export type DoctorArgs = ArgsOf<typeof doctorSpec>

/** Options that name nodes or a cluster. They exclude each other, because a typed token is for one of them only. */
function namingOptions(): Readonly<Record<string, Option>> {
  const all: Record<string, Option> = {}
  for (const { options = {} } of doctors)
    for (const [key, option] of Object.entries(options)) all[key] = { ...option, excludes: Object.keys(all) }
  return all
}
