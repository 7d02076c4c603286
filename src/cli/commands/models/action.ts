import { didYouMean } from '../../../did-you-mean.ts'
import { ManyworldsError } from '../../../errors.ts'
import { readModelsFile } from '../../../models/driver/models-file.ts'
import { RunModels, type ServedModel } from '../../../models/driver/run-models.ts'
import { tryModel } from '../../../models/driver/try-model.ts'
import { modelSecrets } from '../../../models/secrets.ts'
import type { ModelsConfig } from '../../../models/settings.ts'
import { redactorOf } from '../../../redaction/config.ts'
import type { Redactor } from '../../../redaction/redactor.ts'
import { safeJson } from '../../../text/json.ts'
import { wantsColor } from '../../../text/paint.ts'
import { UsageError } from '../../frame/usage-error.ts'
import { typedModels, withTyped } from '../../options/typed-models.ts'
import { failedRow, type ModelRow, triedRow, unusableRow } from './model-row.ts'
import { renderModels } from './render.ts'
import type { ModelsArgs } from './spec.ts'

const USAGE = 2

/** `manyworlds models` */
export async function run(args: ModelsArgs): Promise<number> {
  const { models, unusable } = configuredModels(args)
  const names = [...Object.keys(models), ...Object.keys(unusable)].sort()
  if (names.length === 0) {
    process.stderr.write(HOW_TO)
    return USAGE
  }
  for (const name of args.names)
    if (!names.includes(name))
      throw new UsageError(`unknown model "${name}"; models: ${names.join(', ')}${didYouMean(name, names)}`)
  const wanted = args.names.length === 0 ? names : [...new Set(args.names)]
  // Open all models, so that conflicting limits are reported as in a run.
  const opened = new RunModels(models, { onThisMachine: true, cache: false })
  // Some servers quote a wrong key in their error message.
  const redactor = redactorOf([], modelSecrets(models))
  const rows = await Promise.all(
    wanted.map((name) =>
      unusable[name] === undefined
        ? rowOf(opened.get(name) as ServedModel, redactor, args.timeout)
        : unusableRow(name, unusable[name]),
    ),
  )
  opened.close()
  process.stdout.write(args.json ? `${safeJson(JSON.stringify(rows, null, 2))}\n` : table(rows))
  return rows.every(({ ok }) => ok) ? 0 : 1
}

/** The models of models.json and of the command line. There is no script that could define others. */
function configuredModels({ model, models: file }: ModelsArgs): {
  models: ModelsConfig
  unusable: Readonly<Record<string, string>>
} {
  const typed = typedModels(model)
  const given = readModelsFile(file)
  const models = { ...given?.models, ...withTyped({ ...typed, unusable: new Map() }, {}, file) }
  const unusable = { ...given?.unusable, ...Object.fromEntries(typed.unusable) }
  return { models, unusable: Object.fromEntries(Object.entries(unusable).filter(([name]) => !(name in models))) }
}

async function rowOf(model: ServedModel, redactor: Redactor | undefined, timeoutMs: number): Promise<ModelRow> {
  try {
    return triedRow(model, await tryModel(model, timeoutMs))
  } catch (error) {
    if (!ManyworldsError.is(error)) throw error
    return failedRow(model, error, redactor)
  }
}

/** A pipe has no width limit. */
const table = (rows: readonly ModelRow[]) =>
  renderModels(rows, {
    color: wantsColor(process.stdout),
    width: process.stdout.columns ?? Number.POSITIVE_INFINITY,
  })

const HOW_TO = `manyworlds: no models are configured. Write a models.json in the current folder, such as
  {
    "small": { "baseURL": "http://127.0.0.1:8000/v1", "model": "qwen3" },
    "big": { "baseURL": "https://api.example.com/v1", "model": "big-1", "apiKeyEnv": "EXAMPLE_API_KEY", "requestsPerMinute": 500 }
  }
or test a server directly:
  manyworlds models --model small=http://127.0.0.1:8000/v1#qwen3
Models that a script defines with \`models\` are known only to its runs.
`
