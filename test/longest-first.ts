import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Files whose tests take minutes, the longest first. The size of a file, by which Vitest goes, says nothing about that. */
const LONG = [
  'spark/cluster',
  'spark/data.',
  'spark/in-local',
  'spark/connect.',
  'cli/run-spark',
  'examples',
  'nodes/storm',
]

const rank = ({ moduleId }: TestSpecification) => {
  const place = LONG.findIndex((name) => moduleId.includes(`/test/${name}`))
  return place < 0 ? LONG.length : place
}

/** With a few files at a time, a long one that comes last would run alone. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    return sorted.toSorted((a, b) => rank(a) - rank(b))
  }
}
