import { fileURLToPath } from 'node:url'
import type { Redactor } from '../redaction/redactor.ts'
import type { ResolvedConfig } from '../run-config-schema.ts'
import type { RecordedRunOptions } from '../store/recorded-run.ts'
import { entryScript } from './environment.ts'
import { storedModels } from './open-models.ts'

/** What is stored of the program and its configuration. */
export function stored(config: object, redactor: Redactor | undefined): Pick<RecordedRunOptions, 'script' | 'config'> {
  const script = scriptPath()
  const json = JSON.stringify(config)
  if (redactor === undefined) return { script, config: json }
  return { script: script && redactor.text(script), config: redactor.encoded(json) as string }
}

function scriptPath(): string | undefined {
  const url = entryScript()
  return url === undefined ? undefined : fileURLToPath(url)
}

/** Variables by name only: their values are keys more often than not. */
export function withoutSecrets({
  env,
  signal: _,
  cls,
  progress: __,
  onStep: _________,
  retryIf: ___________,
  services,
  grade,
  redact,
  blobs: __________,
  models,
  unusableModels: ____________,
  nodes,
  ray,
  spark,
  ...config
}: ResolvedConfig): object {
  const { addresses, listen } = nodes ?? {}
  const { token: ___, runtimeEnv: ____, ...cluster } = ray ?? {}
  // Spark's own settings may have passwords in them, and its address a token.
  const { remote, conf: _____, env: ______, tls: _______, remoteTls: ________, ...where } = spark ?? {}
  return {
    ...config,
    ...(nodes && { nodes: { addresses, listen } }),
    ...(ray && { ray: cluster }),
    ...(spark && { spark: { ...where, remote: remote?.split(';', 1)[0] } }),
    env: Object.keys(env),
    ...(redact.length > 0 && { redact: redact.length }),
    ...(services && { services: Object.keys(services) }),
    ...(grade && { grade: grade.name }),
    ...(models && { models: storedModels(models) }),
    ...(cls ? { cls: 'name' in cls ? cls.name : 'custom' } : {}),
  }
}
