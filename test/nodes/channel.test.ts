import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Channel, Ephemeral, SEAL_BYTES } from '../../src/network/channel.ts'

/** Both ends of a connection, as a handshake leaves them. */
function ends(token = 'a token of enough characters', theirToken = token) {
  const [caller, called] = [new Ephemeral(), new Ephemeral()]
  const ours = caller.keysWith(called.text, token, 'what was said')
  const theirs = called.keysWith(caller.text, theirToken, 'what was said')
  return {
    caller: new Channel(ours.callerMessages, ours.calledMessages),
    called: new Channel(theirs.calledMessages, theirs.callerMessages),
    keys: ours,
  }
}

const texts = fc.array(fc.uint8Array({ maxLength: 300 }), { minLength: 1, maxLength: 20 })

test('what one end seals the other opens, in both directions', () => {
  fc.assert(
    fc.property(texts, (messages) => {
      const { caller, called } = ends()
      for (const message of messages) {
        const sealed = caller.seal(message)
        expect(sealed.byteLength).toBe(message.byteLength + SEAL_BYTES)
        expect(called.open(sealed)).toEqual(Buffer.from(message))
        expect(caller.open(called.seal(message))).toEqual(Buffer.from(message))
      }
    }),
    { numRuns: 50 },
  )
})

test('a message with one bit changed, or cut, or lengthened does not open', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 300 }), fc.nat(), (message, at) => {
      const flipped = (sealed: Buffer) => {
        sealed[(at >> 3) % sealed.byteLength]! ^= 1 << (at & 7)
        return sealed
      }
      const changes: ((sealed: Buffer) => Buffer)[] = [
        flipped,
        (sealed) => sealed.subarray(0, at % sealed.byteLength),
        (sealed) => Buffer.concat([sealed, Buffer.of(0)]),
      ]
      for (const change of changes) {
        const { caller, called } = ends()
        expect(called.open(change(caller.seal(message)))).toBeUndefined()
      }
    }),
    { numRuns: 100 },
  )
})

test('a message that is repeated, moved, left out or sent back does not open', () => {
  const say = (text: string) => Buffer.from(text)
  const repeated = ends()
  const first = repeated.caller.seal(say('one'))
  expect(repeated.called.open(first)).toEqual(say('one'))
  expect(repeated.called.open(first)).toBeUndefined()

  const moved = ends()
  moved.caller.seal(say('one'))
  expect(moved.called.open(moved.caller.seal(say('two')))).toBeUndefined()

  const back = ends()
  expect(back.caller.open(back.caller.seal(say('one')))).toBeUndefined()
})

test('keys depend on the token, on both key pairs and on what was said', () => {
  const other = ends('a token of enough characters', 'another token of that length')
  expect(other.called.open(other.caller.seal(Buffer.from('x')))).toBeUndefined()
  const [one, two, three] = [new Ephemeral(), new Ephemeral(), new Ephemeral()]
  const raw = (keys: ReturnType<Ephemeral['keysWith']>) =>
    Object.values(keys).map((key: { export(): Buffer }) => key.export().toString('hex'))
  const all = [
    ...raw(one.keysWith(two.text, 'token', 'said')),
    ...raw(one.keysWith(two.text, 'token', 'said otherwise')),
    ...raw(one.keysWith(three.text, 'token', 'said')),
    ...raw(one.keysWith(two.text, '', 'said')),
  ]
  expect(new Set(all).size).toBe(16)
  expect(raw(two.keysWith(one.text, 'token', 'said'))).toEqual(all.slice(0, 4))
})

test('a public key whose shared secret would be known to everybody is refused', () => {
  for (const key of ['A'.repeat(43), `AQ${'A'.repeat(41)}`])
    expect(() => new Ephemeral().keysWith(key, 'token', 'said')).toThrow()
})
