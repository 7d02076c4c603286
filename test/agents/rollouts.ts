import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineEnvironment, stepAgent } from 'manyworlds/agents'

/** A game of three coins. Each action calls heads or tails, and gets a reward of 1 if the coin falls so. */
export interface CoinTask {
  /** Each step takes up to so many milliseconds. */
  readonly ms?: number
  /** What the player does at its second step: in the first attempt, or in all. */
  readonly fails?: 'always' | 'once' | 'dies once'
  /** What the table does at the second step. */
  readonly breaks?: boolean
  /** Every attempt writes its id here when it begins. */
  readonly ledger?: string
}

const SIDES = ['heads', 'tails']

const table = defineEnvironment({
  name: 'table',
  reset({ id, input }: { id: string; input: CoinTask }) {
    if (input.ledger !== undefined) appendFileSync(input.ledger, `${id}\n`)
    return { state: { at: 0, input }, observation: { coin: 'none' }, candidates: SIDES }
  },
  async step(state, call: string, ctx) {
    // Drawn from a stream of its own: how long it takes must not change how the coins fall.
    if (state.input.ms !== undefined) await sleep(ctx.randomStream('latency')() * state.input.ms)
    if (state.input.breaks && state.at === 1) throw new Error('the table is broken')
    const coin = SIDES[Math.floor(ctx.random() * 2)]!
    return { observation: { coin }, reward: call === coin ? 1 : 0, done: ++state.at === 3, candidates: SIDES }
  },
})

export const player = stepAgent({
  name: 'player',
  environment: table,
  act: ({ task, step, random }, ctx) => {
    const { fails } = task.input as CoinTask
    if (step === 1 && (fails === 'always' || (fails === 'once' && ctx.attempt === 1))) throw new Error('no more coins')
    if (step === 1 && fails === 'dies once' && ctx.attempt === 1) process.kill(process.pid, 'SIGKILL')
    return { action: SIDES[Math.floor(random() * 2)]!, logProb: Math.log(0.5) }
  },
})
