import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import * as z from 'zod/mini'
import { ownPackage } from '../own-package.ts'
import { firstLine } from '../text/escape-controls.ts'
import { HANDSHAKE_MS, MAX_HANDSHAKE_BYTES, NETWORK_VERSION } from './limits.ts'
import type { Peer } from './peer.ts'

/**
 * Mutual authentication in three text messages, before anything else:
 *
 *     server  →  challenge   a nonce
 *     client  →  hello       its role and session, a nonce of its own, and the proof that it knows the token
 *     server  →  welcome     the proof that it knows the token too; or `refused` with the reason
 *
 * The token itself is never sent. An eavesdropper learns nothing that can be replayed, and an impostor of a node gets neither
 * code nor tasks.
 */

/** The client's role: a driver calls a host, a joining host calls a driver, and `status` only asks for the status. */
export type Role = 'driver' | 'host' | 'status'

/** A conversation that outlives its connections: see `session.ts`. */
export interface Terms {
  readonly session: string
  /** False: the session continues after a lost connection. */
  readonly fresh: boolean
  /** How many messages of the other end have arrived. */
  readonly received: number
}

export interface Hello extends Terms {
  readonly role: Role
}

export type RefusalCode = 'TOKEN' | 'VERSION' | 'BUSY' | 'DRAINING' | 'SESSION_GONE' | 'MALFORMED' | 'ROLE' | 'SILENT'

/** The other end refuses us, or could not authenticate itself. */
export class Refusal extends Error {
  readonly code: RefusalCode
  constructor(code: RefusalCode, message: string) {
    super(message)
    this.code = code
  }
}

const nonce = z.string().check(z.regex(/^[0-9a-f]{32}$/))
const proof = z.string().check(z.regex(/^[0-9a-f]{64}$/))
/** The text comes from an unauthenticated peer and is printed: control characters are escaped. */
const version = z.string().check(z.regex(/^[\w.+-]{1,64}$/))
const counter = z.number().check(z.int(), z.minimum(0))

const challengeSchema = z.object({ type: z.literal('challenge'), network: counter, version, nonce })
const helloSchema = z.object({
  ...{ type: z.literal('hello'), network: counter, version, nonce, proof },
  role: z.enum(['driver', 'host', 'status']),
  session: nonce,
  fresh: z.boolean(),
  received: counter,
})
const welcomeSchema = z.object({ type: z.literal('welcome'), proof, received: counter })
const refusedSchema = z.object({
  type: z.literal('refused'),
  code: z.enum(['TOKEN', 'VERSION', 'BUSY', 'DRAINING', 'SESSION_GONE', 'MALFORMED', 'ROLE', 'SILENT']),
  reason: z.string().check(z.maxLength(1000)),
})

export const newSessionId = (): string => randomBytes(16).toString('hex')

const ourVersion = () => `${ownPackage.version} (Node ${process.version})`

/** The server's side. `admit` returns how many messages of the session have arrived, or throws a Refusal. */
export async function answerCall(
  peer: Peer,
  { token, admit }: { token: string | undefined; admit: (hello: Hello) => number },
): Promise<Hello> {
  const ours = randomBytes(16).toString('hex')
  const heard = nextMessage(peer)
  say(peer, { type: 'challenge', network: NETWORK_VERSION, version: ownPackage.version, nonce: ours })
  try {
    const hello = parse(helloSchema, await heard)
    checkVersion(hello, 'the caller')
    const words = [hello.role, hello.session, ours, hello.nonce]
    // Without a token every caller is admitted: such a host listens on loopback only.
    if (token !== undefined && !isSame(hello.proof, prove(token, 'caller', words)))
      throw new Refusal('TOKEN', 'the token is not the one that is used here')
    const received = admit(hello)
    say(peer, { type: 'welcome', proof: prove(token ?? '', 'called', words), received })
    return hello
  } catch (error) {
    const refusal = error instanceof Refusal ? error : new Refusal('MALFORMED', (error as Error).message)
    say(peer, { type: 'refused', code: refusal.code, reason: refusal.message.slice(0, 1000) })
    peer.refuse(refusal.code)
    throw refusal
  }
}

/** The client's side. Returns how many of our messages have arrived. */
export async function makeCall(
  peer: Peer,
  { token, given, hello }: { token: string | undefined; given: boolean; hello: Hello },
): Promise<number> {
  const challenge = parse(challengeSchema, await nextMessage(peer))
  checkVersion(challenge, 'the other end')
  const ours = randomBytes(16).toString('hex')
  const words = [hello.role, hello.session, challenge.nonce, ours]
  const { role, session, fresh, received } = hello
  const heard = nextMessage(peer)
  say(peer, {
    ...{ type: 'hello', network: NETWORK_VERSION, version: ownPackage.version, nonce: ours },
    ...{ proof: prove(token ?? '', 'caller', words), role, session, fresh, received },
  })
  const answer = JSON.parse(await heard) as unknown
  const refused = refusedSchema.safeParse(answer)
  if (refused.success) {
    const { code, reason } = refused.data
    throw new Refusal(code, code === 'TOKEN' ? tokenAdvice(given) : firstLine(reason))
  }
  const welcome = welcomeSchema.safeParse(answer)
  if (!welcome.success) throw new Refusal('MALFORMED', 'it answered with something else than a welcome')
  if (token !== undefined && !isSame(welcome.data.proof, prove(token, 'called', words)))
    throw new Refusal('TOKEN', given ? OTHER_TOKEN : OTHER_USER)
  return welcome.data.received
}

/** Rewords the server's reason from the client's point of view. */
const tokenAdvice = (given: boolean) =>
  given
    ? 'it has another token than the one that was given (nodes.tokenFile, --token-file)'
    : 'it wants a token, and none was given (nodes.tokenFile, --token-file)'

const OTHER_TOKEN = 'it does not have the token that was given here (it may run without one)'
const OTHER_USER =
  'it does not have the token of this user, so it may be the program of another one; to use it, give both ends the same token (nodes.tokenFile, --token-file)'

function checkVersion({ network, version: theirs }: { network: number; version: string }, who: string): void {
  if (network === NETWORK_VERSION) return
  throw new Refusal(
    'VERSION',
    `${who} has manyworlds ${theirs} with network version ${network}, this end ${ourVersion()} with ${NETWORK_VERSION}; install the same version on both`,
  )
}

const prove = (token: string, who: 'caller' | 'called', words: readonly string[]) =>
  createHmac('sha256', token)
    .update(['manyworlds', NETWORK_VERSION, who, ...words].join('\n'))
    .digest('hex')

const isSame = (theirs: string, ours: string) => timingSafeEqual(Buffer.from(theirs), Buffer.from(ours))

const say = (peer: Peer, message: object) => peer.socket.send(JSON.stringify(message))

function parse<Schema extends z.ZodMiniType>(schema: Schema, text: string): z.output<Schema> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new Refusal('MALFORMED', 'a message of the handshake is not JSON')
  }
  const result = schema.safeParse(value)
  if (result.success) return result.data
  const [issue] = result.error.issues
  throw new Refusal('MALFORMED', `a message of the handshake is malformed (${issue?.path.join('.') || 'its type'})`)
}

/** The next message as text. Throws a Refusal for anything else. */
async function nextMessage(peer: Peer): Promise<string> {
  const message = await peer.next(HANDSHAKE_MS)
  if (message === undefined)
    throw new Refusal('SILENT', `it accepted the connection and did not answer within ${HANDSHAKE_MS / 1000} s`)
  if (message.isBinary) throw new Refusal('MALFORMED', 'a message of the handshake is not text')
  if (message.bytes.byteLength > MAX_HANDSHAKE_BYTES)
    throw new Refusal('MALFORMED', 'a message of the handshake is too long')
  return message.bytes.toString()
}
