import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { WebSocket } from 'ws'
import { type Reason, reasonOf } from '../text/reason.ts'
import { type Address, isLoopback, showAddress } from './address.ts'
import { SEAL_BYTES } from './channel.ts'
import { connectWords, tlsWords } from './error-words.ts'
import { type Hello, makeCall, Refusal } from './handshake.ts'
import { HANDSHAKE_MS, MAX_MESSAGE_BYTES, NETWORK_PATH } from './limits.ts'
import { Peer } from './peer.ts'
import { userToken, whyTokenNeeded } from './token.ts'

export interface ClientTls {
  /** The CA of the peer's certificate, if it is not a public one. */
  readonly ca?: Buffer | string | undefined
  /** Our own certificate, for peers that ask for one. */
  readonly cert?: Buffer | string | undefined
  readonly key?: Buffer | string | undefined
  /** The name in the peer's certificate, if it differs from the address. */
  readonly serverName?: string | undefined
}

export interface Call {
  readonly address: Address
  /** Undefined: this user's own token if the address is on this machine, else none. */
  readonly token: string | undefined
  /** Undefined: no TLS, unless the address begins with `wss://`. */
  readonly tls: ClientTls | undefined
  readonly hello: Hello
}

type DialFailure = 'absent' | 'hopeless' | 'unproved' | 'wrong-end' | 'session-ended' | 'session-unknown' | 'other'

/** Why a call failed. */
export class DialError extends Error {
  /** Nothing listens there (ECONNREFUSED). */
  readonly nobodyThere: boolean
  /** Retrying is useless until somebody changes the setup: we know it ourselves, or the other end has proved that it says so. */
  readonly hopeless: boolean
  /**
   * The same, but a program in between may have caused it: nobody has proved it, or it is the proved answer of an end that we did
   * not mean to call.
   */
  readonly unproved: boolean
  /** What to do if an `unproved` error persists. */
  readonly advice: string | undefined
  /** The other end had our session, and has ended it and everything in it. */
  readonly sessionEnded: boolean
  /** The other end never had our session: it may be another process than the one that has. */
  readonly sessionUnknown: boolean

  /** The message, which is never empty. */
  readonly reason: Reason

  constructor(message: string, kind: DialFailure, cause?: unknown) {
    const reason = reasonOf(message, 'the call failed for an unknown reason')
    super(reason, { cause })
    this.reason = reason
    this.nobodyThere = kind === 'absent'
    this.hopeless = kind === 'hopeless'
    this.unproved = kind === 'unproved' || kind === 'wrong-end'
    this.advice = kind === 'unproved' ? UNPROVED_ADVICE : kind === 'wrong-end' ? WRONG_END_ADVICE : undefined
    this.sessionEnded = kind === 'session-ended'
    this.sessionUnknown = kind === 'session-unknown'
  }
}

/** After so many `unproved` errors in a row, about 1.5 s, an end that never had a connection gives up. */
export const REFUSALS = 4
const UNPROVED_ADVICE =
  'Such an answer is not authenticated by the token: it is true, or a program in between sent it. Compare token, version and certificates of both ends; if they fit, find out what listens at that address'
const WRONG_END_ADVICE =
  'Correct the address; if it is right, a program in between passes calls on to the wrong end: find out what listens at that address'

/** Connects and authenticates. `received`: how many of our messages the other end has. */
export async function dial({ address, token, tls, hello }: Call): Promise<{ peer: Peer; received: number }> {
  // A status may be asked for: it needs nothing of ours, and starts nothing.
  const needed = hello.role === 'status' ? undefined : whyTokenNeeded(address, token)
  if (needed !== undefined) throw new DialError(needed, 'hopeless')
  const secret = token ?? ownToken(address)
  const secure = address.secure ?? tls !== undefined
  let raw: Socket | undefined
  const socket = openSocket(address, secure ? tlsOptions(tls) : {}, secure)
  socket.on('upgrade', (response: IncomingMessage) => {
    raw = response.socket
  })
  const peer = new Peer(socket, showAddress(address), (alive) => void (alive ? raw?.ref() : raw?.unref()))
  let known: (() => void) | undefined
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once('open', () => {
        // Before the promise resolves: the first data may have come with the upgrade response.
        known = raw && peer.limitStranger(raw)
        resolve()
      })
      socket.once('error', reject)
      socket.once('unexpected-response', (_request, response: IncomingMessage) => {
        const full = response.statusCode === 503
        const text = full ? 'it has reached its limit of connections (--max-connections)' : 'is that a manyworlds node?'
        reject(new Error(`it answered with HTTP ${response.statusCode}: ${text}`))
      })
    })
    const call = { token: secret, given: token !== undefined, hello }
    const received = await makeCall(peer, call)
    known?.()
    return { peer, received }
  } catch (error) {
    socket.terminate()
    throw explain(error as Error, secure)
  }
}

function openSocket(address: Address, tls: object, secure: boolean): WebSocket {
  try {
    return new WebSocket(`${secure ? 'wss' : 'ws'}://${showAddress(address)}${NETWORK_PATH}`, {
      ...{
        perMessageDeflate: false,
        maxPayload: MAX_MESSAGE_BYTES + SEAL_BYTES,
        handshakeTimeout: HANDSHAKE_MS,
        origin: undefined,
      },
      // Peer enforces the limit itself.
      autoPong: false,
      // Masking protects proxies from web pages, which cannot call us. A mask of zeros costs nothing.
      generateMask: (mask) => void mask.fill(0),
      ...tls,
    })
  } catch (error) {
    // Of our own address or certificates: nobody was called yet.
    throw new DialError(`it cannot be called: ${(error as Error).message}`, 'hopeless', error)
  }
}

/** If this user's token cannot be used, nothing is called: without it, anybody's program could answer. */
function ownToken({ host }: Address): string | undefined {
  if (!isLoopback(host)) return undefined
  try {
    return userToken()
  } catch (error) {
    throw new DialError((error as Error).message, 'hopeless', error)
  }
}

/** The TLS options under the names that Node uses. */
export function tlsOptions(tls: ClientTls | undefined): object {
  const { ca, cert, key, serverName } = tls ?? {}
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert, key }),
    ...(serverName === undefined ? {} : { servername: serverName }),
    minVersion: 'TLSv1.2',
  }
}

function explain(error: Error & { code?: string }, secure: boolean): DialError {
  if (error instanceof Refusal) {
    switch (error.code) {
      case 'SESSION_ENDED':
        return new DialError(error.message, 'session-ended', error)
      case 'SESSION_UNKNOWN':
        return new DialError(error.message, 'session-unknown', error)
      case 'TOKEN':
      case 'NO_TOKEN':
      case 'VERSION':
      case 'MALFORMED':
        return new DialError(error.message, error.proved ? 'hopeless' : 'unproved', error)
      case 'ROLE':
        return new DialError(error.message, 'wrong-end', error)
      default:
        return new DialError(error.message, 'other', error)
    }
  }
  const { code = '' } = error
  // An AggregateError, for a name with several addresses, has no message of its own.
  const [first] = error instanceof AggregateError ? (error.errors as Error[]) : []
  const message = tlsWords(error.message || first?.message || code)
  // Certificates too are shown by whoever answers.
  const because = (text: string, kind: 'absent' | 'unproved' | 'other' = 'unproved') => new DialError(text, kind, error)
  const unconnected = connectWords(code)
  if (unconnected !== undefined) return because(unconnected, code === 'ECONNREFUSED' ? 'absent' : 'other')
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return because(`its certificate is for another name (${message}); give that name as tls.serverName`)
  if (/ALERT_(CERTIFICATE|BAD_CERTIFICATE|UNKNOWN_CA|HANDSHAKE_FAILURE)/.test(code))
    return because(`it wants a certificate from us that it trusts (${message}); give tls.cert and tls.key`)
  if (/CERT|SIGNED|ISSUER|UNABLE_TO_VERIFY|CA_/.test(code))
    return because(`its certificate is not trusted (${message}); give the authority that signed it as tls.ca`)
  if (secure && /wrong version number|disconnected before secure TLS/i.test(error.message))
    return because('it does not speak TLS; use ws:// or leave `tls` out, or start it with --tls-cert')
  if (secure && message === 'socket hang up')
    return because('it ended the TLS connection: it may not trust the certificate in tls.cert', 'other')
  if (!secure && (code.startsWith('HPE_') || message === 'socket hang up'))
    return because('it does not answer to plain WebSocket; if it was started with --tls-cert, use wss://', 'other')
  if (message === 'Opening handshake has timed out')
    return because(`it did not answer within ${HANDSHAKE_MS / 1000} s`, 'other')
  return because(message, 'other')
}
