import type { ArgsOf, Spec } from '../command.ts'

export const doctorSpec = {
  name: 'doctor',
  summary: 'Check this machine: what is there, what is missing, what to do',
  about: [
    'Looks for Node, npm, Python, uv, Ray, Java and Spark, and whether run files can be written here. The local engine needs only Node and a folder for its run files; the rest is for engines to come.',
  ],
  positionals: {},
  options: { json: { type: 'flag', description: 'print one JSON object' } },
  examples: [
    { about: 'a table to read', line: 'manyworlds doctor' },
    { about: 'in CI, before anything else', line: 'manyworlds doctor --json' },
  ],
  exitCodes: { 0: 'what the local engine needs is there', 1: 'something that it needs is missing' },
} as const satisfies Spec

export type DoctorArgs = ArgsOf<typeof doctorSpec>
