import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import * as z from 'zod/mini'
import { ownPackage } from '../own-package.ts'
import { firstLine } from '../text/visible.ts'
import { HANDSHAKE_MS, MAX_HANDSHAKE_BYTES, NETWORK_VERSION } from './limits.ts'
import type { Peer } from './peer.ts'

/**
 * Who is there? Three messages, in text, before anything else:
 *
 *     who was called  →  challenge   a number that is used once
 *     who called      →  hello       what it wants, a number of its own, and the proof that it knows the token
 *     who was called  →  welcome     the proof that it knows the token too; or `refused`, and why
 *
 * The token itself never travels. Whoever listens in learns nothing that could be used again, and an impostor who
 * answers in the place of a node gets neither code nor tasks.
 */

/** What the caller is: a driver calls a host, a host calls a driver that nodes join, and `status` only asks. */
export type Role = 'driver' | 'host' | 'status'

/** A conversation that outlives its connections: see `session.ts`. */
export interface Terms {
  readonly session: string
  /** False: it goes on after a connection was lost. */
  readonly fresh: boolean
  /** How many messages of the other end this one has. */
  readonly received: number
}

export interface Hello extends Terms {
  readonly role: Role
}

export type RefusalCode = 'TOKEN' | 'VERSION' | 'BUSY' | 'DRAINING' | 'SESSION_GONE' | 'MALFORMED' | 'ROLE' | 'SILENT'

/** The other end does not want us, or is not who it should be. */
export class Refusal extends Error {
  readonly code: RefusalCode
  constructor(code: RefusalCode, message: string) {
    super(message)
    this.code = code
  }
}

const nonce = z.string().check(z.regex(/^[0-9a-f]{32}$/))
const proof = z.string().check(z.regex(/^[0-9a-f]{64}$/))
/** It is shown to people before its sender has proved anything, so it has nothing that a terminal would obey. */
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

/** The end that was called. `admit` looks at what is wanted, and answers how much of it is there already; it may throw a Refusal. */
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
    // Without a token everybody who gets here may in: such a host listens on its own machine only.
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

/** The end that calls. Answers how much of what we have said is there already. */
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

/** "Here" in its answer is over there. */
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

/** The next message, as text. What else could come is a reason to give up. */
async function nextMessage(peer: Peer): Promise<string> {
  const message = await peer.next(HANDSHAKE_MS)
  if (message === undefined)
    throw new Refusal('SILENT', `it accepted the connection and did not answer within ${HANDSHAKE_MS / 1000} s`)
  if (message.isBinary) throw new Refusal('MALFORMED', 'a message of the handshake is not text')
  if (message.bytes.byteLength > MAX_HANDSHAKE_BYTES)
    throw new Refusal('MALFORMED', 'a message of the handshake is too long')
  return message.bytes.toString()
}
