import { expect, test } from 'vitest'
import { makeBundle } from '../../src/bundle/index.ts'
import { proofFrom } from './project.ts'

test('an agent that uses pg runs from its bundle', async () => {
  const bundle = await makeBundle(new URL('./fixtures/uses-pg.ts', import.meta.url))
  expect(await proofFrom(bundle)).toEqual([3, "'it''s'", 'db'])
  expect(bundle.externals).toEqual(['pg-native'])
})

test('an agent that uses the AI SDK runs from its bundle', async () => {
  const bundle = await makeBundle(new URL('./fixtures/uses-ai.ts', import.meta.url))
  expect(await proofFrom(bundle)).toEqual(['forty-two'])
})

test('an agent that uses an MCP client runs from its bundle', async () => {
  const bundle = await makeBundle(new URL('./fixtures/uses-mcp-client.ts', import.meta.url))
  expect(await proofFrom(bundle)).toEqual(['greet', 'function'])
})

test('an agent that uses playwright-core runs from its bundle, with the data files the package reads', async () => {
  const bundle = await makeBundle(new URL('./fixtures/uses-playwright-core.ts', import.meta.url))
  expect(bundle.files.map((file) => file.path)).toContain('node_modules/playwright-core/browsers.json')
  expect(await proofFrom(bundle)).toEqual(['chromium', 'chromium', 'function', true])
})
