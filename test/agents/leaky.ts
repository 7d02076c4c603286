import { appendFileSync, writeSync } from 'node:fs'
import { defineAgent, defineGrader } from 'manyworlds'
import { defineEnvironment, stepAgent } from 'manyworlds/agents'
import type { StepContent } from '../../src/trajectory/step.ts'

/** Under this, a context takes steps of every kind from this package. */
const RECORD = Symbol.for('manyworlds.record')

export interface Leak {
  readonly secret: string
  readonly ledger: string
  /** Fails with the secret in everything that an error has. */
  readonly fails?: boolean
  /** Ends its worker, with last words on stderr. */
  readonly crashes?: boolean
  /** Also in other forms: base64, in a URL, as bytes. */
  readonly derived?: boolean
  /** Steps of other kinds. */
  readonly steps?: readonly StepContent[]
  /** Asks for nothing that is stored, so that nothing but its input has to be equal. */
  readonly quiet?: boolean
}

/** Lets its secret out wherever there is a way. */
export const leaky = defineAgent({
  name: 'leaky',
  params: { key: '' },
  run: async ({ secret, ledger, fails, crashes, steps = [], derived = false, quiet }: Leak, ctx) => {
    appendFileSync(ledger, `${ctx.task.id}\n`)
    if (quiet) return { echo: secret }
    console.log('log', secret, ctx.params.key)
    console.error({ deep: { [secret]: secret } })
    ctx.log('ctx', secret)
    process.stdout.write(`out ${secret}\n`)
    process.stderr.write(`err ${secret}\n`)
    if (derived) {
      ctx.log(Buffer.from(`user:${secret}`).toString('base64'), Buffer.from(`Bearer ${secret}`).toString('base64url'))
      ctx.log(encodeURIComponent(secret), JSON.stringify(JSON.stringify({ secret })))
    }
    await ctx.step({ text: `note ${secret}`, data: { [secret]: new Map([[secret, new Set([secret])]]) } })
    await ctx.step({ action: { type: secret }, observation: `saw ${secret}` })
    const record = (ctx as unknown as Record<symbol, (step: StepContent) => Promise<void>>)[RECORD]!.bind(ctx)
    for (const step of steps) await record(step)
    if (derived) await ctx.step({ text: 'bytes', data: Buffer.from(`bytes ${secret}`) })
    const answer = await ctx.ask<string>('vault', 'open')
    const innocent = await ctx.ask<string>('vault', 'innocent')
    const asked = await ctx.ask<string>('vault', `with ${secret}`)
    const made = await ctx.once('make', null, () => ({ made: secret }))
    if (crashes) {
      await new Promise((done) => setTimeout(done, 300))
      writeSync(2, `last words: ${secret}\n`)
      process.kill(process.pid, 'SIGKILL')
      await new Promise(() => {})
    }
    const below = await ctx.runTask(echo.task({ said: secret }, { metadata: { secret } }))
    if (fails) {
      const error = new TypeError(`failed with ${secret}`, { cause: new Error(`because of ${secret}`) })
      throw Object.assign(error, { response: { headers: { authorization: `Bearer ${secret}` } } })
    }
    return {
      answer,
      innocent,
      asked,
      made,
      below: below.answer,
      bytes: derived && Buffer.from(secret),
      [secret]: 'key',
    }
  },
})

export const echo = defineAgent({
  name: 'leaky-echo',
  run: async (input: unknown) => ({ echo: input }),
})

export const praise = defineGrader({
  name: 'leaky-praise',
  grade: ({ answer }) => ({ reward: 1, feedback: `it said ${JSON.stringify(answer)}` }),
})

/** Its grader fails. */
export const blame = defineGrader({
  name: 'leaky-blame',
  grade: ({ answer }) => {
    throw new Error(`cannot grade ${JSON.stringify(answer)}`)
  },
})

/** Asks for a sub-task that is named as its input is. */
export const nosy = defineAgent({
  name: 'leaky-nosy',
  run: async (id: string, ctx) => (await ctx.runTask(echo.task(1, { id }))).answer,
})

const safe = defineEnvironment({
  name: 'leaky-safe',
  reset: ({ input }: { input: string }) => ({ state: { input }, observation: 'a door', candidates: ['knock', 'open'] }),
  step: ({ input }, action) => ({
    observation: action === 'open' ? input : 'a door',
    reward: 1,
    done: action === 'open',
  }),
})

/** What it was given is in its last observation, and nowhere else. */
export const burglar = stepAgent({
  name: 'leaky-burglar',
  environment: safe,
  act: ({ step }) => (step === 0 ? 'knock' : 'open'),
})

/** Tells what it knows of a variable, and says aloud what it was given. */
export const envious = defineAgent({
  name: 'leaky-envious',
  run: async ({ variable, said }: { variable: string; said: readonly string[] }) => {
    console.log(...said)
    return process.env[variable] ?? null
  },
})
