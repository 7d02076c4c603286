import { expect, test } from 'vitest'
import { SEED, share, stormTest } from '../support/storm.ts'
import { killStorm } from './kill-storm.ts'

const NOTHING_WRONG = { lost: [], twice: [], wronglyCharged: [], wrong: [], leftBehind: [] }
const LONG = { timeout: 480_000 }

test(
  `kill -9 of workers again and again loses no task, answers none twice and charges none (seed ${SEED})`,
  LONG,
  async () => {
    const kills = share(15, 300)
    const report = await killStorm({ engine: 'local', kills, seed: SEED })
    expect(report).toMatchObject({ kills, ...NOTHING_WRONG, rightlyCharged: [] })
    expect(report.busy).toBeGreaterThan(kills / 2)
  },
)

test(`kill -9 charges only tasks that it hit twice (seed ${SEED})`, LONG, async () => {
  const kills = share(20, 150)
  const report = await killStorm({ engine: 'local', kills, seed: SEED, again: 0.7 })
  expect(report).toMatchObject({ kills, ...NOTHING_WRONG })
  expect(report.rightlyCharged).not.toEqual([])
})

stormTest(`the same on nodes (seed ${SEED})`, LONG, async () => {
  const report = await killStorm({ engine: 'nodes', kills: 150, seed: SEED })
  expect(report).toMatchObject({ kills: 150, ...NOTHING_WRONG, rightlyCharged: [] })
})
