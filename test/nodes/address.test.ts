import { expect, test } from 'vitest'
import { isLoopback, parseAddress, showAddress } from '../../src/network/address.ts'
import { dial } from '../../src/network/dial.ts'
import { newSessionId } from '../../src/network/handshake.ts'

test.each([
  ['worker1', { host: 'worker1', port: 5000, secure: undefined }],
  ['worker1:80', { host: 'worker1', port: 80, secure: undefined }],
  ['  10.0.0.1:7000 ', { host: '10.0.0.1', port: 7000, secure: undefined }],
  ['ws://a.b.c:1/', { host: 'a.b.c', port: 1, secure: false }],
  ['wss://a.b.c', { host: 'a.b.c', port: 5000, secure: true }],
  ['[::1]:5001', { host: '::1', port: 5001, secure: undefined }],
])('%s is an address', (text, address) => {
  expect(parseAddress(text)).toEqual(address)
  expect(parseAddress(showAddress(address))).toEqual({ ...address, secure: undefined })
})

test.each([
  ['', /is not an address/],
  ['5000', /is only a port; give host:port, such as 127\.0\.0\.1:5000/],
  ['http://a:1', /begins with http:\/\//],
  ['a:70000', /there is no port 70000/],
  ['a:b', /is not an address/],
  ['user@host:1', /is not an address/],
  ['[1.2.3.4]:1', /is not an address/],
  ['::1', /is not an address/],
  ['two words', /is not an address/],
  ['127.999.1.1:5999', /'127\.999\.1\.1:5999' is not an address/],
  ['10.0.0.1.5', /is not an address/],
])('%j is none, and the message says why', (text, why) => expect(parseAddress(text)).toMatch(why))

test.each([
  ['localhost', true],
  ['127.0.0.1', true],
  ['127.8.9.1', true],
  ['127.999.1.1', false],
  ['::1', true],
  ['127.0.0.1.example.org', false],
  ['0.0.0.0', false],
  ['localhost.example.org', false],
])('only this machine can call %s: %s', (host, only) => expect(isLoopback(host)).toBe(only))

test('a call that cannot even be begun has a reason', async () => {
  const hello = { role: 'driver', session: newSessionId(), fresh: true, received: 0 } as const
  const address = { host: '127.999.1.1', port: 5999, secure: undefined }
  await expect(dial({ address, token: 'x'.repeat(16), tls: undefined, hello })).rejects.toMatchObject({
    ...{ hopeless: true, reason: expect.stringMatching(/^it cannot be called: Invalid URL/), cause: expect.any(Error) },
  })
})
