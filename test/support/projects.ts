/**
 * Which test file belongs to which Vitest project: vitest.config.ts reads it, and CONTRIBUTING.md explains the projects. A file
 * that is not listed here belongs to `process`.
 */

/** Files by folder, as patterns. */
const tests = (folder: string, names: string) => names.split(' ').map((name) => `test/${folder}/${name}.test.ts`)

/** Pure tests: no process, no thread, no dist/. Those that compute for more than two seconds are left to `process`. */
export const UNIT: readonly string[] = [
  ...tests('cli', 'chart'),
  ...tests('data', 'csv jsonl'),
  ...tests('engines', 'line-limit worker-output'),
  ...tests('docs', 'docs'),
  ...tests('environments', 'parse-action to-prompt'),
  ...tests('executor', 'budget deque load-buckets pace pings queue retry-decision special-tasks turns verdict window'),
  ...tests('grade', 'compare intervals judgement summary'),
  ...tests('models', 'breaker cache-key chat-conversion completion-id conversations optional-peers response-format'),
  ...tests('nodes', 'address bundle-store called-nodes channel'),
  ...tests('progress', 'displays render-runs render-task status-line summary tally text'),
  ...tests('protocol', 'scan-v8 split-wire'),
  ...tests('ray', 'actors words'),
  ...tests('redaction', 'redactor'),
  ...tests('spark', 'connect-operation connect-remote fit shares'),
  ...tests('store', 'body-delta same-value'),
  ...tests('support', 'projects'),
  ...tests('system', 'blob-folder'),
  ...tests(
    'train',
    'advantages best-rollouts collection-ahead divergence gradient-learner-died learner-calls lora-batcher lora-requests lora-tool-calls loss-tally losses returns rl-trainer sampler sampler-mismatch softmax-core staleness-gate tinker-wire token-lines value-loss',
  ),
  ...tests('trajectory', 'digest lossless-json numbers token-rows trajectory'),
  ...tests('view', 'events histogram markdown-pieces needle pulse run-sort shown-value task-table timeline'),
]

/** Tests that need Java, for a Spark. */
export const SPARK: readonly string[] = [...tests('spark', 'cluster connect data')]

/** Tests of `npm run test:storm` alone. */
export const ONLY_STORM: readonly string[] = [
  ...tests('nodes', 'namespaces'),
  // Each starts a Spark or Ray of its own. `npm test` starts one too, in spark/data, and in spark/connect for the commands.
  ...tests('ray', 'in-local'),
  ...tests('spark', 'data-patience in-local server-gone'),
]

/** What the storm runs: these alone, and all of what `npm test` runs a share of. */
export const STORM: readonly string[] = [
  ...ONLY_STORM,
  ...tests('executor', 'hostile-links requests requests-property'),
  ...tests('nodes', 'bad-host fuzz session storm'),
  ...tests('protocol', 'hostile-frames'),
  ...tests('ray', 'cluster'),
  ...tests('spark', 'cluster'),
  ...tests('docs', 'examples'),
  ...tests('engines', 'hostile-process'),
  ...tests('train', 'overlapped prompts-resume sweep tool-desk-pipeline training-resume'),
  ...tests('store', 'hostile-files hostile-store steps-storm storm'),
  ...tests('storm', 'kill-storm'),
]

/** Tests that start Ray or Spark. */
export const CLUSTER: readonly string[] = [...SPARK, ...tests('ray', 'actor cluster'), ...tests('docs', 'examples')]
