import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { loadPolicy, promptLearner, savePolicy, textPolicy } from 'manyworlds/train'
import { expect, onTestFinished, test } from 'vitest'
import { unifiedDiff } from '../../dist/text/line-diff.js'
import { bestOf, evaluationFigures } from '../../dist/train/pipeline/evaluation.js'
import { UnstoredTraining } from '../../dist/train/pipeline/unstored-training.js'
import { isBetterOn } from '../../dist/train/prompts/compare.js'
import { exampleText } from '../../dist/train/prompts/example-text.js'
import { minibatch } from '../../dist/train/prompts/minibatch.js'
import { frontWeights, meanScore, pickByWeight } from '../../dist/train/prompts/pareto.js'
import { randomEdit } from '../../dist/train/prompts/random-edits.js'
import { textIn } from '../../dist/train/prompts/reflection.js'
import { textChanges } from '../../dist/train/prompts/text-files.js'
import { packTexts, unpackTexts } from '../../dist/train/prompts/texts.js'
import { cpuMs } from '../support/cpu-ms.ts'

const refusal = (code: string, message: RegExp) =>
  expect.objectContaining({ code, message: expect.stringMatching(message) })

const newFolder = () => {
  const path = mkdtempSync(join(tmpdir(), 'mw-texts-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

test('a specialist stays beside a generalist, and whoever is nowhere needed is never picked', () => {
  // The third is best at one task alone; the first is nowhere best; the fourth is only where others are too.
  expect(
    frontWeights([
      [0, 0, 0],
      [1, 1, 0],
      [0, 0, 1],
      [1, 0, 0],
    ]),
  ).toEqual([0, 2, 1, 0])
  // Of equals the newer.
  expect(
    frontWeights([
      [1, 0],
      [1, 0],
    ]),
  ).toEqual([0, 2])
  expect(frontWeights([[null, null]])).toEqual([0])
  expect(pickByWeight([0, 2, 1, 0], 0)).toBe(1)
  expect(pickByWeight([0, 2, 1, 0], 0.7)).toBe(2)
  expect(pickByWeight([0, 0], 0.5)).toBe(1)
})

const pools = fc.integer({ min: 1, max: 6 }).chain((tasks) =>
  fc.array(fc.array(fc.option(fc.constantFrom(0, 0.25, 0.5, 1)), { minLength: tasks, maxLength: tasks }), {
    minLength: 1,
    maxLength: 8,
  }),
)

test('whatever the scores are: each task keeps one of its best, nobody who is picked is dominated, and the best by mean stays', () => {
  fc.assert(
    fc.property(pools, (candidates) => {
      const weights = frontWeights(candidates)
      const picked = [...candidates.keys()].filter((one) => weights[one]! > 0)
      for (const task of candidates[0]!.keys()) {
        const known = candidates.flatMap((scores) => scores[task] ?? [])
        if (known.length === 0) continue
        const best = Math.max(...known)
        expect(picked.some((one) => candidates[one]![task] === best)).toBe(true)
      }
      const covers = (a: number, b: number) =>
        candidates[b]!.every((score, task) => (candidates[a]![task] ?? -1) >= (score ?? -1)) &&
        candidates[b]!.some((score, task) => (candidates[a]![task] ?? -1) > (score ?? -1))
      for (const one of picked) for (const other of picked) expect(covers(other, one)).toBe(false)
      const whole = candidates.every((scores) => scores.every((score) => score !== null))
      const top = Math.max(...candidates.map(meanScore))
      const onFront = candidates.some(
        (scores, one) =>
          meanScore(scores) === top &&
          scores.some(
            (score, task) => score !== null && candidates.every((other, o) => o === one || (other[task] ?? -1) < score),
          ),
      )
      if (whole && onFront) expect(picked.some((one) => meanScore(candidates[one]!) === top)).toBe(true)
    }),
  )
})

test('minibatches go through all tasks, have one size, and depend on the seed', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 12 }), fc.integer(), (count, size, seed) => {
      const tasks = Array.from({ length: count }, (_, n) => `t${n}`)
      const perPass = Math.ceil(count / Math.min(size, count))
      const pass = Array.from({ length: perPass }, (_, n) => minibatch(tasks, size, n + 1, seed))
      for (const batch of pass) expect(new Set(batch).size).toBe(Math.min(size, count))
      expect(new Set(pass.flat()).size).toBe(count)
      expect(minibatch(tasks, size, 1, seed)).toEqual(pass[0])
    }),
  )
})

test('a child is better only if it gains on the tasks of its parent; what nobody could grade is no gain', () => {
  expect(isBetterOn({ a: 0, b: 1 }, { a: 1, b: 1 })).toBe(true)
  expect(isBetterOn({ a: 0, b: 1 }, { a: 1, b: 0 })).toBe(false)
  expect(isBetterOn({ a: 0, b: 1 }, { a: 1, b: null })).toBe(false)
  expect(isBetterOn({ a: null, b: 0 }, { a: 0, b: 1 })).toBe(true)
  expect(isBetterOn({ a: null }, { a: 1 })).toBe(false)
})

test('the new text is found in answers of many forms; others are of no use, and it is known why', () => {
  const limits = { before: 'Old text.', maxChars: 40 }
  const of = (answer: string) => textIn(answer, limits)
  expect(of('Sure.\n<new_text>\nNew.\n</new_text>\nThere.')).toEqual({ text: 'New.' })
  expect(of('Between <new_text> and </new_text>: <new_text>New.</new_text>')).toEqual({ text: 'New.' })
  expect(of('<new_text>```md\nNew.\n```</new_text>')).toEqual({ text: 'New.' })
  expect(of('Here:\n```text\nNew.\nMore.\n```')).toEqual({ text: 'New.\nMore.' })
  expect(of('```\na\n```\nor\n```\nb\n```')).toEqual({ unusable: 'unmarked' })
  expect(of('New.')).toEqual({ unusable: 'unmarked' })
  expect(of('<new_text>New')).toEqual({ unusable: 'cut' })
  expect(of('</new_text><new_text>')).toEqual({ unusable: 'cut' })
  expect(of('<new_text> \n </new_text>')).toEqual({ unusable: 'empty' })
  expect(of(`<new_text>${'x'.repeat(41)}</new_text>`)).toEqual({ unusable: 'long' })
  expect(of('<new_text> Old \n text. </new_text>')).toEqual({ unusable: 'same' })
})

test('a hostile answer of megabytes is read in a moment', () => {
  const begun = cpuMs()
  for (const piece of ['<new_text>', '```', '</new_text>', '<new_text></new_text>', '`', ' ', '<new_text>```'])
    textIn(piece.repeat(Math.ceil(4_000_000 / piece.length)), { before: 'x', maxChars: 100 })
  expect(cpuMs() - begun).toBeLessThan(5000)
})

test('an example shows what was given, done and said of it, cut where it is endless, and never the truth', () => {
  const step = { kind: 'tool', index: 1, atMs: 0, call: null, name: 'lookup', arguments: { raw: '{"q":1}' }, ms: 1 }
  const text = exampleText(1, { question: 'How far?' }, {
    ...{ answer: 'far', ending: { kind: 'terminated' }, episode: null, meta: { groundTruth: 'TRUTH' } },
    grade: { reward: 0.5, success: false, feedback: 'give a number', grader: { name: 'g' } },
    steps: [
      { ...step, result: 'y'.repeat(10_000) },
      { ...step, error: { message: 'no' } },
    ],
  } as never)
  expect(text).toMatch(/^## Example 1: reward 0.5, not solved/)
  expect(text).toContain('{"question":"How far?"}')
  expect(text).toContain('called lookup({"q":1}), which gave yyy')
  expect(text).toContain('which gave error: {"message":"no"}')
  expect(text).toContain('Feedback:\ngive a number')
  expect(text).not.toContain('TRUTH')
  expect(text.length).toBeLessThan(2000)
})

test('random edits differ from the text, and depend on nothing but chance', () => {
  let seed = 1
  const random = () => (seed = (seed * 16807) % 2147483647) / 2147483647
  const edits = Array.from({ length: 50 }, () => randomEdit('Answer the question. Use one word.', random))
  expect(new Set(edits).size).toBeGreaterThan(20)
  for (const edit of edits) expect(edit.trim()).not.toBe('')
})

const texts = fc
  .array(fc.constantFrom('a', 'b', 'c', 'd', '', 'and more'), { maxLength: 30 })
  .map((lines) => lines.map((line) => `${line}\n`).join(''))

test('a diff is what makes the one text of the other', () => {
  const folder = newFolder()
  const file = join(folder, 'text')
  fc.assert(
    fc.property(texts, texts, (a, b) => {
      const diff = unifiedDiff(a, b, { from: 'text', to: 'text' })
      expect(diff === '').toBe(a === b)
      if (diff === '') return
      writeFileSync(file, a)
      writeFileSync(join(folder, 'diff'), diff)
      execFileSync('git', ['apply', '-p0', '--whitespace=nowarn', 'diff'], { cwd: folder })
      expect(readFileSync(file, 'utf8')).toBe(b)
    }),
    { numRuns: 60 },
  )
  expect(textChanges({ instructions: 'a' }, { instructions: 'a', 'tools.x': 'b' }, { from: 0, to: 3 })).toBe(
    '--- tools.x.md\tversion 0\n+++ tools.x.md\tversion 3\n@@ -0,0 +1 @@\n+b\n',
  )
})

test('texts are bytes and back; wrong ones are refused with a reason', async () => {
  expect(unpackTexts(packTexts({ instructions: 'é', 'tools.a': 'b' }))).toEqual({ instructions: 'é', 'tools.a': 'b' })
  expect(unpackTexts(new Uint8Array([1, 2]))).toBeUndefined()
  expect(() => unpackTexts(packTexts({ instructions: 'é' }).slice(0, -2))).toThrow(/damaged/)
  const make = (given: unknown) => () => textPolicy(given as never)
  expect(make({ texts: {} })).toThrow(refusal('POLICY_INVALID', /`texts` is empty/))
  expect(make({ texts: { instructions: ' ' } })).toThrow(refusal('POLICY_INVALID', /'instructions' is empty/))
  expect(make({ texts: { instruction: 'x' } })).toThrow(refusal('POLICY_INVALID', /did you mean 'instructions'\?/))
  expect(make({ texts: { 'tools.a b': 'x' } })).toThrow(refusal('POLICY_INVALID', /unknown text 'tools.a b'/))
  expect(make({ text: {} })).toThrow(refusal('CONFIG_INVALID', /unknown key 'text'/))
})

test('options of the learner are checked at once', () => {
  const make = (given: unknown) => () => promptLearner(given as never)
  const budget = { evaluations: 100 }
  expect(make({ budget })).toThrow(
    refusal('CONFIG_INVALID', /`reflect` must be the name of one of the training's models/),
  )
  expect(make({ reflect: 'm' })).toThrow(refusal('CONFIG_INVALID', /`budget` is required/))
  expect(make({ reflect: 'm', budget: {} })).toThrow(
    refusal('CONFIG_INVALID', /needs `evaluations` \(episodes\), `usd`, or both/),
  )
  expect(make({ reflect: 'm', budget: { usd: 0 } })).toThrow(
    refusal('CONFIG_INVALID', /`budget.usd` must be a number above 0/),
  )
  expect(make({ reflect: 'm', budget, minibatch: 0 })).toThrow(
    refusal('CONFIG_INVALID', /`minibatch` must be a whole number/),
  )
  expect(make({ reflect: 'm', budget, control: 'x' })).toThrow(refusal('CONFIG_INVALID', /'random' or 'blind'/))
  expect(make({ control: 'random', budget })).not.toThrow()
})

test('a folder of texts is for people and programs', async () => {
  const folder = newFolder()
  const policy = textPolicy({ name: 'desk', texts: { instructions: 'Old.', 'tools.find': 'Finds.' } })
  await savePolicy(folder, policy, { version: 4, bytes: packTexts({ instructions: 'New.', 'tools.find': 'Finds.' }) })
  expect(readFileSync(join(folder, 'instructions.md'), 'utf8')).toBe('New.\n')
  expect(readFileSync(join(folder, 'tools.find.md'), 'utf8')).toBe('Finds.\n')
  const loaded = await loadPolicy(folder)
  expect(loaded).toMatchObject({ name: 'desk', version: 4, text: { instructions: 'New.', 'tools.find': 'Finds.' } })
  expect(() => loaded.act({ observation: 1 })).toThrow(
    refusal('POLICY_INVALID', /consists of texts and cannot choose actions/),
  )
})

test('without a store too, texts stay as long as one version has them', async () => {
  const record = new UnstoredTraining('x', {})
  const sha256 = await record.writeFile(packTexts({ instructions: 'The same.' }))
  const row = { update: null, sha256, policy: 'p', bytes: 1, kept: true }
  for (const version of [1, 2]) record.version({ ...row, version })
  record.drop([1])
  expect(unpackTexts(await record.readFile(sha256))).toEqual({ instructions: 'The same.' })
  record.drop([2])
  expect(await record.readFile(sha256)).toBeUndefined()
})

test('the best text is chosen by what the search compares: partial credit counts, failures are 0', () => {
  const outcome = (taskId: string, reward: number) => ({
    ...{ taskId, status: 'success' as const, grade: { reward, success: reward === 1 } },
  })
  const failure = (taskId: string) => ({ taskId, status: 'failed' as const, code: 'TASK_THREW' })
  const rows = [
    [outcome('a', 1), outcome('b', 0.1), outcome('c', 0.1)],
    // Fewer solutions, more partial credit.
    [outcome('a', 0.9), outcome('b', 0.9), outcome('c', 0.9)],
    // The mean of what was graded would be the highest.
    [outcome('a', 1), failure('b'), failure('c')],
  ].map((outcomes, version) => ({
    ...{ version, split: 'validation' as const, run: 'r', tasks: 3, rollouts: 1 },
    summary: evaluationFigures(outcomes, true),
  }))
  expect(rows.map(({ summary }) => summary.score!.toFixed(3))).toEqual(['0.400', '0.900', '0.333'])
  expect(bestOf(rows)!.version).toBe(1)
  expect(bestOf(rows.map(({ summary: { score: _, ...summary }, ...row }) => ({ ...row, summary })))!.version).toBe(2)
})
