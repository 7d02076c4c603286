import { createServer, type Server } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { connectError, isFinal, lossOf, startedTooSlowly } from '../../dist/engines/ray/error-advice.js'
import { whoListens } from '../../dist/engines/ray/reachable.js'
import { versionMismatch } from '../../dist/engines/ray/versions.js'

/** What is made of Ray's words. The texts are those of Ray 2.60. */

const KILLED = `ActorDiedError: The actor died unexpectedly before finishing this task.
	class_name: Worker
The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits with a connection error code 2. End of file. Some common causes include: (1) the process was killed by the OOM killer due to high memory usage, (2) ray stop --force was called, or (3) the worker crashed unexpectedly due to SIGSEGV or another unexpected error.`

test('an actor that was killed by a signal is not said to have run out of memory', () => {
  expect(lossOf(KILLED)).toBe('its process ended without a word: it crashed, or was killed by a signal')
  expect(lossOf('OutOfMemoryError: Task was killed due to the node running low on memory.')).toContain('low on memory')
  expect(isFinal(KILLED)).toBe(false)
})

test('what Ray has ruled out is not tried again, and its reason is passed on', () => {
  const unschedulable =
    "ActorUnschedulableError: The actor is not schedulable: The node specified via NodeAffinitySchedulingStrategy doesn't exist any more or is infeasible, and soft=False was specified."
  expect(isFinal(unschedulable)).toBe(true)
  expect(lossOf(unschedulable)).toBe(unschedulable)
  const pip = `RuntimeEnvSetupError: Failed to set up runtime environment.\n${'  a long traceback\n'.repeat(50)}    ERROR: No matching distribution found for nothing\n`
  expect(isFinal(pip)).toBe(true)
  expect(lossOf(pip)).toContain('ERROR: No matching distribution found for nothing')
})

test('a Ray that does not come up in time here is not taken for a cluster that does not answer', async () => {
  const said =
    'Exception: The current node timed out during startup. This could happen because some of the raylet failed to startup or the GCS has become overloaded.'
  expect(startedTooSlowly(said)).toBe(true)
  expect((await connectError('no', said, 'auto')).message).toMatch(/did not start in time.*too busy/)
})

test('a machine outside of the cluster is told that ray:// is for it', async () => {
  const said = "RuntimeError: No node info found matching attributes: '' when trying to resolve node to connect to."
  const { message } = await connectError('no', said, '10.0.0.1:6379')
  expect(message).toMatch(/this machine is not part of the cluster.*ray:\/\/host:10001/)
})

test('a Ray Client server that did not start in time is tried again', async () => {
  const said =
    'ConnectionAbortedError: Initialization failure from server:\nTraceback (most recent call last):\nRuntimeError: Starting Ray client server failed. See ray_client_server_23000.err for detailed logs.'
  expect(startedTooSlowly(said)).toBe(true)
  expect((await connectError('no', said, 'ray://head:10001')).message).toMatch(/Ray Client server.*in time, twice/)
})

test('other versions are named; text of any kind is read in no time', async () => {
  const told = `RuntimeError: Version mismatch: The cluster was started with:\n    Ray: 2.50.0\n    Python: 3.10.12\nThis process on node 10.0.0.1 was started with:\n    Ray: 2.60.0\n    Python: 3.11.7\n`
  const found = { there: { ray: '2.50.0', python: '3.10' }, here: { ray: '2.60.0', python: '3.11' } }
  expect(versionMismatch(told)).toEqual(found)
  const { message } = await connectError('no', told, 'auto')
  expect(message).toContain(
    'Ray 2.50.0 on Python 3.10, this environment Ray 2.60.0 on Python 3.11: leave ray.version out',
  )
  for (const part of ['Version mismatch Ray: 1 ', 'Version mismatch Ray: 1.1 Python: 3.1 ', '1', '\n', 'ERROR: '])
    await connectError('no', part.repeat(100_000), 'auto')
})

let server: Server | undefined
afterEach(() => server?.close())

test.each<[string, string | undefined, RegExp]>([
  ['nothing', undefined, /head of the cluster is stopped/],
  ['a web page', 'HTTP/1.1 400 Bad Request\r\n\r\n', /not that of the dashboard \(8265\)/],
  ['a TLS alert', '\x15\x03\x03\x00\x02\x02\x46', /needs ray\.tls/],
  ['the end', '', /needs ray\.tls/],
  ['settings of HTTP/2', '\0\0\0\x04\0\0\0\0\0', /a gRPC server answers there/],
])('somebody who answers with %s', async (_, answer, expected) => {
  server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => answer !== undefined && socket.end(answer, 'latin1'))
  })
  const { port } = await new Promise<{ port: number }>((resolve) =>
    server!.listen(0, '127.0.0.1', () => resolve(server!.address() as { port: number })),
  )
  expect(await whoListens(`127.0.0.1:${port}`)).toMatch(expected)
})
