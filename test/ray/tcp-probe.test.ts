import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { connectWords } from '../../src/network/error-words.ts'
import { probeTcp } from '../../src/network/tcp-probe.ts'
import { freePort } from '../support/free-port.ts'

const patience = { connectMs: 30_000, answerMs: 30_000 }

async function server(accept: (socket: Socket) => void): Promise<{ host: string; port: number }> {
  const listening = createServer((socket) => accept(socket.on('error', () => {}))).listen(0, '127.0.0.1')
  onTestFinished(() => void listening.close())
  await once(listening, 'listening')
  return { host: '127.0.0.1', port: (listening.address() as AddressInfo).port }
}

describe('what listens at an address', () => {
  it('is open, and says as which address it sees us', async () => {
    const probe = await probeTcp(await server(() => {}), patience)
    expect(probe).toMatchObject({ outcome: 'open', localAddress: '127.0.0.1', answer: undefined })
  })

  it('is nothing, in the words of the system', async () => {
    const probe = await probeTcp({ host: '127.0.0.1', port: await freePort() }, patience)
    expect(probe).toMatchObject({ outcome: 'failed', error: { code: 'ECONNREFUSED' } })
    expect(connectWords('ECONNREFUSED')).toBe('nothing listens there (ECONNREFUSED)')
  })

  it('answers, closes the connection, or stays silent', async () => {
    const say = Buffer.from('hello')
    const echo = await server((socket) => socket.pipe(socket))
    expect(await probeTcp(echo, { ...patience, say })).toMatchObject({ outcome: 'open', answer: say })
    const closing = await server((socket) => socket.destroy())
    expect(await probeTcp(closing, { ...patience, say })).toMatchObject({ outcome: 'open', answer: Buffer.alloc(0) })
    const silent = await server(() => {})
    expect(await probeTcp(silent, { ...patience, say, answerMs: 20 })).toMatchObject({
      outcome: 'open',
      answer: undefined,
    })
  })
})
