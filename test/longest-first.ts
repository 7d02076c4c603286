import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * Files whose tests take a minute or more, in the order of their start: clusters, which compute, in turn with those that
 * mostly wait. The size of a file, by which Vitest goes, says nothing about that: a test of an engine is three lines.
 */
const LONG = [
  ...['spark/cluster', 'nodes/bad-host', 'ray/cluster', 'nodes/namespaces'],
  ...['spark/in-local', 'nodes/faults', 'spark/data.', 'nodes/loopback'],
  ...['examples', 'spark/data-patience', 'ray/in-local', 'local-engine', 'spark/connect.', 'cli/run-spark'],
  ...['store/hostile-files', 'store/storm', 'reliability', 'nodes/storm', 'nodes/code', 'nodes/fuzz', 'cli/init'],
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
