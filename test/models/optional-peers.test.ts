import { globSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { expect, test } from 'vitest'

const DIST = resolve(import.meta.dirname, '../../dist')
const PEER = /(?:from|import|require)\s*\(?\s*['"](ai|@ai-sdk\/[^'"]*|ai\/[^'"]*)['"]/

const naming = (pattern: string) =>
  globSync(pattern, { cwd: DIST }).filter((path) => PEER.test(readFileSync(resolve(DIST, path), 'utf8')))

test('the types compile without the AI SDK: no declaration names it', () => {
  expect(globSync('**/*.d.ts', { cwd: DIST }).length).toBeGreaterThan(100)
  expect(naming('**/*.d.ts')).toEqual([])
})

test('only llmAgent loads the AI SDK', () => {
  expect(naming('**/*.js')).toEqual(['agents/llm/load-ai.js'])
})
