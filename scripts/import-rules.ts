/**
 * Checks which folder of src/ imports which: part of `npm run check`. The rules are the table below.
 *
 *     node scripts/import-rules.ts
 *
 * An import of types alone is erased when the package is built, so it costs nothing at run time; but it still ties two ideas
 * together. What a folder may not know at all, it may not name in types either.
 */

import { globSync, readFileSync } from 'node:fs'
import { dirname, join, matchesGlob, relative } from 'node:path'
import { ownPackage } from '../src/own-package.ts'

interface Rule {
  /** Folders whose code it may load. */
  readonly loads: readonly string[]
  /** Folders whose types it may import besides. */
  readonly types?: readonly string[]
}

/** Values, texts and trajectories: they know nothing of runs, so anybody may import them. */
const BASE = ['protocol', 'text', 'trajectory']
const EVERYTHING: Rule = { loads: ['*'] }
/** The command line's part of an engine is in the engine's folder: its options, what `doctor` checks, what `setup` does. */
const ENGINE_CLI = 'engines/**/{cli,cli-parts,doctor-part,setup-part,set-up,check-*,ask-cluster,typed-remote}.ts'

/**
 * By folder or pattern; a pattern goes first, then the longest prefix. Modules directly in src/ may be imported by all; what they import is the rule `.`
 *
 * - `protocol`, `network`, `engines`, `host`, `executor` and `store` move tasks and keep them. They know nothing of
 *   environments (`agents`), models or training.
 * - A worker loads `worker` and what that loads, but not the driver's side: `runners`, `executor`, `store`, `progress`.
 * - Nothing imports `cli`, except an engine's part of the command line.
 */
const RULES: Readonly<Record<string, Rule>> = {
  // Values and texts.
  '.': {
    loads: [...BASE, 'engines', 'grade', 'models', 'models/worker', 'redaction'],
    types: ['agents', 'bundle', 'progress'],
  },
  trajectory: { loads: BASE, types: ['grade'] },
  protocol: { loads: BASE },
  text: { loads: BASE, types: ['grade'] },
  data: { loads: BASE },
  grade: { loads: [...BASE, 'data'] },
  python: { loads: BASE },
  redaction: { loads: BASE },
  progress: { loads: [...BASE, 'grade'], types: ['train'] },

  // Where workers run.
  network: { loads: BASE, types: ['engines'] },
  bundle: { loads: BASE, types: ['engines'] },
  [ENGINE_CLI]: { loads: [...BASE, 'cli', 'engines', 'network', 'python'] },
  engines: {
    loads: [...BASE, 'bundle', ENGINE_CLI, 'engines/inline', 'network', 'python', 'redaction'],
    types: ['cli', 'host'],
  },
  // It runs the worker's side in the driver's process.
  'engines/inline': { loads: [...BASE, 'engines', ENGINE_CLI, 'worker'] },
  host: { loads: [...BASE, 'bundle', 'engines', 'network'] },

  // The worker's side.
  worker: { loads: [...BASE, 'models', 'models/worker'] },
  'models/worker': { loads: [...BASE, 'models', 'worker'] },

  // The driver's side.
  executor: { loads: [...BASE, 'bundle', 'redaction'], types: ['engines'] },
  store: { loads: [...BASE, 'executor', 'grade', 'redaction'], types: ['import'] },
  models: { loads: [...BASE, 'data', 'redaction'] },
  'models/driver': { loads: [...BASE, 'data', 'models', 'progress', 'redaction'], types: ['executor'] },
  runners: {
    loads: [
      ...BASE,
      'data',
      'engines',
      'executor',
      'grade',
      'models',
      'models/driver',
      'progress',
      'redaction',
      'store',
    ],
    types: ['bundle', 'train'],
  },

  // Built on runs.
  agents: { loads: [...BASE, 'grade', 'models', 'models/worker', 'python'], types: ['train'] },
  train: {
    loads: [
      ...BASE,
      'agents',
      'data',
      'grade',
      'models',
      'models/driver',
      'progress',
      'python',
      'redaction',
      'runners',
      'store',
    ],
  },
  export: { loads: [...BASE, 'grade', 'models/worker', 'store', 'train'] },
  import: { loads: [...BASE, 'data', 'export'], types: ['grade'] },
  'rollout-server': { loads: [...BASE, 'export', 'grade', 'models', 'models/driver', 'network', 'runners'] },
  // It reads stores, and knows nothing of how runs are executed.
  view: { loads: [...BASE, 'grade', 'models', 'network', 'store', 'train'] },
  vitest: { loads: [...BASE, 'grade'] },
  testing: EVERYTHING,
  cli: EVERYTHING,
  'index.ts': EVERYTHING,
  'signature-types.ts': EVERYTHING,
}

interface Exception {
  /** A file, or a folder. */
  readonly from: string
  readonly to: string
  readonly reason: string
}

/** Imports that break a rule, each with its reason. One that is no longer needed is reported too. */
const EXCEPTIONS: readonly Exception[] = [
  { from: 'bundle/load-child.ts', to: 'worker/script-guard.ts', reason: 'loads the bundle as a worker would' },
  { from: 'engines/spark/error-advice.ts', to: 'host/slot-instructions.ts', reason: 'recognizes what a slot prints' },
  {
    from: 'executor/executor.ts',
    to: 'models/secrets.ts',
    reason: 'a public class on top of runs, in this folder for its name',
  },
  { from: 'executor/executor.ts', to: 'runners/load-driver.ts', reason: 'as above' },
  { from: 'executor/executor.ts', to: 'runners/push-source.ts', reason: 'as above' },
  {
    from: 'engines/spark/data/data-progress.ts',
    to: 'runners/run-host.ts',
    reason: 'shows progress by default under the command line',
  },
  { from: 'executor/suspects.ts', to: 'worker/watchdog.ts', reason: 'the type of what the watchdog reports' },
  {
    from: 'host/driver-session.ts',
    to: 'worker/bundles.ts',
    reason: 'the name of the file from which a worker imports its bundle',
  },
  { from: 'locked-folder.ts', to: 'store/lock.ts', reason: 'the same lock, on a folder' },
  {
    from: 'models',
    to: 'models/driver/limiter.ts',
    reason: 'types of what the limiter grants, which travel to workers',
  },
  {
    from: 'models/driver/try-model.ts',
    to: 'models/worker/chat-reply.ts',
    reason: '`manyworlds models test` makes the call that a worker would make',
  },
  { from: 'models/driver/try-model.ts', to: 'models/worker/chat-request.ts', reason: 'as above' },
  {
    from: 'models/wire-request.ts',
    to: 'models/worker/chat-request.ts',
    reason: 'shows a recorded request as it was sent',
  },
  {
    from: 'progress/training/tally.ts',
    to: 'train/pipeline/evaluation.ts',
    reason: 'compares evaluations as the pipeline does',
  },
  { from: 'redaction/redactor.ts', to: 'store/values.ts', reason: 'reads values as the store keeps them' },
  { from: 'store', to: 'models/driver/cache.ts', reason: 'types of the cached replies that the store keeps' },
  { from: 'store/index.ts', to: 'models/wire-request.ts', reason: 'public: part of manyworlds/runs' },
  { from: 'store/recording.ts', to: 'runners/step-watch.ts', reason: 'reports a step once it is committed' },
  { from: 'sub-agents.ts', to: 'worker/side-ask.ts', reason: 'sub-agents ask from inside a task' },
  { from: 'text/own-command.ts', to: 'store/run-path.ts', reason: 'quotes a store path in a suggested command' },
  { from: 'train/learner-process-main.ts', to: 'worker/watchdog-contract.ts', reason: 'ends as workers end' },
  {
    from: 'train/pipeline/learner-of-agent.ts',
    to: 'worker/load.ts',
    reason: 'loads the module of an agent as a worker does',
  },
  { from: 'train/pipeline/learner-of-agent.ts', to: 'worker/load-error.ts', reason: 'as above' },
  { from: 'worker', to: 'engines/frames.ts', reason: 'the other end of the frames that engines carry' },
]

/** Says whether this process is a worker: code of both sides asks. */
const OPEN = ['worker/role.ts']

const source = join(ownPackage.folder, 'src')
const IMPORT =
  /^(?:import|export)\s+(?<type>type\s)?[^'"]*?from\s+'(?<from>\.[^']+)'|import\('(?<lazy>\.[^']+)'\)|^import\s+'(?<bare>\.[^']+)'/gm

interface Import {
  readonly from: string
  readonly to: string
  readonly type: boolean
}

function importsOf(file: string): Import[] {
  const text = readFileSync(join(source, file), 'utf8')
  return [...text.matchAll(IMPORT)].map(({ groups }) => {
    const { type, from, lazy, bare } = groups as Record<string, string | undefined>
    return {
      from: file,
      to: relative(source, join(source, dirname(file), from ?? lazy ?? bare!)),
      type: type !== undefined,
    }
  })
}

const folders = Object.keys(RULES).toSorted((a, b) => b.length - a.length)
/** The folder whose rule a file follows. */
const folderOf = (file: string) =>
  (matchesGlob(file, ENGINE_CLI) ? ENGINE_CLI : undefined) ??
  folders.find((folder) => file === folder || file.startsWith(`${folder}/`)) ??
  (file.includes('/') ? undefined : '.')

function broken({ from, to, type }: Import): boolean {
  const [here, there] = [folderOf(from)!, folderOf(to)]
  if (there === here || there === '.' || OPEN.includes(to)) return false
  const { loads, types = [] } = RULES[here]!
  return there === undefined || !(loads.includes('*') || loads.includes(there) || (type && types.includes(there)))
}

const files = globSync('**/*.ts', { cwd: source })
const problems: string[] = files
  .filter((file) => folderOf(file) === undefined)
  .map((file) => `src/${file}: its folder has no rule; add one`)
const used = new Set<Exception>()
for (const found of files
  .filter((file) => folderOf(file) !== undefined)
  .flatMap(importsOf)
  .filter(broken)) {
  const exception = EXCEPTIONS.find(({ from, to }) => `${found.from}/`.startsWith(`${from}/`) && to === found.to)
  if (exception !== undefined) used.add(exception)
  else
    problems.push(
      `src/${found.from} imports ${found.type ? 'types of ' : ''}src/${found.to}, but ${folderOf(found.from)} may not import ${folderOf(found.to)}`,
    )
}
for (const exception of EXCEPTIONS)
  if (!used.has(exception))
    problems.push(`the exception ${exception.from} → ${exception.to} is not needed anymore; remove it`)

if (problems.length > 0) {
  console.error(
    `${problems.toSorted().join('\n')}\n\nThe rules are in scripts/import-rules.ts; CONTRIBUTING.md explains them.`,
  )
  process.exitCode = 1
}
