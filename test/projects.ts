/**
 * Which test file belongs to which Vitest project: vitest.config.ts reads it, and CONTRIBUTING.md explains the projects. A file
 * that is not listed here belongs to `process`.
 */

/** Files by folder, as patterns. */
const tests = (folder: string, names: string) =>
  names.split(' ').map((name) => ['test', ...(folder === '' ? [] : [folder]), `${name}.test.ts`].join('/'))

/** Pure tests: no process, no thread, no dist/. Those that compute for more than two seconds are left to `process`. */
export const UNIT: readonly string[] = [
  ...tests('', 'blob-folder docs projects scan-v8 special-tasks'),
  ...tests('cli', 'chart'),
  ...tests('data', 'csv jsonl'),
  ...tests('environments', 'parse-action to-prompt'),
  ...tests('executor', 'budget deque load-buckets pace queue retry-decision turns verdict window'),
  ...tests('grade', 'compare intervals judgement summary'),
  ...tests('models', 'breaker cache-key chat-conversion completion-id conversations optional-peers response-format'),
  ...tests('nodes', 'address bundle-store channel line-limit'),
  ...tests('progress', 'displays render-runs render-task status-line summary tally text'),
  ...tests('protocol', 'split-wire'),
  ...tests('ray', 'words'),
  ...tests('redaction', 'redactor'),
  ...tests('spark', 'connect-operation connect-remote fit shares'),
  ...tests('store', 'body-delta same-value'),
  ...tests(
    'train',
    'advantages best-rollouts collection-ahead divergence gradient-learner-died learner-calls lora-batcher lora-requests lora-tool-calls loss-tally losses returns rl-trainer sampler sampler-mismatch softmax-core staleness-gate tinker-wire token-lines value-loss',
  ),
  ...tests('trajectory', 'digest lossless-json numbers token-rows trajectory'),
  ...tests('view', 'events histogram markdown-pieces needle pulse run-sort shown-value task-table timeline'),
]

/** Tests that need Java, for a Spark. */
export const SPARK: readonly string[] = [
  ...tests('spark', 'cluster connect data data-patience in-local'),
  ...tests('cli', 'run-spark'),
]

/** Tests that start Ray or Spark. */
export const CLUSTER: readonly string[] = [
  ...SPARK,
  ...tests('ray', 'actor cluster in-local'),
  ...tests('', 'examples'),
]
