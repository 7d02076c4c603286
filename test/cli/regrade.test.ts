import { RunFile } from 'manyworlds/runs'
import { expect, it } from 'vitest'
import { manyworlds } from './manyworlds.ts'
import { project } from './project.ts'

const SCRIPT = `
import { defineAgent, Runners } from 'manyworlds'
import { kind } from './graders.ts'
const upper = defineAgent({ name: 'upper', run: async (text: string) => text.toUpperCase() })
const tasks = ['a', 'b', 'c'].map((text) => upper.task(text, text === 'c' ? { groundTruth: 'C', id: text } : { groundTruth: 'x' }))
await Runners.runTask(tasks, { grade: kind })
`
const GRADERS = `
import { defineGrader } from 'manyworlds'
export const kind = defineGrader({ name: 'kind', grade: () => true })
export const strict = defineGrader({ name: 'strict', trajectory: true, grade: ({ answer, groundTruth }) => answer === groundTruth })
export const broken = defineGrader({ name: 'broken', grade: ({ answer }) => { if (answer === 'B') throw new Error('no'); return 1 } })
`

it('answers are graded again by another grader, and nothing is run again', async () => {
  const { path, options } = project({ 'run.ts': SCRIPT, 'graders.ts': GRADERS })
  await manyworlds(['run', 'run.ts', '--run-id', 'r', '-q'], options)
  const store = path('.manyworlds/runs')
  const regraded = await manyworlds(['regrade', 'r', '--grade', 'graders.ts#strict', '--json'], options)
  expect(regraded.stderr).toContain("run r: 3 answers graded by 'strict', 2 with another result than before")
  expect(regraded.code).toBe(0)
  const lines = regraded.stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(lines.find(({ id }) => id === 'c')).toMatchObject({ before: { reward: 1 }, after: { reward: 1 } })
  expect(lines.find(({ id }) => id === '#1')).toMatchObject({ before: { success: true }, after: { success: false } })
  {
    using file = RunFile.open('r', { store })
    const grades = Object.fromEntries([...file.responses()].map(({ id, grade }) => [id, grade?.success]))
    expect(grades).toEqual({ '#1': false, '#2': false, c: true })
    expect(file.overview()).toMatchObject({ status: 'finished', sessions: 1, counts: { success: 3 } })
  }
  const broken = await manyworlds(['regrade', 'r', '--grade', 'graders.ts#broken'], options)
  expect(broken.code).toBe(1)
  expect(broken.stderr).toContain('1 answer could not be graded')
})

it('a file that makes a run when it is imported is refused, and its run is not made', async () => {
  const graded = (run: string) => `${SCRIPT.replace('await Runners', run)}\nexport { kind } from './graders.ts'`
  const { options } = project({
    'run.ts': SCRIPT,
    'graders.ts': GRADERS,
    'top.ts': graded('await Runners'),
    // The import is over before its run would be made.
    'main.ts': `${graded('const main = async () => Runners')}\nsetTimeout(main, 1)\nawait new Promise((done) => setTimeout(done, 50))`,
    'guarded.ts': graded('if (import.meta.main) await Runners'),
  })
  await manyworlds(['run', 'run.ts', '--run-id', 'r', '-q'], options)
  const regrade = (file: string) => manyworlds(['regrade', 'r', '--grade', `${file}#kind`], options)
  for (const file of ['top.ts', 'main.ts']) {
    const { code, stderr } = await regrade(file)
    expect(stderr).toMatch(
      new RegExp(`^manyworlds: ${file} makes a run .* module of their own.*\\n.* help regrade.*\\n$`),
    )
    expect(code).toBe(2)
  }
  expect(await regrade('guarded.ts')).toMatchObject({ code: 0, stderr: expect.stringContaining('3 answers graded') })
  expect((await manyworlds(['runs', '--json'], options)).stdout.match(/"runId":/g)).toHaveLength(1)
})

it('what is no grader is a mistake on the command line', async () => {
  const { options } = project({ 'run.ts': SCRIPT, 'graders.ts': GRADERS, 'none.ts': 'export const x = 1' })
  await manyworlds(['run', 'run.ts', '--run-id', 'r', '-q'], options)
  const words = async (...more: string[]) => (await manyworlds(['regrade', 'r', ...more], options)).stderr
  expect(await words()).toContain('--grade FILE is missing')
  expect(await words('--grade', 'graders.ts')).toContain('exports several graders; name one: graders.ts#')
  expect(await words('--grade', 'graders.ts#nosuch')).toContain(
    "exports no grader 'nosuch'; it has broken, kind, strict",
  )
  expect(await words('--grade', 'none.ts')).toContain('exports no grader; export what defineGrader()')
  expect(await words('--grade', 'nofile.ts')).toContain('file not found: nofile.ts')
})
