import { expect, it } from 'vitest'
import { Needle } from '../../src/view/read/needle.ts'

it('finds a text in a list that has more elements than a call may have arguments', () => {
  const list = Array.from({ length: 500_000 }, (_, n) => `row ${n}`)
  expect(new Needle('ROW 499999').inValue({ list })).toMatchObject({ excerpt: 'row 499999', from: 0, length: 10 })
  expect(new Needle('row 500000').inValue({ list })).toBeUndefined()
})
