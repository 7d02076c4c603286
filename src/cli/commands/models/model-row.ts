import type { ErrorCode, ManyworldsError } from '../../../errors.ts'
import { publicURL } from '../../../models/address.ts'
import type { LimiterSettings } from '../../../models/driver/limiter.ts'
import { limitsOf } from '../../../models/driver/model-server.ts'
import type { ServedModel } from '../../../models/driver/run-models.ts'
import type { TriedModel } from '../../../models/driver/try-model.ts'
import type { Redactor } from '../../../redaction/redactor.ts'

/** A row of the table, and an element of the JSON of `--json`. It contains no secrets. */
export type ModelRow = UsableModel | FailedModel

export interface UsableModel extends TriedModel {
  readonly name: string
  readonly ok: true
  readonly model: string
  readonly url: string
  readonly via: 'driver' | 'direct'
  /** The configured limits; empty: the limiter finds the rate by itself. */
  readonly limits: LimiterSettings
}

export interface FailedModel {
  readonly name: string
  readonly ok: false
  readonly model?: string
  readonly url?: string
  readonly code: ErrorCode
  readonly problem: string
}

export function triedRow({ name, settings, via }: ServedModel, tried: TriedModel): UsableModel {
  const { model, baseURL } = settings
  return { name, ok: true, model, url: publicURL(baseURL), via, ...tried, limits: limitsOf(settings) }
}

/** Advice for errors whose message has none. */
const ADVICE: Partial<Record<ErrorCode, string>> = {
  MODEL_TRANSIENT: '; is the server running, and is its `baseURL` right?',
  MODEL_INVALID_REQUEST: '; does the server have this model, and does its `baseURL` end with the version, such as /v1?',
}

export function failedRow(
  { name, settings }: ServedModel,
  { code, message }: ManyworldsError,
  redactor: Redactor | undefined,
): FailedModel {
  const problem = `${redactor?.text(message) ?? message}${ADVICE[code] ?? ''}`
  return { name, ok: false, model: settings.model, url: publicURL(settings.baseURL), code, problem }
}

export const unusableRow = (name: string, problem: string): FailedModel => ({
  ...{ name, ok: false, code: 'CONFIG_INVALID', problem },
})
