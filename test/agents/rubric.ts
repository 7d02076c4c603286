import { defineGrader, type GradeSample } from 'manyworlds'
import { exactMatch, json, numeric, weighted } from 'manyworlds/grade'
import * as z from 'zod'

/** Graders that hold code, which workers find in this module. */
export const rubric = weighted({
  correct: [exactMatch({ ignoreCase: true }), 0.8],
  short: [({ answer }: GradeSample<unknown, string>) => answer.length < 8, 0.2],
})

const even = defineGrader({ name: 'even', grade: ({ answer }) => Number(answer) % 2 === 0 })
export const nested = weighted({ number: [numeric(), 1], even: [even, 1] }, { name: 'nested' })

export const person = json({ name: 'person', schema: z.object({ name: z.string(), age: z.number() }) })
