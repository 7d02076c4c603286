import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * Files whose tests take a minute or more, in the order of their start. The size of a file, by which Vitest goes, says nothing
 * about that: a test of an engine is three lines. One in three computes (clusters, hostile-files, examples); the others mostly
 * wait.
 */
const LONG = [
  ...['spark/cluster', 'nodes/bad-host', 'nodes/faults', 'ray/cluster', 'nodes/namespaces', 'nodes/kit'],
  ...[
    'spark/in-local',
    'store/hostile-files',
    'engines/local-engine',
    'docs/examples',
    'spark/data-patience',
    'nodes/storm',
  ],
  ...[
    'ray/in-local',
    'nodes/code',
    'store/storm',
    'spark/data.',
    'executor/reliability',
    'nodes/fuzz',
    'spark/connect.',
  ],
  ...['cli/init'],
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
