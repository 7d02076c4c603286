import { readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { runScript } from '../support/run-script.ts'
import { userProject } from '../support/user-project.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const page = readFileSync(join(root, 'docs/data.md'), 'utf8')

/** The scripts of the page: those that begin with a comment that names them. */
const scripts = [...page.matchAll(/```ts\n\/\/ ([\w-]+\.ts)\n(.*?)```/gs)].map(
  ([, name, text]) => [name!, text!] as const,
)

const questions = [
  { id: 'a', question: 'What is one plus one?', solution: '2', level: 1 },
  { id: 'b', question: 'Who was that?', solution: 'me', level: 2 },
]
const files = {
  'package.json': '{"type":"module"}',
  'questions.jsonl': questions.map((row) => `${JSON.stringify(row)}\n`).join(''),
  'questions.csv': ['question,level', ...questions.map(({ question, level }) => `${question},${level}`)].join('\n'),
}

/** What each of them prints. */
const prints: Readonly<Record<string, RegExp>> = {
  'evaluate.ts': /^a success\nb success\n$|^b success\na success\n$/,
  'checked.ts': /^2: What is one plus one\?\n3: Who was that\?\n$/,
  'parts.ts': /^train \d\nvalidation \d\ntest \d\n$/,
}

describe('the scripts of docs/data.md', () => {
  it('are all tried', () => expect(scripts.map(([name]) => name).toSorted()).toEqual(Object.keys(prints).toSorted()))

  it.each(scripts)('%s runs as it is', async (name, text) => {
    const path = userProject({ ...files, [name]: text })
    symlinkSync(join(root, 'node_modules/zod'), path('node_modules/zod'))
    const ended = await runScript(path(name), { cwd: path('') })
    expect(ended).toMatchObject({ code: 0, stderr: '', stdout: expect.stringMatching(prints[name]!) })
  })
})
