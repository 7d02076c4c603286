import { EngineName } from '../../run-config.ts'
import type { ArgsOf, Spec } from '../command.ts'
import { listRunIds } from '../run-ids.ts'
import { modelOptions } from './model-options.ts'
import { nodeAccess } from './node-access.ts'

const PLACE = 'Where and how many'
const NODES = 'Nodes'
const RAY = 'Ray'
const SPARK = 'Spark'
const ACCESS = 'To be let in by nodes or a cluster'
const MODELS = 'Language models'
const LIMITS = 'Limits'
const RECORD = 'The run and its file'
const OUTPUT = 'Output'

export const runSpec = {
  name: 'run',
  summary: 'Run a script, record the run, show its progress',
  about: [
    'Options override the RunConfig that the script gives to Runners. The run is recorded in a file under .manyworlds/runs, from which it can be resumed and looked at.',
    'Ctrl-C once stops gracefully: tasks that run may finish, what is finished is kept, and the command that resumes is printed. Ctrl-C twice stops at once.',
  ],
  positionals: {
    script: { value: 'SCRIPT', description: 'a TypeScript or JavaScript file that calls Runners', suggest: 'files' },
    scriptArgs: {
      value: 'ARG',
      description: 'for the script, which finds them in process.argv',
      afterDashes: true,
      suggest: 'files',
    },
  },
  options: {
    engine: {
      type: 'choice',
      choices: Object.values(EngineName),
      value: 'NAME',
      description: 'where the workers are: on this machine, on nodes, on a Ray cluster, or on a Spark cluster',
      group: PLACE,
    },
    workers: { type: 'integer', short: 'w', value: 'N', description: 'at most so many worker processes', group: PLACE },
    concurrency: { type: 'integer', short: 'c', value: 'N', description: 'tasks at once in each worker', group: PLACE },
    inLocal: {
      type: 'flag',
      description: 'with --engine ray or spark: start one on this machine, for this run',
      group: PLACE,
    },
    nodes: {
      type: 'text',
      value: 'A,B',
      description:
        'the addresses of nodes: worker1:5000, wss://worker2:5000; with --engine nodes, default: those that MANYWORLDS_NODES names',
      group: NODES,
    },
    listen: {
      type: 'text',
      value: 'HOST:PORT',
      description: 'let nodes join here while the run goes on, with "manyworlds node --connect"',
      group: NODES,
    },
    rayAddress: {
      type: 'text',
      value: 'ADDRESS',
      description: 'the Ray cluster: head:6379, ray://head:10001, or auto; asks for --engine ray',
      group: RAY,
      excludes: ['inLocal', 'nodes', 'listen'],
    },
    sparkRemote: {
      type: 'text',
      value: 'REMOTE',
      description:
        'the Connect server of the Spark cluster: sc://host:15002; asks for --engine spark; default with that: what SPARK_REMOTE says',
      group: SPARK,
      excludes: ['inLocal', 'nodes', 'listen', 'rayAddress'],
    },
    sparkMaster: {
      type: 'text',
      value: 'MASTER',
      description:
        'with --in-local: what the Spark that is started here runs on: local[4], spark://host:7077; asks for --engine spark',
      group: SPARK,
      needs: 'inLocal',
      excludes: ['nodes', 'listen'],
    },
    advertiseHost: {
      type: 'text',
      value: 'HOST',
      description:
        'with --engine spark: the name or address under which executors reach this machine; default: the one that it calls the cluster from',
      group: SPARK,
      excludes: ['nodes', 'listen', 'rayAddress'],
    },
    tokenFile: {
      ...nodeAccess.tokenFile,
      description:
        'the token of the nodes, or of the cluster; default: the file that MANYWORLDS_TOKEN_FILE or RAY_AUTH_TOKEN_PATH names',
      group: ACCESS,
    },
    tlsCa: { ...nodeAccess.tlsCa, group: ACCESS },
    tlsCert: {
      ...nodeAccess.tlsCert,
      description: 'our own certificate, PEM: for --listen, and for nodes and Connect servers that ask for one',
      group: ACCESS,
    },
    tlsKey: { ...nodeAccess.tlsKey, group: ACCESS },
    model: { ...modelOptions.model, group: MODELS },
    models: { ...modelOptions.models, group: MODELS },
    timeout: {
      type: 'duration',
      value: 'DURATION',
      description: 'how long a task may run, per attempt: 30s, 2m, 500ms',
      group: LIMITS,
    },
    maxAttempts: { type: 'integer', value: 'N', description: 'how often a task is tried', group: LIMITS },
    deadline: {
      type: 'duration',
      value: 'DURATION',
      description: 'for the whole run; what is not done by then is cancelled',
      group: LIMITS,
    },
    maxCost: {
      type: 'number',
      above: 0,
      value: 'USD',
      description: 'what the run may cost, as its steps report it; then nothing new is started',
      group: LIMITS,
    },
    maxTokens: { type: 'integer', value: 'N', description: 'the same for tokens, in and out together', group: LIMITS },
    grace: {
      type: 'duration',
      value: 'DURATION',
      default: '10s',
      description: 'how long running tasks may still take after Ctrl-C',
      group: LIMITS,
    },
    rollouts: {
      type: 'integer',
      value: 'N',
      description: 'run every task so many times, as one group',
      group: RECORD,
    },
    limit: {
      type: 'integer',
      value: 'N',
      description: 'run only a sample of so many tasks; --seed says which',
      group: LIMITS,
    },
    sampleSeed: {
      type: 'integer',
      value: 'N',
      min: Number.MIN_SAFE_INTEGER,
      description: 'for --limit: which tasks, if --seed is to change without them',
      group: LIMITS,
      needs: 'limit',
    },
    runId: { type: 'text', value: 'ID', description: 'the name of a new run', group: RECORD },
    resume: {
      type: 'text',
      value: 'ID',
      description:
        'go on with this run (an id, its beginning, "last", a path): tasks that have their answer do not run again; "auto": with the run that --run-id names, if there is one',
      group: RECORD,
      suggest: async () => ['last', 'auto', ...(await listRunIds())],
      excludes: ['noStore'],
    },
    retryFailed: {
      type: 'flag',
      description: 'with --resume: run tasks that failed, timed out or crashed again',
      group: RECORD,
      needs: 'resume',
    },
    seed: {
      type: 'integer',
      value: 'N',
      min: Number.MIN_SAFE_INTEGER,
      description: 'for ctx.random, and for the sample of --limit',
      group: RECORD,
    },
    store: {
      type: 'text',
      alias: 'dir',
      value: 'PATH',
      description: 'a folder for the run file, or a path that ends with .sqlite',
      group: RECORD,
      suggest: 'files',
      excludes: ['noStore'],
    },
    noStore: { type: 'flag', description: 'write no run file', group: RECORD },
    durability: {
      type: 'choice',
      choices: ['normal', 'full'],
      value: 'HOW',
      description: 'normal: what is reported survives a crash of every process; full: and a loss of power',
      group: RECORD,
      excludes: ['noStore'],
    },
    cache: {
      type: 'flag',
      description: 'use answers of models that the store has, and store new ones',
      group: RECORD,
      excludes: ['noStore'],
    },
    replay: {
      type: 'flag',
      description: 'call no model: use answers that the store has, and fail where there is none',
      group: RECORD,
      excludes: ['cache', 'noStore'],
    },
    failUnder: {
      ...{ type: 'number', above: 0, max: 0.9999, value: 'RATE' },
      description: 'fail unless at least this share of tasks is solved, with 95 % confidence: 0.9',
      group: OUTPUT,
    },
    showLogs: { type: 'flag', description: 'print what tasks print, with their ids', group: OUTPUT },
    json: { type: 'flag', description: 'print progress and responses as lines of JSON', group: OUTPUT },
    quiet: { type: 'flag', short: 'q', description: 'print no progress and no summary', group: OUTPUT },
    noProgress: { type: 'flag', description: 'print no progress, but a summary at the end', group: OUTPUT },
  },
  examples: [
    { about: 'run a script as it is', line: 'manyworlds run agents.ts' },
    {
      about: 'eight workers, and at most a minute for each of three attempts at a task',
      line: 'manyworlds run agents.ts -w 8 --timeout 1m --max-attempts 3',
    },
    {
      about: 'on two nodes, with the token that they were started with',
      line: 'manyworlds run agents.ts --nodes worker1:5000,worker2:5000 --token-file token.txt',
    },
    { about: 'on a Ray cluster', line: 'manyworlds run agents.ts --ray-address head:6379' },
    {
      about: 'on a Spark cluster, with the token of its Connect server',
      line: 'manyworlds run agents.ts --spark-remote sc://spark:15002 --token-file token.txt',
    },
    { about: 'on a Spark that is started here', line: 'manyworlds run agents.ts --engine spark --in-local' },
    {
      about: 'go on after an interruption, and try again what failed',
      line: 'manyworlds run agents.ts --resume nightly-7 --retry-failed',
    },
    { about: 'again, with the answers that models gave last time', line: 'manyworlds run agents.ts --replay' },
    {
      about: 'with another model in the place of small, for a comparison',
      line: 'manyworlds run agents.ts --model small=big --run-id with-big',
    },
    { about: 'try it on 50 of its tasks', line: 'manyworlds run agents.ts --limit 50 --seed 1' },
    { about: 'arguments for the script stand after --', line: 'manyworlds run agents.ts --json -- --topic whales' },
  ],
  exitCodes: {
    0: 'every task succeeded; with --fail-under: enough tasks are solved',
    1: 'some tasks did not succeed, or the script failed',
    130: 'interrupted with Ctrl-C',
  },
} as const satisfies Spec

export type RunArgs = ArgsOf<typeof runSpec>
