import { expect, test } from 'vitest'
import { CalledNodes } from '../../src/engines/nodes/called-nodes.ts'
import { DialError, REFUSALS } from '../../src/network/dial.ts'
import { reasonOf } from '../../src/text/reason.ts'

/** When a driver stops waiting for nodes that it calls, and what it says then. */

const refusal = () => new DialError('it has another token', 'unproved')
const absent = () => new DialError('nothing listens there (ECONNREFUSED)', 'absent')
const never = () => {
  throw new Error('none is connected')
}

function refuse(nodes: CalledNodes, name: string, times: number): void {
  for (let n = 0; n < times; n++) nodes.failed(name, refusal())
}

test('a refusal that nobody proved counts when every address repeats it', () => {
  const nodes = new CalledNodes(['a:1', 'b:1'])
  refuse(nodes, 'a:1', 10)
  refuse(nodes, 'b:1', REFUSALS - 1)
  expect(nodes.hopeless).toBe(false)
  nodes.failed('b:1', absent())
  refuse(nodes, 'b:1', REFUSALS - 1)
  expect(nodes.hopeless).toBe(false)
  refuse(nodes, 'b:1', 1)
  expect(nodes.hopeless).toBe(true)
  expect(nodes.giveUp(never)).toEqual({
    code: 'NODE_REFUSED',
    text: expect.stringMatching(
      /^no node can be used: a:1: it has another token; b:1: .*token\. Such an answer is not authenticated .* program in between/,
    ),
  })
})

test('it never counts once a node was connected, however it was lost', () => {
  for (const connect of [(nodes: CalledNodes) => nodes.connected('b:1'), () => {}]) {
    const nodes = new CalledNodes(['a:1', 'b:1'])
    connect(nodes)
    nodes.lost('b:1', reasonOf('its process has ended', 'lost'))
    refuse(nodes, 'a:1', 100)
    refuse(nodes, 'b:1', 100)
    expect(nodes.hopeless).toBe(false)
  }
})

test('what we know ourselves counts at once', () => {
  const nodes = new CalledNodes(['a:1'])
  nodes.connected('a:1')
  nodes.failed('a:1', new DialError('a token is needed', 'hopeless'))
  expect(nodes.hopeless).toBe(true)
})

test('an end that was not meant counts as a refusal that nobody proved, with its own advice', () => {
  const nodes = new CalledNodes(['a:1'])
  for (let n = 0; n < REFUSALS; n++) {
    expect(nodes.hopeless).toBe(false)
    nodes.failed('a:1', new DialError('this is a driver', 'wrong-end'))
  }
  expect(nodes.hopeless).toBe(true)
  expect(nodes.giveUp(never)).toEqual({
    code: 'NODE_REFUSED',
    text: expect.stringMatching(
      /^no node can be used: a:1: this is a driver\. Correct the address; if it is right, a program/,
    ),
  })
})

test('every state has a reason', () => {
  const nodes = new CalledNodes(['called:1', 'connected:1', 'lost:1', 'failed:1'])
  nodes.connected('connected:1')
  nodes.lost('lost:1', reasonOf('', 'it did not say why'))
  nodes.failed('failed:1', new DialError('', 'other'))
  expect(nodes.giveUp((name) => reasonOf(`${name} has no code`, 'broken'))).toEqual({
    code: 'NODES_UNREACHABLE',
    text: 'no node can be used: called:1: it has not answered yet; connected:1: connected:1 has no code; lost:1: it was lost (it did not say why) and has not reconnected; failed:1: the call failed for an unknown reason',
  })
})

test('the advice to start a node is for addresses where none runs', () => {
  const nodes = new CalledNodes(['a:1', 'b:1'])
  nodes.failed('a:1', absent())
  nodes.lost('b:1', reasonOf('its process has ended', 'lost'))
  expect(nodes.giveUp(never).text).toMatch(/Start one there with `manyworlds node --listen HOST:PORT`$/)
})
