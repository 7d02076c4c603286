import type { Grader } from '../grade/grader.ts'
import { isLanguageModel } from '../models/language-model.ts'
import { withoutSecretFields } from '../models/secret-fields.ts'
import type { ModelSettings } from '../models/settings.ts'
import type { ResolvedConfig } from '../run-config-schema.ts'
import { jsonLine } from '../text/json.ts'

/**
 * The settings of a run that decide its answers and grades: they are stored with each session, and a resumed run must have the
 * same. Limits, prices, routes and keys are left out. The params of agents are compared task by task (`store/run-history.ts`).
 * Each model and the grader have a key of their own.
 */
export function answerSettings({ models = {}, grade }: ResolvedConfig): Record<string, unknown> {
  return {
    ...Object.fromEntries(
      Object.entries(models).map(([name, given]) => [
        `models.${name}`,
        isLanguageModel(given) ? { provider: given.provider, model: given.modelId } : serverSettings(given),
      ]),
    ),
    ...(grade && { grade: graderSettings(grade) }),
  }
}

function serverSettings({ baseURL, model, extraBody = {} }: ModelSettings): object {
  const { origin, pathname } = new URL(baseURL)
  const where = `${origin}${pathname.replace(/\/$/, '')}`
  return { baseURL: where, model, extraBody: withoutSecretFields(extraBody) }
}

/** Without the hash of its code: code may change. */
const graderSettings = ({ name, params }: Grader): object => ({
  name,
  ...(params !== undefined && { params: JSON.parse(jsonLine(params)) as unknown }),
})
