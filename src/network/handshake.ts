import { createHmac, type KeyObject, randomBytes, timingSafeEqual } from 'node:crypto'
import * as z from 'zod/mini'
import { ownPackage } from '../own-package.ts'
import { firstLine } from '../text/escape-controls.ts'
import { Channel, type ConnectionKeys, Ephemeral } from './channel.ts'
import { HANDSHAKE_MS, MAX_HANDSHAKE_BYTES, NETWORK_VERSION } from './limits.ts'
import type { Peer } from './peer.ts'

/**
 * Mutual authentication and keys for the connection, in three text messages, before anything else:
 *
 *     server  →  challenge   a public key for this connection
 *     client  →  hello       a public key of its own, its role and session, and a proof
 *     server  →  welcome     a proof of its own; or `refused` with the reason
 *
 * This is Noise NNpsk0 with the roles and counts of the session in its transcript: keys come from both key pairs, the token and
 * everything said so far (`channel.ts`), and a proof is an HMAC with one of them. All later messages are sealed. So whoever relays
 * a handshake can neither read, alter nor add a message; and the token, which is never sent, cannot be guessed from a recording.
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

const CODES = [
  'TOKEN',
  'NO_TOKEN',
  'VERSION',
  'MALFORMED',
  'SILENT',
  'BUSY',
  'DRAINING',
  'SESSION_ENDED',
  'SESSION_UNKNOWN',
  'ROLE',
] as const
export type RefusalCode = (typeof CODES)[number]
/** What an end may say that cannot prove that it knows the token. Anybody could have said it. */
const UNPROVED: ReadonlySet<RefusalCode> = new Set(['TOKEN', 'NO_TOKEN', 'VERSION', 'MALFORMED', 'SILENT'])

/** The other end refuses us, or could not authenticate itself. */
export class Refusal extends Error {
  readonly code: RefusalCode
  /** The other end has proved that it knows the token. If not, the refusal may come from anybody in between. */
  readonly proved: boolean
  constructor(code: RefusalCode, message: string, { proved = false }: { proved?: boolean } = {}) {
    super(message)
    this.code = code
    this.proved = proved
  }
}

const sessionId = z.string().check(z.regex(/^[0-9a-f]{32}$/))
const key = z.string().check(z.regex(/^[\w-]{43}$/))
const proof = z.string().check(z.regex(/^[0-9a-f]{64}$/))
/** The text comes from an unauthenticated peer and is printed: control characters are escaped. */
const version = z.string().check(z.regex(/^[\w.+-]{1,64}$/))
const counter = z.number().check(z.int(), z.minimum(0))

/** Read before the rest, which another version may write differently. */
const versionSchema = z.object({ network: counter, version })
const challengeSchema = z.object({ type: z.literal('challenge'), network: counter, version, key })
const helloSchema = z.object({
  ...{ type: z.literal('hello'), network: counter, version, key, proof },
  role: z.enum(['driver', 'host', 'status']),
  session: sessionId,
  fresh: z.boolean(),
  received: counter,
})
const welcomeSchema = z.object({ type: z.literal('welcome'), received: counter, proof })
const refusedSchema = z.object({
  type: z.literal('refused'),
  code: z.enum(CODES),
  reason: z.string().check(z.maxLength(1000)),
  proof: z.optional(proof),
})

export const newSessionId = (): string => randomBytes(16).toString('hex')

const ourVersion = () => `${ownPackage.version} (Node ${process.version})`

/** The server's side. `admit` returns how many messages of the session have arrived, or throws a Refusal. */
export async function answerCall(
  peer: Peer,
  { token, admit }: { token: string; admit: (hello: Hello) => number },
): Promise<Hello> {
  const own = new Ephemeral()
  const challenge = { type: 'challenge', network: NETWORK_VERSION, version: ownPackage.version, key: own.text } as const
  const heard = nextMessage(peer)
  say(peer, challenge)
  let keys: ConnectionKeys | undefined
  try {
    const text = await heard
    checkVersion(parse(versionSchema, text), 'the caller')
    const hello = parse(helloSchema, text)
    const theirs = agreedKeys(own, hello.key, token, transcriptOf(challenge, hello))
    if (!isSame(hello.proof, prove(theirs.callerProof, ['hello'])))
      throw new Refusal('TOKEN', 'the token is not the one that is used here')
    keys = theirs
    const received = admit(hello)
    say(peer, { type: 'welcome', received, proof: prove(keys.calledProof, ['welcome', received]) })
    peer.secure(new Channel(keys.calledMessages, keys.callerMessages))
    return hello
  } catch (error) {
    const refusal = error instanceof Refusal ? error : new Refusal('MALFORMED', (error as Error).message)
    const said = { code: refusal.code, reason: refusal.message.slice(0, 1000) }
    const proved = keys === undefined ? {} : { proof: prove(keys.calledProof, ['refused', said.code, said.reason]) }
    say(peer, { type: 'refused', ...said, ...proved })
    peer.refuse(refusal.code)
    throw refusal
  }
}

/** The client's side. Returns how many of our messages have arrived. */
export async function makeCall(
  peer: Peer,
  { token, given, hello }: { token: string | undefined; given: boolean; hello: Hello },
): Promise<number> {
  const { text, keys } = answerChallenge(await nextMessage(peer), token, hello)
  const heard = nextMessage(peer)
  peer.socket.send(text)
  const answer = JSON.parse(await heard) as unknown
  const refused = refusedSchema.safeParse(answer)
  if (refused.success) {
    const { code, reason, proof } = refused.data
    const proved = proof !== undefined && isSame(proof, prove(keys.calledProof, ['refused', code, reason]))
    if (!proved && !UNPROVED.has(code)) throw new Error('it refused, and did not prove that it knows the token')
    throw proved
      ? new Refusal(code, firstLine(reason) || `it refused (${code})`, { proved })
      : new Refusal(code, unprovedWords(code, given))
  }
  const welcome = welcomeSchema.safeParse(answer)
  if (!welcome.success) throw new Refusal('MALFORMED', 'it answered with something else than a welcome')
  const { received, proof } = welcome.data
  if (!isSame(proof, prove(keys.calledProof, ['welcome', received])))
    throw new Refusal('NO_TOKEN', unprovedWords('NO_TOKEN', given))
  peer.secure(new Channel(keys.callerMessages, keys.calledMessages))
  return received
}

/** The hello to a challenge, and the keys that both ends then have. */
export function answerChallenge(
  text: string,
  token: string | undefined,
  { role, session, fresh, received }: Hello,
): { readonly text: string; readonly keys: ConnectionKeys } {
  checkVersion(parse(versionSchema, text), 'the other end')
  const challenge = parse(challengeSchema, text)
  const own = new Ephemeral()
  const hello = {
    ...{ type: 'hello' as const, network: NETWORK_VERSION, version: ownPackage.version, key: own.text },
    ...{ role, session, fresh, received },
  }
  const keys = agreedKeys(own, challenge.key, token, transcriptOf(challenge, hello))
  return { text: JSON.stringify({ ...hello, proof: prove(keys.callerProof, ['hello']) }), keys }
}

type Challenge = z.output<typeof challengeSchema>

/** Everything that both ends have said, each part where only it can be. */
const transcriptOf = (challenge: Challenge, hello: Omit<z.output<typeof helloSchema>, 'proof'>): string =>
  JSON.stringify([
    ...['manyworlds', challenge.network, challenge.version, challenge.key],
    ...[hello.network, hello.version, hello.key, hello.role, hello.session, hello.fresh, hello.received],
  ])

function agreedKeys(own: Ephemeral, theirs: string, token: string | undefined, transcript: string): ConnectionKeys {
  try {
    return own.keysWith(theirs, token ?? '', transcript)
  } catch {
    // Such as one whose shared secret would be zero, whatever our own is.
    throw new Refusal('MALFORMED', 'a message of the handshake is malformed (key)')
  }
}

/** A refusal in our words: a text that anybody may have written is not printed. */
function unprovedWords(code: RefusalCode, given: boolean): string {
  switch (code) {
    case 'TOKEN':
      return given
        ? 'it has another token than the one that was given (nodes.tokenFile, --token-file)'
        : 'it wants a token, and none was given (nodes.tokenFile, --token-file)'
    case 'NO_TOKEN':
      return given ? OTHER_TOKEN : OTHER_USER
    case 'VERSION':
      return `it wants another version than manyworlds ${ourVersion()}; install the same version on both`
    case 'SILENT':
      return `it refused: nothing was heard from here within ${HANDSHAKE_MS / 1000} s`
    default:
      return `it refused the handshake (${code})`
  }
}

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

const prove = (key: KeyObject, words: readonly (string | number)[]) =>
  createHmac('sha256', key).update(JSON.stringify(words)).digest('hex')

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
