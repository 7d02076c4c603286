/** `; did you mean "…"?` with the candidate that was probably meant by `typed`, or an empty text. */
export function didYouMean(typed: string, candidates: readonly string[]): string {
  const meant = nearest(typed, candidates)
  return meant === undefined ? '' : `; did you mean "${meant}"?`
}

/**
 * Other tools' names for our options, which are too different to be found as typos. The first names of each line are ours, in
 * configurations and on the command line.
 */
const SYNONYMS: readonly (readonly string[])[] = [
  ['workerNum', 'workers', 'numWorkers', 'nWorkers', 'maxWorkers', 'workerCount', 'parallelism', 'processes', 'jobs'],
  ['concurrency', 'concurrent', 'maxConcurrency', 'maxConcurrent', 'parallel', 'threads', 'tasksPerWorker'],
  ['timeoutMs', 'timeout', 'taskTimeout', 'timeLimit', 'timeoutSeconds'],
  ['maxAttempts', 'retries', 'maxRetries', 'retry', 'attempts', 'tries'],
  ['deadlineMs', 'deadline', 'runTimeout', 'maxDuration'],
  ['maxCostUsd', 'maxCost', 'budget', 'costLimit'],
  ['engine', 'engineName', 'backend', 'executor', 'cluster'],
  ['store', 'dir', 'storePath', 'storage', 'database', 'outputDir'],
  ['showLogs', 'logs', 'verbose'],
  ['rollouts', 'repeats', 'repeat', 'samples', 'numSamples'],
  ['limit', 'maxTasks', 'maxSamples'],
  ['signal', 'abortSignal', 'abort'],
  ['redact', 'secrets', 'mask'],
  ['env', 'environment', 'envVars', 'variables'],
  ['runId', 'runName', 'id', 'name'],
  ['maxOutputTokens', 'maxCompletionTokens'],
  ['baseURL', 'url', 'endpoint', 'apiBase'],
]

function synonym(plain: string, candidates: readonly string[]): string | undefined {
  const meant = SYNONYMS.find((words) => words.some((word) => letters(word) === plain))
  return meant && candidates.find((candidate) => meant.some((word) => letters(word) === letters(candidate)))
}

export function nearest(typed: string, candidates: readonly string[]): string | undefined {
  const plain = letters(typed)
  const same = candidates.find((candidate) => letters(candidate) === plain)
  const known = same ?? synonym(plain, candidates)
  if (known !== undefined) return known
  const [best] = candidates
    .map((candidate) => ({ candidate, distance: distance(plain, letters(candidate)) }))
    .sort((a, b) => a.distance - b.distance)
  if (best !== undefined && best.distance <= (plain.length < 5 ? 1 : 2)) return best.candidate
  // --timeout-ms for --timeout, --dur for --durability. Too many names begin with the same one or two letters.
  return plain.length < 3
    ? undefined
    : candidates.find((candidate) => {
        const other = letters(candidate)
        return other !== '' && (other.startsWith(plain) || plain.startsWith(other))
      })
}

/** Makes `--maxAttempts`, `--max_attempts` and `--max-attempts` equal. */
const letters = (text: string) => text.toLowerCase().replaceAll(/[^\p{L}\p{N}]/gu, '')

/** Longer words are not typos, and comparing them takes quadratic time. */
const MAX_LETTERS = 100

/** How many letters were added, left out, mistaken or swapped with their neighbor. */
function distance(a: string, b: string): number {
  if (a.length > MAX_LETTERS || b.length > MAX_LETTERS) return a === b ? 0 : Number.POSITIVE_INFINITY
  const rows = [Array.from({ length: b.length + 1 }, (_, j) => j)]
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const other = a[i - 1] === b[j - 1] ? 0 : 1
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      row.push(
        Math.min(
          row[j - 1]! + 1,
          rows[i - 1]![j]! + 1,
          rows[i - 1]![j - 1]! + other,
          swapped ? rows[i - 2]![j - 2]! + 1 : Number.POSITIVE_INFINITY,
        ),
      )
    }
    rows.push(row)
  }
  return rows[a.length]![b.length]!
}
