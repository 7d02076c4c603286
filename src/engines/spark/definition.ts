import { BUNDLER, SPARK_CONNECT } from '../../optional-peers.ts'
import { defineEngine } from '../definition.ts'
import { sparkCli } from './cli.ts'
import type { SparkOptions } from './options.ts'
import { SparkRuntime } from './spark-runtime.ts'

export const sparkEngine = defineEngine<'spark', SparkOptions, typeof sparkCli.options>({
  name: 'spark',
  where: 'on a Spark cluster',
  packages: [BUNDLER, SPARK_CONNECT],
  options({ z, text, pause }) {
    const pems = { ca: z.optional(text), serverName: z.optional(text) }
    return {
      remote: z.optional(text),
      remoteTls: z.optional(z.strictObject({ ...pems, cert: z.optional(text), key: z.optional(text) })),
      master: z.optional(text),
      version: z.optional(z.string().check(z.regex(/^4\.\d+\.\d+\w*$/, "must be a version such as '4.3.0'"))),
      conf: z.optional(z.record(z.string(), z.union([z.string(), z.number(), z.boolean()]))),
      reserve: z.optional(z.number().check(z.int(), z.minimum(0))),
      advertiseHost: z.optional(text),
      port: z.optional(z.number().check(z.int(), z.minimum(0), z.maximum(65_535))),
      tls: z.optional(z.strictObject({ ...pems, cert: text, key: text })),
      nodeBinary: z.optional(text),
      env: z.optional(z.record(z.string(), z.string())),
      waitMs: z.optional(pause),
    }
  },
  // Spark's own settings may have passwords in them, its address a token, and certificates may be given as text.
  stored: {
    ...{ master: true, version: true, reserve: true, advertiseHost: true, port: true, nodeBinary: true, waitMs: true },
    remote: (remote) => remote.split(';', 1)[0],
  },
  startsLocally: true,
  workers: 'all',
  make: ({ options, inLocal, workerNum }) => new SparkRuntime(options, inLocal, workerNum),
  cli: sparkCli,
})
