import { createRequire } from 'node:module'
import { sep } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { Placement } from '../engines/engine.ts'
import { ARGV_VARIABLE, WORKER_VARIABLE } from '../worker/role.ts'

/** Variables with the keys of model providers. Workers get them only if the run's `env` says so. */
const MODEL_KEY =
  /^(OPENAI|ANTHROPIC|AZURE(_OPENAI)?|GOOGLE(_GENERATIVE_AI)?|GEMINI|VERTEX|MISTRAL|GROQ|COHERE|DEEPSEEK|XAI|TOGETHER(_AI)?|FIREWORKS|PERPLEXITY|OPENROUTER|REPLICATE|CEREBRAS|DEEPINFRA|MOONSHOT|DASHSCOPE|HUGGINGFACE|AI_GATEWAY)_API_(KEY|TOKEN)$|^(HF_TOKEN|REPLICATE_API_TOKEN|HUGGING_FACE_HUB_TOKEN)$/

/** Other names of secrets: of clouds, code hosts, registries and databases. `MAX_TOKENS` and `TOKENIZERS_PARALLELISM` are none. */
const SECRET_NAME =
  /(^|_)(TOKEN|SECRET|PASS(WORD|WD|PHRASE)?|PWD|CREDENTIALS?|APIKEY|PAT|DSN)(_|$)|(^|_)KEY(_(ID|FILE|PEM|BASE64))?$|(^|_)(DATABASE|DB|REDIS|MONGO(DB)?|POSTGRES(QL)?|MYSQL|AMQP|WEBHOOK)_UR[LI]$|^PGPASSWORD$|^SSH_AUTH_SOCK$/i
/** Workers need them: the working directories of a shell, our own variables, and the way to the network. */
const NO_SECRET = /^(PWD|OLDPWD|MANYWORLDS_\w+|(https?|all)_proxy)$/i
/** A URL with a password. */
const PASSWORD_IN_URL = /^[a-z][\w+.-]*:\/\/[^\s/@]*:[^\s/@]+@/i

/** Flags that concern the driver alone: a debugger's port, a watcher, a test runner, code on the command line. */
const DRIVER_FLAG = /^--?(inspect|watch|test|eval|print|check|interactive|input-type|e$|p$|pe$|c$|i$)/
const FLAGS_WITH_VALUE =
  /^(-e|--eval|-p|--print|-pe|--input-type|--watch-path|--watch-kill-signal|--test-(?!only$|force-exit$|update-snapshots$)[a-z-]+|--inspect-port|--inspect-publish-uid)$/

/** Set by --watch; if it is set, every thread posts the modules that it imports to its parent. */
const WATCH_VARIABLE = 'WATCH_REPORT_DEPENDENCIES'

/** Flags that mean the same on another machine: no files, no packages, and complete in one word. */
const TRAVELS =
  /^--(max-old-space-size|max-semi-space-size|stack-size|stack-trace-limit|expose-gc|no-warnings|unhandled-rejections|dns-result-order)(=|$)/

/** Whether a variable looks like a secret, by its name or its value. */
export const isSecretVariable = (name: string, value: string): boolean =>
  MODEL_KEY.test(name) || (!NO_SECRET.test(name) && (SECRET_NAME.test(name) || PASSWORD_IN_URL.test(value)))

/** What a worker on this machine is started with. */
export interface LocalPlacement extends Omit<Placement, 'workers'> {
  /** Variables that workers do not get. */
  readonly withheld: readonly string[]
  /** The same text for the same placement: what a worker that is already running cannot change. */
  readonly identity: string
}

let last: LocalPlacement | undefined

/**
 * The same object for the same environment, so that a call in a tight loop does not pay for it again. `withhold`: names of variables
 * that are kept from the workers, unless `extraEnv` has them.
 */
export function placementOf(
  extraEnv: Readonly<Record<string, string | undefined>>,
  output: Placement['output'],
  withhold: readonly string[] = [],
): LocalPlacement {
  const identity = [
    output,
    process.cwd(),
    JSON.stringify([process.argv, process.execArgv, extraEnv, withhold]),
    JSON.stringify(process.env),
  ].join('\0')
  if (last?.identity !== identity) last = makePlacement(extraEnv, output, withhold, identity)
  return last
}

function makePlacement(
  extraEnv: Readonly<Record<string, string | undefined>>,
  output: Placement['output'],
  withhold: readonly string[],
  identity: string,
): LocalPlacement {
  const env: Record<string, string> = {}
  const withheld: string[] = []
  for (const [name, value] of Object.entries(process.env)) {
    if (value === undefined || name === WORKER_VARIABLE || name === WATCH_VARIABLE) continue
    if ((isSecretVariable(name, value) || withhold.includes(name)) && extraEnv[name] === undefined) withheld.push(name)
    else env[name] = value
  }
  // Two processes cannot listen for a debugger on one port, and --inspect-brk would wait forever.
  if (env.NODE_OPTIONS !== undefined) env.NODE_OPTIONS = env.NODE_OPTIONS.replaceAll(/(?<!\S)--inspect\S*/g, '')
  for (const [name, value] of Object.entries(extraEnv)) if (value !== undefined) env[name] = value
  env[WORKER_VARIABLE] = '1'
  // The user's modules see the driver's command line.
  env[ARGV_VARIABLE] = JSON.stringify(process.argv)
  const extension = import.meta.url.endsWith('.ts') ? '.ts' : '.js'
  return {
    workerEntry: fileURLToPath(new URL(`../worker/boot${extension}`, import.meta.url)),
    execArgv: workerFlags(process.execArgv),
    cwd: process.cwd(),
    env,
    output,
    remote: {
      execArgv: workerFlags(process.execArgv).filter((flag) => TRAVELS.test(flag)),
      env: {
        ...Object.fromEntries(
          Object.entries(extraEnv).filter((entry): entry is [string, string] => entry[1] !== undefined),
        ),
        [WORKER_VARIABLE]: '1',
        [ARGV_VARIABLE]: JSON.stringify(process.argv),
      },
    },
    withheld,
    identity,
  }
}

export function workerFlags(execArgv: readonly string[]): string[] {
  const kept: string[] = []
  for (let i = 0; i < execArgv.length; i++) {
    const flag = execArgv[i]!
    if (!DRIVER_FLAG.test(flag)) kept.push(flag)
    else if (FLAGS_WITH_VALUE.test(flag)) i++
  }
  return kept
}

/**
 * The script that was started, as a URL; undefined in a REPL. Not a program of an installed package: a worker that
 * imported a test runner's would begin to run tests.
 */
export function entryScript(): string | undefined {
  const path = process.argv[1]
  if (path === undefined) return undefined
  try {
    // `node .` and `node script` leave the file name to module resolution.
    const found = createRequire(import.meta.url).resolve(path)
    return found.includes(`${sep}node_modules${sep}`) ? undefined : pathToFileURL(found).href
  } catch {
    return undefined
  }
}
