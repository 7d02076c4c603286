import { randomUUID } from 'node:crypto'
import { platform } from 'node:os'
import { create, type MessageInitShape } from '@bufbuild/protobuf'
import type { ClientTls } from '../../../network/dial.ts'
import { decodeRows, type Row } from './arrow.ts'
import { artifactRequests } from './artifact.ts'
import { Connection } from './connection.ts'
import { explain, isTransient } from './errors.ts'
import { type Plan, PlanSchema, type ReleaseExecuteRequestSchema } from './generated/spark_connect_pb.ts'
import { type Calls, type ExecuteOptions, Operation } from './operation.ts'
import { Patience } from './patience.ts'
import type { Command, Relation } from './plans.ts'
import { type Remote, showRemote } from './remote.ts'
import { SparkError } from './spark-error.ts'
import { type SparkField, sparkFields } from './types.ts'
import type { Who } from './who.ts'

export interface ConnectOptions {
  readonly remote: Remote
  /** For a TLS server whose certificate is not signed by a public CA, or that wants a client certificate. */
  readonly tls?: ClientTls | undefined
  /** Overrides the user id in the address. */
  readonly userId?: string | undefined
}

/** A session is made on first use, which may be slow on a server that has just started. */
const FIRST_ANSWER_MS = 60_000
/** How long calls without a stream are retried. */
const RETRY_MS = 10_000
/** For calls during shutdown: without them the server only notices later. */
const FAREWELL_MS = 5000
// spark.connect.AnalyzePlanRequest.Explain.ExplainMode
const EXPLAIN_SIMPLE = 1
// spark.connect.InterruptRequest.InterruptType
const INTERRUPT = { all: 1, tag: 2, operation: 3 } as const

/**
 * A session on a Spark Connect server: its settings, files and views are its own.
 *
 * Every call here is idempotent, so calls without an answer are retried for a while.
 */
export class ConnectSession {
  readonly id: string
  readonly #remote: Remote
  readonly #connection: Connection
  readonly #userId: string
  #serverSideId: string | undefined
  readonly #farewells = new Set<Promise<void>>()

  constructor({ remote, tls, userId }: ConnectOptions) {
    this.id = remote.sessionId ?? randomUUID()
    this.#remote = remote
    this.#connection = new Connection(remote, tls)
    this.#userId = userId ?? remote.userId ?? process.env.SPARK_USER ?? process.env.USER ?? ''
  }

  /** The version of Spark. As the first call, it also shows whether the server exists and accepts us. */
  async version(): Promise<string> {
    const analyze = { case: 'sparkVersion', value: {} } as const
    const { result } = await this.#call(() =>
      this.#client.analyzePlan({ ...this.#who(), analyze }, { timeoutMs: FIRST_ANSWER_MS }),
    )
    if (result.case !== 'sparkVersion')
      throw new SparkError(`${showRemote(this.#remote)} did not report its Spark version`)
    return result.value.version
  }

  /** The columns and their types, without running anything. */
  async fields(relation: Relation): Promise<SparkField[]> {
    const analyze = { case: 'schema', value: { plan: planOf(relation) } } as const
    const { result } = await this.#call(() => this.#client.analyzePlan({ ...this.#who(), analyze }))
    return result.case === 'schema' ? sparkFields(result.value.schema) : []
  }

  /** The names of the columns, without running anything. */
  async columns(relation: Relation): Promise<string[]> {
    return (await this.fields(relation)).map(({ name }) => name)
  }

  /** Spark's plan for it, without running it. */
  async explain(relation: Relation): Promise<string> {
    const analyze = { case: 'explain', value: { plan: planOf(relation), explainMode: EXPLAIN_SIMPLE } } as const
    const { result } = await this.#call(() => this.#client.analyzePlan({ ...this.#who(), analyze }))
    return result.case === 'explain' ? result.value.explainString : ''
  }

  async setConfig(settings: Readonly<Record<string, string>>): Promise<void> {
    const pairs = Object.entries(settings).map(([key, value]) => ({ key, value }))
    const operation = { opType: { case: 'set', value: { pairs } } } as const
    await this.#call(() => this.#client.config({ ...this.#who(), operation }))
  }

  /** Settings without a value or default are absent. */
  async getConfig(keys: readonly string[]): Promise<Map<string, string>> {
    const operation = { opType: { case: 'getOption' as const, value: { keys: [...keys] } } }
    const { pairs } = await this.#call(() => this.#client.config({ ...this.#who(), operation }))
    return new Map(pairs.flatMap(({ key, value }) => (value === undefined ? [] : [[key, value]])))
  }

  /** Uploads a file for executors; `files/NAME` is for any kind of file. A name cannot be reused for other bytes. */
  async addArtifact(name: string, bytes: Uint8Array): Promise<void> {
    const { artifacts } = await this.#call(() => this.#client.addArtifacts(artifactRequests(this.#who(), name, bytes)))
    const mine = artifacts.find((artifact) => artifact.name === name)
    if (!mine?.isCrcSuccessful)
      throw new SparkError(`${showRemote(this.#remote)} received "${name}" damaged (CRC mismatch)`)
  }

  /** Runs a plan. The results are Arrow streams, one per batch. Leaving the loop stops the operation. */
  async *execute(plan: Relation | Command, options: ExecuteOptions = {}): AsyncGenerator<Uint8Array> {
    const operation = new Operation(this.#callsFor(planOf(plan), options), options)
    try {
      yield* operation.batches()
    } catch (error) {
      throw await this.#explain(error)
    }
  }

  /** Runs a plan. `decodeRows` describes the values of the rows. */
  async *rows(plan: Relation | Command, options: ExecuteOptions = {}): AsyncGenerator<Row> {
    for await (const batch of this.execute(plan, options)) yield* decodeRows(batch)
  }

  /** Runs a plan for its effects. */
  async run(plan: Relation | Command, options: ExecuteOptions = {}): Promise<void> {
    for await (const _ of this.execute(plan, options));
  }

  /** Stops an operation, those with a tag, or all of this session. */
  async interrupt(what?: string | { readonly tag: string }): Promise<void> {
    const which =
      what === undefined
        ? { interruptType: INTERRUPT.all }
        : typeof what === 'string'
          ? { interruptType: INTERRUPT.operation, interrupt: { case: 'operationId' as const, value: what } }
          : { interruptType: INTERRUPT.tag, interrupt: { case: 'operationTag' as const, value: what.tag } }
    await this.#call(() => this.#client.interrupt({ ...this.#who(), ...which }))
  }

  /** Ends the session on the server with everything in it. Never rejects: a server that is gone has no session of ours. */
  async release(): Promise<void> {
    await Promise.all(this.#farewells)
    // A session named in the address may belong to others too.
    if (this.#connection.proven && this.#remote.sessionId === undefined)
      await this.#farewell((options) => this.#client.releaseSession(this.#who(), options))
  }

  /** Closes the connection. Pending calls fail. */
  close(): void {
    this.#connection.close()
  }

  /** Whether a running operation keeps this process alive (the default). An idle session never does. */
  keepAlive(alive: boolean): void {
    this.#connection.keepAlive(alive)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release()
    this.close()
  }

  get #client() {
    return this.#connection.client
  }

  #who(): Who {
    return {
      sessionId: this.id,
      userContext: { userId: this.#userId },
      clientType: `${this.#remote.userAgent ?? 'manyworlds'} os/${platform()} node/${process.versions.node}`,
      ...(this.#serverSideId === undefined ? {} : { clientObservedServerSideSessionId: this.#serverSideId }),
    }
  }

  async #call<Answer extends { serverSideSessionId: string }>(call: () => Promise<Answer>): Promise<Answer> {
    try {
      const answer = await this.#retrying(call, RETRY_MS)
      this.#serverSideId ??= answer.serverSideSessionId || undefined
      return answer
    } catch (error) {
      throw await this.#explain(error)
    }
  }

  async #retrying<Answer>(call: () => Promise<Answer>, forMs: number): Promise<Answer> {
    const patience = new Patience(forMs)
    for (;;)
      try {
        return await call()
      } catch (error) {
        const again = isTransient(error) && this.#connection.proven
        if (!again || !(await patience.wait({ ref: this.#connection.keepsAlive }))) throw error
      }
  }

  #explain(error: unknown): Promise<unknown> {
    const { secure, proven } = this.#connection
    return explain(error, { remote: this.#remote, secure, proven }, (errorId) =>
      this.#client.fetchErrorDetails({ ...this.#who(), errorId }, { timeoutMs: FAREWELL_MS }),
    )
  }

  #callsFor(plan: Plan, { tags = [] }: ExecuteOptions): Calls {
    const reattachable = { requestOption: { case: 'reattachOptions', value: { reattachable: true } } } as const
    const client = this.#client
    return {
      execute: (operationId, signal) =>
        client.executePlan(
          { ...this.#who(), operationId, plan, tags: [...tags], requestOptions: [reattachable] },
          { signal },
        ),
      reattach: (operationId, lastResponseId, signal) =>
        client.reattachExecute(
          { ...this.#who(), operationId, ...(lastResponseId === undefined ? {} : { lastResponseId }) },
          { signal },
        ),
      release: (operationId, upTo) => {
        const release: MessageInitShape<typeof ReleaseExecuteRequestSchema>['release'] =
          upTo === undefined ? { case: 'releaseAll', value: {} } : { case: 'releaseUntil', value: { responseId: upTo } }
        return this.#farewell((options) => client.releaseExecute({ ...this.#who(), operationId, release }, options))
      },
      interrupt: (operationId) => {
        const which = {
          interruptType: INTERRUPT.operation,
          interrupt: { case: 'operationId' as const, value: operationId },
        }
        // This call matters most during shutdown: the operation still holds cores.
        return this.#farewell((options) => client.interrupt({ ...this.#who(), ...which }, options), FAREWELL_MS)
      },
      mayRetry: () => this.#connection.proven,
      keepsAlive: () => this.#connection.keepsAlive,
    }
  }

  /** A call whose result is ignored; never rejects. */
  #farewell(call: (options: { timeoutMs: number }) => Promise<unknown>, retryMs = 0): Promise<void> {
    const said = this.#retrying(() => call({ timeoutMs: FAREWELL_MS }), retryMs).then(
      () => {},
      () => {},
    )
    this.#farewells.add(said)
    return said.finally(() => this.#farewells.delete(said))
  }
}

function planOf(plan: Relation | Command): Plan {
  return create(PlanSchema, {
    opType:
      plan.$typeName === 'spark.connect.Relation' ? { case: 'root', value: plan } : { case: 'command', value: plan },
  })
}
