import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { createServer, type Socket } from 'node:net'
import { afterAll, describe, expect, test } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { expectOneError, printed, runScript } from '../support/run-script.ts'
import { userProject } from '../support/user-project.ts'

const AGENT = `
  import { createServer } from 'node:http'
  import { once } from 'node:events'
  import { connect } from 'node:net'
  import { setTimeout as sleep } from 'node:timers/promises'
  import { defineAgent, DistributedExecutor, isWorker, Runners } from 'manyworlds'
  const double = defineAgent({ name: 'double', run: async (input) => 2 * input })
  const config = { workerNum: 2, store: false }
  const port = Number(process.argv[2])
  `

const run = (script: string, ...args: (string | number)[]) =>
  runScript(userProject({ 'main.mjs': AGENT + script })('main.mjs'), { args: args.map(String) })

describe('an agent and a server in one file', () => {
  /** Asks the server four times, as its clients would, then ends it. */
  const CLIENT = `
    const answers = []
    for (const n of [1, 2, 3, 4]) answers.push(await (await fetch('http://localhost:' + port + '/' + n)).json())
    console.log(JSON.stringify(answers))
    process.exit()`
  const HANDLER = `async (request, response) => {
    const { answer } = await Runners.runTask(double.task(Number(request.url.slice(1))), config)
    response.end(JSON.stringify(answer))
  }`

  test.each([
    ['at the top level', `createServer(${HANDLER}).listen(port, async () => { ${CLIENT} })`],
    ['with an object of options', `createServer(${HANDLER}).listen({ port, host: '::' }, async () => { ${CLIENT} })`],
    [
      'that is awaited',
      `await new Promise((up, failed) => createServer(${HANDLER}).on('error', failed).listen(port, up)); ${CLIENT}`,
    ],
    [
      'in a function that catches and exits',
      `async function start() {
        await sleep(10)
        await new Promise((up, failed) => createServer(${HANDLER}).on('error', failed).listen(port, up))
        ${CLIENT}
      }
      start().catch((error) => { console.error(error); process.exit(1) })`,
    ],
    [
      'behind import.meta.main',
      `if (import.meta.main) createServer(${HANDLER}).listen(port, async () => { ${CLIENT} })`,
    ],
  ])('%s: workers do not open the port, requests are answered', async (_, script) => {
    const ended = await run(script, await freePort())
    expect(printed(ended), ended.stderr).toEqual([[2, 4, 6, 8]])
    expect(ended).toMatchObject({ code: 0, stderr: '' })
  })

  test('what the system chooses, and what tasks and setups open, is theirs', async () => {
    const script = `
      const own = createServer((request, response) => response.end('own')).listen(0)
      await once(own, 'listening')
      const listens = defineAgent({
        name: 'listens',
        setup: async () => once(createServer((request, response) => response.end('setup')).listen(port), 'listening'),
        run: async (path) => {
          const server = createServer((request, response) => response.end('task')).listen(path)
          await once(server, 'listening')
          server.close()
          const ports = [port, own.address().port]
          return Promise.all(ports.map(async (port) => (await fetch('http://localhost:' + port)).text()))
        },
      })
      own.unref()
      console.log(JSON.stringify((await Runners.runTask(listens.task(process.cwd() + '/socket'), { store: false })).answer))`
    const at = userProject({ 'main.mjs': AGENT + script })
    const ended = await runScript(at('main.mjs'), { args: [String(await freePort())], cwd: at('.') })
    expect(printed(ended), ended.stderr).toEqual([['setup', 'own']])
  })

  test('an agent that is defined below the server is one error, which names the server', async () => {
    const script = `
      createServer(() => {}).listen(port)
      const late = defineAgent({ name: 'late', run: async () => 1 })
      try { await Runners.runTask(late.task(0), config) } finally { setImmediate(() => process.exit(1)) }`
    expectOneError(await run(script, await freePort()), 'AGENT_DEFINED_TOO_LATE', "'late'", 'server.listen()', 'above')
  })
})

describe('a queue consumer', () => {
  const queue = startQueue()
  afterAll(async () => (await queue).close())

  const TAKE = `
    const url = 'http://localhost:' + port
    const take = async () => (await fetch(url + '/take')).json()
    const done = (job) => fetch(url + '/done/' + job)
    async function work(job) {
      await Runners.runTask(double.task(job), config)
      await done(job)
    }
  `
  const consumers: [string, string][] = [
    ['an interval', 'setInterval(async () => { const job = await take(); if (job !== null) await work(job) }, 20)'],
    [
      'an interval beside a top level that never ends',
      `setInterval(async () => { const job = await take(); if (job !== null) await work(job) }, 20)
       await new Promise(() => {})`,
    ],
    ['messages', `const socket = connect(port + 1).on('data', (jobs) => { for (const job of jobs) work(job) })`],
    [
      'messages, beside a top level that never ends',
      `const socket = connect(port + 1).on('data', (jobs) => { for (const job of jobs) work(job) })
       await new Promise(() => {})`,
    ],
    [
      'messages that are submitted to an executor',
      `const executor = new DistributedExecutor(config)
       const socket = connect(port + 1).on('data', (jobs) => { for (const job of jobs) executor.submitTask(double.task(job)) })
       for (;;) { await sleep(20); await executor.collectResults() }`,
    ],
  ]
  test.each(consumers)('that workers would be too, by %s, is one error that names the cure', async (_, script) => {
    const { port } = await queue
    const ended = await run(TAKE + script, port)
    const words = ['main.mjs:', 'a module of their own', '`if (!isWorker)`']
    expect(ended.stderr).toContain('RUNNERS_IN_WORKER')
    for (const word of words) expect(ended.stderr).toContain(word)
    expect(ended.code).toBe(1)
  })

  test('whose agents are in a module of their own, or that is guarded, does all of its jobs', async () => {
    const { port, reset, finished } = await queue
    const consume = `
      const timer = setInterval(async () => {
        const job = await take()
        if (job === null) return clearInterval(timer)
        await work(job)
      }, 5)`
    for (const script of [`if (!isWorker) { ${consume} }`, `if (import.meta.main) { ${consume} }`]) {
      reset(60)
      const ended = await run(TAKE + script, port)
      expect(ended).toMatchObject({ code: 0, stderr: '', stdout: '' })
      expect(finished()).toBe(60)
    }
    reset(60)
    const agents = `import { defineAgent } from 'manyworlds'\nexport const own = defineAgent({ name: 'own', run: (input) => input })`
    const main = `${AGENT}\nimport { own } from './agents.mjs'${TAKE.replace('double.task', 'own.task')}${consume}`
    const ended = await runScript(userProject({ 'main.mjs': main, 'agents.mjs': agents })('main.mjs'), {
      args: [String(port)],
    })
    expect(ended).toMatchObject({ code: 0, stderr: '', stdout: '' })
    expect(finished()).toBe(60)
  })
})

describe('a script that only runs tasks is no server', () => {
  test.each([
    [
      'runs that are awaited together, and begin at different times',
      `const answers = await Promise.all([0, 400, 800].map(async (ms) => {
         await sleep(ms)
         return (await Runners.runTask(double.task(ms), config)).answer
       }))
       console.log(JSON.stringify(answers))`,
      [0, 800, 1600],
    ],
    [
      'a main() that nobody awaits, and that takes its time',
      `async function main() {
         await sleep(500)
         try {
           const responses = await Promise.all([1, 2].map((n) => Runners.runTask(double.task(n), config)))
           console.log(JSON.stringify(responses.map(({ answer }) => answer)))
         } finally {
           if (isWorker) process.kill(process.pid, 'SIGKILL')
         }
       }
       main()`,
      [2, 4],
    ],
    [
      'an executor in a main() that nobody awaits',
      `async function main() {
         await sleep(10)
         const executor = new DistributedExecutor(config)
         const id = executor.submitTask(double.task(1))
         console.log(JSON.stringify((await executor.collectResults()).get(id).answer))
         await executor.shutdown()
       }
       main()`,
      2,
    ],
    [
      'timers that would end it, long after its main() has begun',
      `async function main() {
         await sleep(10)
         console.log(JSON.stringify((await Runners.runTask(double.task(1), config)).answer))
         await sleep(1000)
         console.log(JSON.stringify((await Runners.runTask(double.task(1), config)).status))
         process.exit()
       }
       main()
       setTimeout(() => { if (isWorker) process.exit(1) }, 500)
       setInterval(() => { if (isWorker) process.exit(1) }, 100)`,
      2,
      'success',
    ],
    [
      'an interval that shows how far it is',
      `const timer = setInterval(() => {}, 10)
       console.log(JSON.stringify((await Runners.runTask(double.task(1), config)).answer))
       clearInterval(timer)`,
      2,
    ],
  ])('%s', async (_, script, ...expected) => {
    const ended = await run(script)
    expect(printed(ended), ended.stderr).toEqual(expected)
    expect(ended).toMatchObject({ code: 0, stderr: '' })
  })
})

test('a setup that runs tasks fails, and says what could', async () => {
  const script = `
    const asks = defineAgent({ name: 'asks', setup: () => Runners.runTask(double.task(1)), run: async () => 1 })
    const { error } = await Runners.runTask(asks.task(0), config)
    console.log(JSON.stringify([error.code, error.message]))`
  const [[code, message]] = printed(await run(script)) as [[string, string]]
  expect(code).toBe('SETUP_FAILED')
  expect(message).toContain('ctx.runTask')
})

/** Jobs over HTTP, one at a time; and, at the next port, as they come, to whoever is connected. */
async function startQueue() {
  // More than two scripts and their workers take, however long they take to find out that they must not.
  let [jobs, done] = [1_000_000, 0]
  const http = createHttpServer((request, response) => {
    if (request.url === '/take') response.end(JSON.stringify(jobs > 0 ? jobs-- : null))
    else response.end(String(done++))
  })
  const push = (socket: Socket) => {
    const timer = setInterval(() => socket.write(Buffer.from([1])), 100)
    socket.on('error', () => {}).on('close', () => clearInterval(timer))
  }
  const messages = createServer(push)
  const port = await freePort(2)
  await Promise.all([once(http.listen(port), 'listening'), once(messages.listen(port + 1), 'listening')])
  return {
    port,
    finished: () => done,
    reset: (count: number) => {
      jobs = count
      done = 0
    },
    close: () => {
      http.closeAllConnections()
      http.close()
      messages.close()
    },
  }
}
