import { connect } from 'node:net'

/** What came of one TCP connection. */
export type TcpProbe =
  /** Accepted. `answer`: the first bytes after `say`; empty if the connection was closed, undefined if nothing came. */
  | { readonly outcome: 'open'; readonly localAddress: string | undefined; readonly answer: Buffer | undefined }
  /** Neither accepted nor refused in time: a firewall drops packets, or the host is down. */
  | { readonly outcome: 'silent' }
  | { readonly outcome: 'failed'; readonly error: NodeJS.ErrnoException }

interface ProbeOptions {
  readonly connectMs: number
  /** Bytes to send once connected, to see what is answered within `answerMs`. */
  readonly say?: Uint8Array
  readonly answerMs?: number
}

/** Connects once, and disconnects. Never rejects. */
export function probeTcp(
  { host, port }: { readonly host: string; readonly port: number },
  { connectMs, say, answerMs = 0 }: ProbeOptions,
): Promise<TcpProbe> {
  return new Promise((resolve) => {
    const socket = connect({ host, port })
    let localAddress: string | undefined
    let connected = false
    const end = (probe: TcpProbe) => {
      clearTimeout(timer)
      socket.destroy()
      resolve(probe)
    }
    const open = (answer?: Buffer) => end({ outcome: 'open', localAddress, answer })
    let timer = setTimeout(() => end({ outcome: 'silent' }), connectMs)
    socket.once('connect', () => {
      connected = true
      localAddress = socket.localAddress
      if (say === undefined) return open()
      clearTimeout(timer)
      timer = setTimeout(open, answerMs)
      socket.write(say)
    })
    socket.once('data', open)
    socket.once('end', () => open(Buffer.alloc(0)))
    socket.once('error', (error) => (connected ? open(Buffer.alloc(0)) : end({ outcome: 'failed', error })))
  })
}
