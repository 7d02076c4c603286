import { ManyworldsError } from '../../../errors.ts'
import { mustEndWithin } from '../../../guard-exit.ts'
import { isLoopback, showAddress } from '../../../network/address.ts'
import { listenWords } from '../../../network/error-words.ts'
import type { ServerTls } from '../../../network/gate.ts'
import { userToken, userTokenFile } from '../../../network/token.ts'
import type { RolloutRequest } from '../../../rollout-server/request.ts'
import { runGroups } from '../../../rollout-server/run-groups.ts'
import { type RolloutAnswer, serveRollouts } from '../../../rollout-server/serve.ts'
import type { RunConfig } from '../../../run-config.ts'
import type { RunControl } from '../../../runners/run-host.ts'
import { shutdown } from '../../../runners/runners.ts'
import { newRunId } from '../../../store/run-path.ts'
import { counted, duration } from '../../../text/quantities.ts'
import { say } from '../../../text/say.ts'
import { TOKEN_VARIABLE, tokenOf } from '../../options/access.ts'
import { serverTls } from '../../options/certificates.ts'
import { scriptOf } from '../../script/around-script.ts'
import { onlyOwnRuns } from '../../script/exports-of.ts'
import { readTypedModels } from '../../script/model-options.ts'
import { Naming } from '../../script/naming.ts'
import { typedConfig } from '../../script/typed-config.ts'
import { orUncaught } from '../../script/uncaught.ts'
import { loadServed, type ServedFile } from './served-agent.ts'
import type { RolloutServerArgs } from './spec.ts'

const MEGABYTE = 1024 * 1024
/** How long answers, workers and connections may take to finish after the rollouts. */
const CLOSE_MS = 10_000

/** Serves rollouts of an agent until it is stopped. */
export const run = (args: RolloutServerArgs): Promise<number> => orUncaught(serve(args))

async function serve(args: RolloutServerArgs): Promise<number> {
  const { host, port, quiet } = args
  const script = scriptOf(args.script)
  const configure = configuring(args)
  const tls = serverTls(args)
  const { token, where } = tokenFor(args, tls)
  const log = (line: string) => (quiet ? undefined : say(line))
  const runs = new Runs(script, configure)
  process.argv = [process.argv[0]!, script, ...args.scriptArgs]
  const served = await loadServed(script, args.agent)
  const server = await serveRollouts({
    ...{ host, port, token, tls, maxBodyBytes: args.maxBody * MEGABYTE, log: say },
    ...{ maxRequests: args.maxRequests, maxRollouts: args.maxRollouts },
    run: (request, signal) => runs.answer(served, request, signal, log),
  }).catch((cause: NodeJS.ErrnoException) => {
    const why = listenWords(cause)
    throw new ManyworldsError('ENGINE_FAILED', `cannot listen on ${showAddress({ host, port })}: ${why}`, { cause })
  })
  const address = `${tls ? 'https' : 'http'}://${showAddress({ host, port: server.port })}`
  say(`rollouts of agent '${served.agent.name}' at ${address}; the token is ${where}`)
  await stopped(runs, args.grace, () => server.close())
  await shutdown()
  return 0
}

/**
 * Options of the command line override those of the file. The plain `tokenFile` and `tls…` options are the server's;
 * those of the engine start with `engine`.
 */
function configuring(args: RolloutServerArgs): (config: RunConfig) => RunConfig {
  const engine = {
    ...{ tokenFile: args.engineTokenFile, tlsCa: args.engineTlsCa },
    ...{ tlsCert: args.engineTlsCert, tlsKey: args.engineTlsKey },
  }
  const none = { epochs: undefined, rollouts: undefined, seed: undefined, runId: undefined, resume: undefined }
  const off = { cache: false, replay: false, json: false, noProgress: false, view: false }
  const naming = new Naming({ runId: undefined, resume: undefined, retryFailed: false })
  return typedConfig({ ...args, ...engine, ...none, ...off }, readTypedModels(args), naming)
}

/** A token is always required: otherwise any local user could run the agent and read its answers. */
function tokenFor(
  { host, tokenFile }: RolloutServerArgs,
  tls: ServerTls | undefined,
): { readonly token: string; readonly where: string } {
  const given = tokenOf(tokenFile)
  if (!isLoopback(host)) {
    const refusing = `refusing to listen on ${host}, which other machines can reach,`
    if (given === undefined)
      throw new ManyworldsError(
        'CONFIG_INVALID',
        `${refusing} without a token: make one with \`manyworlds node token --out token.txt\`, and give --token-file token.txt here and to the trainer`,
      )
    if (tls === undefined)
      throw new ManyworldsError(
        'CONFIG_INVALID',
        `${refusing} without TLS: the token and all samples could be read on the network. Give --tls-cert and --tls-key`,
      )
  }
  return given === undefined
    ? { token: userToken(), where: `your own, in ${userTokenFile()}` }
    : { token: given, where: `in ${tokenFile ?? process.env[TOKEN_VARIABLE]}` }
}

/** The runs of requests, several at a time. */
class Runs {
  readonly #configure: (config: RunConfig) => RunConfig
  readonly #going = new Map<string, RunControl>()
  readonly #files = new Map<string, string | undefined>()
  /** Ids of the runs of requests. */
  readonly #own = new Set<string>()
  readonly #base = newRunId()
  #number = 0

  constructor(script: string, configure: (config: RunConfig) => RunConfig) {
    this.#configure = configure
    onlyOwnRuns(script, this.#own, {
      started: (control) => {
        this.#going.set(control.runId, control)
        this.#files.set(control.runId, control.file)
      },
      ended: ({ runId }) => {
        this.#going.delete(runId)
        return false
      },
    })
  }

  /** Starts no more runs; running ones have this long to finish. */
  stop(graceMs: number): number {
    const running = [...this.#going.values()].reduce((sum, control) => sum + control.running(), 0)
    for (const control of this.#going.values()) control.stop(graceMs)
    return running
  }

  async answer(
    { agent, config: own }: ServedFile,
    request: RolloutRequest,
    signal: AbortSignal,
    log: (line: string) => void,
  ): Promise<RolloutAnswer> {
    const runId = `${this.#base}.r${String(++this.#number).padStart(5, '0')}`
    const { resume: _, ...config } = this.#configure(own)
    const began = performance.now()
    this.#own.add(runId)
    try {
      const groups = await runGroups({ agent, config, request, runId, signal })
      const failed = groups.reduce((sum, { rollouts }) => sum + rollouts.filter(({ error }) => error).length, 0)
      const what = `${counted(groups.length, 'group')} of ${counted(request.rollouts, 'rollout')}`
      const how = signal.aborted
        ? 'cancelled, because the caller disconnected'
        : failed > 0
          ? `${failed} failed`
          : 'all done'
      log(`${what} in ${duration(performance.now() - began)}, ${how}: run ${runId}`)
      return { run: runId, store: this.#files.get(runId) ?? null, groups }
    } finally {
      this.#own.delete(runId)
      this.#files.delete(runId)
    }
  }
}

/** Resolves when a signal has stopped the server and pending requests were answered. */
function stopped(runs: Runs, graceMs: number, close: () => Promise<void>): Promise<void> {
  return new Promise((resolve) => {
    let stopping = false
    const stop = (signal: string, code: number) => {
      if (stopping) process.exit(code)
      stopping = true
      mustEndWithin(graceMs + CLOSE_MS)
      const closed = close()
      const running = runs.stop(graceMs)
      if (running > 0)
        say(
          `${signal}: no more requests are accepted; ${counted(running, 'rollout')} may continue for ${graceMs / 1000} s`,
        )
      void closed.then(resolve)
    }
    process.on('SIGINT', () => stop('Ctrl-C', 130))
    process.on('SIGTERM', () => stop('SIGTERM', 143))
  })
}
