import { BUNDLER } from '../../optional-peers.ts'
import { defineEngine } from '../definition.ts'
import { rayCli } from './cli.ts'
import type { RayOptions } from './options.ts'
import { RayRuntime } from './ray-runtime.ts'

export const rayEngine = defineEngine<'ray', RayOptions, typeof rayCli.options>({
  name: 'ray',
  where: 'on a Ray cluster',
  packages: [BUNDLER],
  options({ z, text, words }) {
    const amount = z.number().check(z.minimum(0))
    return {
      address: z.optional(text),
      numCpus: z.optional(amount),
      numGpus: z.optional(amount),
      memory: z.optional(amount),
      resources: z.optional(z.record(z.string(), amount)),
      schedulingStrategy: z.optional(
        z.union(
          [z.enum(['DEFAULT', 'SPREAD']), z.strictObject({ nodeId: text, soft: z.optional(z.boolean()) })],
          "must be 'DEFAULT', 'SPREAD' or { nodeId, soft }",
        ),
      ),
      runtimeEnv: z.optional(
        z.strictObject({ envVars: z.optional(z.record(z.string(), z.string())), pip: z.optional(words) }),
      ),
      nodeBinary: z.optional(text),
      namespace: z.optional(text),
      token: z.optional(text),
      tokenFile: z.optional(text),
      tls: z.optional(z.strictObject({ cert: text, key: text, ca: text })),
      version: z.optional(z.string().check(z.regex(/^\d+\.\d+\.\d+\w*$/, "must be a version such as '2.60.0'"))),
      autoscaling: z.optional(z.boolean()),
    }
  },
  // Neither `token` nor `runtimeEnv`, whose variables and package addresses may hold keys. `tls` has paths only.
  stored: {
    ...{ address: true, numCpus: true, numGpus: true, memory: true, resources: true, schedulingStrategy: true },
    ...{ nodeBinary: true, namespace: true, tokenFile: true, tls: true, version: true, autoscaling: true },
  },
  startsLocally: true,
  workers: 'all',
  make: ({ options, inLocal }) => new RayRuntime(options, inLocal),
  cli: rayCli,
})
