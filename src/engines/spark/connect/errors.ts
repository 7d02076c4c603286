import { fromBinary } from '@bufbuild/protobuf'
import { Code, ConnectError } from '@connectrpc/connect'
import { ManyworldsError } from '../../../errors.ts'
import { plainly } from '../../../network/tls-words.ts'
import { type ErrorInfo, ErrorInfoSchema, type FetchErrorDetailsResponse } from './generated/spark_connect_pb.ts'
import { type Remote, showRemote } from './remote.ts'

/** Why a connection was not made. */
export const TOO_SLOW = 'there is no answer from that machine'

export interface SparkErrorOptions {
  readonly cause?: unknown
  readonly errorClass?: string | undefined
  readonly sqlState?: string | undefined
  readonly grpcCode?: number | undefined
  readonly causes?: readonly string[] | undefined
}

/** What Spark, or the way to it, has to say. */
export class SparkError extends ManyworldsError {
  /** Spark's name for what happened, such as `TABLE_OR_VIEW_NOT_FOUND`. */
  readonly errorClass: string | undefined
  readonly sqlState: string | undefined
  /** The number of the gRPC status. */
  readonly grpcCode: number | undefined
  /** The messages of what was below it, the nearest first: what a program wrote to its stderr before it failed is in the last. */
  readonly causes: readonly string[]

  constructor(message: string, { cause, errorClass, sqlState, grpcCode, causes = [] }: SparkErrorOptions = {}) {
    super('SPARK_FAILED', message, cause === undefined ? undefined : { cause })
    this.name = 'SparkError'
    this.errorClass = errorClass
    this.sqlState = sqlState
    this.grpcCode = grpcCode
    this.causes = causes
  }
}

/** The server has answered, and the answer is an error. All other errors are those of the connection. */
const isAnswer = (error: ConnectError): boolean => error.metadata.has('grpc-status')

/** What a connection that broke looks like, where there was no answer: it depends on when it broke. */
const BROKEN = new Set<Code>([
  Code.Unavailable,
  Code.Aborted,
  Code.Canceled,
  Code.Internal,
  Code.Unknown,
  // It had too much to do, or too many pings.
  Code.ResourceExhausted,
])

/** Whether another try may come to something else. */
export function isTransient(reason: unknown): boolean {
  if (!(reason instanceof ConnectError)) return false
  if (!isAnswer(reason)) return BROKEN.has(reason.code) && !isHopeless(reason)
  if (reason.code === Code.Unavailable) return true
  // The last is said to a stream whose place another stream has taken; ours may still be on its way out.
  return (
    detail(reason, 'google.rpc.RetryInfo') !== undefined || reason.rawMessage.includes('INVALID_CURSOR.DISCONNECTED')
  )
}

/** Whether the server does not know the operation that we ask about. */
export const isUnknownOperation = (reason: unknown): boolean =>
  reason instanceof ConnectError && /INVALID_HANDLE\.(OPERATION|SESSION)_NOT_FOUND/.test(reason.rawMessage)

/** Whether the server has the operation already that we ask it to start. */
export const isKnownOperation = (reason: unknown): boolean =>
  reason instanceof ConnectError && reason.rawMessage.includes('INVALID_HANDLE.OPERATION_ALREADY_EXISTS')

/** Where it happened: an error of the connection means something else before the first answer than after it. */
export interface Where {
  readonly remote: Remote
  readonly secure: boolean
  readonly proven: boolean
}

/** An error of the client as one of ours. `fetch` asks the server what else it knows. */
export async function explain(
  reason: unknown,
  where: Where,
  fetch: (errorId: string) => Promise<FetchErrorDetailsResponse>,
): Promise<unknown> {
  if (!(reason instanceof ConnectError)) return reason
  const { code: grpcCode } = reason
  if (grpcCode === Code.Unauthenticated) {
    const what =
      where.remote.token === undefined ? 'it wants a token, and there is none' : 'it does not accept our token'
    const cure = 'give the right one as ;token= in the address, or in SPARK_CONNECT_AUTHENTICATE_TOKEN'
    return new SparkError(`Spark at ${showRemote(where.remote)}: ${what}; ${cure}`, { grpcCode })
  }
  if (!isAnswer(reason)) {
    const message = `Spark at ${showRemote(where.remote)}: ${brokenWords(reason, where)}`
    return new SparkError(message, { grpcCode: Code.Unavailable, cause: reason.cause })
  }
  const info = errorInfo(reason)
  const errorId = info?.metadata.errorId
  const details = errorId === undefined ? undefined : await fetch(errorId).catch(() => undefined)
  const [first, ...causes] = chain(details)
  // Not the error that we got as a cause: it says the same, and it has the headers.
  return new SparkError(first?.message || withoutStack(reason.rawMessage), {
    grpcCode,
    errorClass: first?.errorClass ?? info?.metadata.errorClass,
    sqlState: first?.sqlState ?? info?.metadata.sqlState,
    causes: causes.map(({ message }) => message),
  })
}

interface Link {
  readonly message: string
  readonly errorClass: string | undefined
  readonly sqlState: string | undefined
}

/** The error, what caused it, what caused that, and so on. */
function chain(details: FetchErrorDetailsResponse | undefined): Link[] {
  const found: Link[] = []
  const seen = new Set<number>()
  for (let index = details?.rootErrorIdx; index !== undefined && !seen.has(index); ) {
    seen.add(index)
    const error = details!.errors[index]
    if (error === undefined) break
    const { errorClass, sqlState } = error.sparkThrowable ?? {}
    found.push({ message: withoutStack(error.message), errorClass, sqlState })
    index = error.causeIdx
  }
  return found
}

/** Spark puts the stacks of executors into its messages. Those of Node, which a slot may have printed, look different and stay. */
export const withoutStack = (message: string): string =>
  message.replace(/^[\t ]*(at [\w$.<>/@-]+\(.*\)|\.\.\. \d+ more|Driver stacktrace:)[\t ]*\n?/gm, '').trim()

function errorInfo(error: ConnectError): ErrorInfo | undefined {
  const bytes = detail(error, 'google.rpc.ErrorInfo')
  return bytes && fromBinary(ErrorInfoSchema, bytes)
}

function detail(error: ConnectError, type: string): Uint8Array | undefined {
  for (const one of error.details) if ('type' in one && one.type === type) return one.value
  return undefined
}

function nodeErrors(error: ConnectError): (Error & { code?: unknown })[] {
  const found: Error[] = []
  for (let one: unknown = error; one instanceof Error && !found.includes(one); one = one.cause) found.push(one)
  return found
}

const TRUST = /^(ERR_TLS_|ERR_SSL_|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|HOSTNAME_MISMATCH|EPROTO)/

/** Whether it would be the same the next time: a matter of certificates, or of TLS against none. */
const isHopeless = (error: ConnectError): boolean => nodeErrors(error).some(({ code }) => TRUST.test(String(code)))

function brokenWords(error: ConnectError, { secure, proven }: Where): string {
  const errors = nodeErrors(error)
  const has = (pattern: RegExp) => errors.some(({ code }) => pattern.test(String(code)))
  const root = errors.at(-1)!
  const words = root instanceof ConnectError ? root.rawMessage : plainly(root.message)
  if (has(/^ECONNREFUSED$/)) return `nobody listens there${proven ? ' any more' : ''} (connection refused)`
  if (has(/^(ENOTFOUND|EAI_AGAIN)$/)) return 'there is no machine of that name'
  if (has(/ALTNAME|HOSTNAME_MISMATCH/))
    return `its certificate is for another name (${words}); say which with spark.remoteTls.serverName`
  if (has(/_ALERT_/)) return `it does not like our side of TLS (${words}); it may want spark.remoteTls.cert and key`
  if (has(/^(ERR_SSL_WRONG_VERSION_NUMBER|ERR_SSL_PACKET_LENGTH_TOO_LONG|EPROTO)$/))
    return 'it does not speak TLS; say use_ssl=false in its address'
  if (has(TRUST))
    return `its certificate is not trusted (${words}); give the authority that signed it as spark.remoteTls.ca`
  if (error.code === Code.DeadlineExceeded) return 'it did not answer in time'
  if (words.startsWith('HTTP ')) return `it answered with ${words}; is that a Spark Connect server?`
  if (!BROKEN.has(error.code) || words === TOO_SLOW) return words
  const how = /^http\/2 stream closed/.test(words) ? '' : ` (${words})`
  if (proven) return `the connection was lost${how}`
  const cure = secure ? 'is that a Spark Connect server?' : 'if it wants TLS, say use_ssl=true in its address'
  return `it ended the connection without an answer${how}; ${cure}`
}
