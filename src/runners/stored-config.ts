import { fileURLToPath } from 'node:url'
import { engineParts } from '../engines/all-parts.ts'
import type { Redactor } from '../redaction/redactor.ts'
import type { ResolvedConfig } from '../run-config-schema.ts'
import type { RecordedRunOptions } from '../store/recorded-run.ts'
import { answerSettings } from './answer-settings.ts'
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

/** Environment variables by name only: their values are often keys. */
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
  ...config
}: ResolvedConfig): object {
  return {
    ...config,
    ...storedEngineOptions(config),
    env: Object.keys(env),
    ...(redact.length > 0 && { redact: redact.length }),
    ...(services && { services: Object.keys(services) }),
    ...(grade && { grade: grade.name }),
    ...(models && { models: storedModels(models) }),
    answers: answerSettings({ ...config, models, grade } as ResolvedConfig),
    ...(cls ? { cls: 'name' in cls ? cls.name : 'custom' } : {}),
  }
}

/** The options of engines that may be stored, according to the engines' definitions. */
function storedEngineOptions(config: object): Record<string, object | undefined> {
  const given = config as Readonly<Record<string, Readonly<Record<string, unknown>> | undefined>>
  return Object.fromEntries(
    engineParts.flatMap(({ name, stored = {} }) =>
      given[name] === undefined ? [] : [[name, allowed(given[name], stored)]],
    ),
  )
}

function allowed(options: Readonly<Record<string, unknown>>, list: object): object {
  const kept = Object.entries(list as Readonly<Record<string, true | ((value: unknown) => unknown)>>).filter(
    ([key]) => options[key] !== undefined,
  )
  return Object.fromEntries(kept.map(([key, how]) => [key, how === true ? options[key] : how(options[key])]))
}
