import { defineAgent, Runners } from 'manyworlds'

// Everything here comes out differently in a worker; what was sent is what counts.
const params = { pid: process.pid, at: performance.now(), bytes: new Uint8Array([1, 2, 3]), list: new Map([['a', 1]]) }
const teller = defineAgent({
  name: 'teller',
  params,
  setup: async (given) => ({ pid: given.pid }),
  run: async (_input: unknown, ctx) => [ctx.params.pid, ctx.state.pid, ctx.params.bytes[2], ctx.params.list.get('a')],
})
const responses = await Runners.runTask([teller.task(0), teller.withParams({ ...params, pid: 5 }).task(0)])
const [own, other] = [...responses.values()].map(({ answer }) => answer)
console.log(
  JSON.stringify([own?.[0] === process.pid, own?.slice(1).map((value) => value === process.pid || value), other]),
)
