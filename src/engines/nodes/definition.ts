import { MIN_CHARS } from '../../network/token.ts'
import { BUNDLER } from '../../optional-peers.ts'
import { defineEngine } from '../definition.ts'
import { nodesCli } from './cli.ts'
import { NodesRuntime } from './nodes-runtime.ts'
import type { NodesOptions } from './options.ts'

type CliOptions = typeof nodesCli.options

export const nodesEngine = defineEngine<'nodes', NodesOptions, CliOptions>({
  name: 'nodes',
  where: 'on nodes',
  packages: [BUNDLER],
  options: ({ z, text, words, pause }) => ({
    addresses: z.optional(words),
    token: z.optional(z.string().check(z.minLength(MIN_CHARS), z.regex(/^\S+$/, 'must be one word'))),
    tokenFile: z.optional(text),
    tls: z.optional(
      z.union([
        z.literal(true),
        z.strictObject({
          ...{ ca: z.optional(text), cert: z.optional(text), key: z.optional(text), serverName: z.optional(text) },
        }),
      ]),
    ),
    listen: z.optional(text),
    waitMs: z.optional(pause),
  }),
  stored: { addresses: true, listen: true },
  workers: 'all',
  make: ({ options }) => new NodesRuntime(options),
  cli: nodesCli,
})
