import { fromBinary } from '@bufbuild/protobuf'
import { Code, ConnectError } from '@connectrpc/connect'
import { connectWords, tlsWords } from '../../../network/error-words.ts'
import { type ErrorInfo, ErrorInfoSchema, type FetchErrorDetailsResponse } from './generated/spark_connect_pb.ts'
import { type Remote, showRemote } from './remote.ts'
import { SparkError } from './spark-error.ts'

/** Why a connection was not made. */
export const TOO_SLOW = 'there is no answer from that machine'

/** The server answered with an error. All other errors are connection errors. */
const isAnswer = (error: ConnectError): boolean => error.metadata.has('grpc-status')

/** The codes of a broken connection; they differ by when it broke. */
const BROKEN = new Set<Code>([
  Code.Unavailable,
  Code.Aborted,
  Code.Canceled,
  Code.Internal,
  Code.Unknown,
  // The server is overloaded, or got too many pings.
  Code.ResourceExhausted,
])

/** Whether a retry may succeed. */
export function isTransient(reason: unknown): boolean {
  if (!(reason instanceof ConnectError)) return false
  if (!isAnswer(reason)) return BROKEN.has(reason.code) && !isHopeless(reason)
  if (reason.code === Code.Unavailable) return true
  // INVALID_CURSOR.DISCONNECTED: another stream has replaced this one; our old stream may still be closing.
  return (
    detail(reason, 'google.rpc.RetryInfo') !== undefined || reason.rawMessage.includes('INVALID_CURSOR.DISCONNECTED')
  )
}

/** Whether the server does not know the operation. */
export const isUnknownOperation = (reason: unknown): boolean =>
  reason instanceof ConnectError && /INVALID_HANDLE\.(OPERATION|SESSION)_NOT_FOUND/.test(reason.rawMessage)

/** Whether the server already has the operation that we ask it to start. */
export const isKnownOperation = (reason: unknown): boolean =>
  reason instanceof ConnectError && reason.rawMessage.includes('INVALID_HANDLE.OPERATION_ALREADY_EXISTS')

/** The context: a connection error means something else before the first answer than after it. */
export interface Where {
  readonly remote: Remote
  readonly secure: boolean
  readonly proven: boolean
}

/** Converts an error of the gRPC client. `fetch` asks the server for details. */
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
  // Don't keep the original as the cause: it repeats the message and contains the headers.
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

/** Removes executor stacks from Spark's messages. Stacks of Node.js, which a slot may have printed, stay. */
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

/** Whether a retry is useless: a certificate error, or TLS against a plain-text server. */
const isHopeless = (error: ConnectError): boolean => nodeErrors(error).some(({ code }) => TRUST.test(String(code)))

function brokenWords(error: ConnectError, { secure, proven }: Where): string {
  const errors = nodeErrors(error)
  const has = (pattern: RegExp) => errors.some(({ code }) => pattern.test(String(code)))
  const root = errors.at(-1)!
  const words = root instanceof ConnectError ? root.rawMessage : tlsWords(root.message)
  const unconnected = errors.map(({ code }) => connectWords(String(code))).find((text) => text !== undefined)
  if (unconnected !== undefined) return proven ? `the server is gone: ${unconnected}` : unconnected
  if (has(/ALTNAME|HOSTNAME_MISMATCH/))
    return `its certificate is for another name (${words}); give that name as spark.remoteTls.serverName`
  if (has(/_ALERT_/)) return `it refused our TLS handshake (${words}); it may need spark.remoteTls.cert and key`
  if (has(/^(ERR_SSL_WRONG_VERSION_NUMBER|ERR_SSL_PACKET_LENGTH_TOO_LONG|EPROTO)$/))
    return 'it does not speak TLS; set use_ssl=false in its address'
  if (has(TRUST))
    return `its certificate is not trusted (${words}); give the authority that signed it as spark.remoteTls.ca`
  if (error.code === Code.DeadlineExceeded) return 'it did not answer in time'
  if (words.startsWith('HTTP ')) return `it answered with ${words}; is that a Spark Connect server?`
  if (!BROKEN.has(error.code) || words === TOO_SLOW) return words
  const how = /^http\/2 stream closed/.test(words) ? '' : ` (${words})`
  if (proven) return `the connection was lost${how}`
  const cure = secure ? 'is that a Spark Connect server?' : 'if it needs TLS, set use_ssl=true in its address'
  return `it ended the connection without an answer${how}; ${cure}`
}
