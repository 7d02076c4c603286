import { differing } from '../text/differing.ts'
import { isSameValue } from './same-value.ts'
import { isFields } from './stored-shapes.ts'

/** A setting that decides answers and differs from the session before. */
export interface SettingChange {
  /** Such as `models.small.extraBody.temperature`. */
  readonly key: string
  readonly was: unknown
  readonly now: unknown
}

/** The key of a session's configuration that has what decides its answers; see `runners/answer-settings.ts`. */
const ANSWERS = 'answers'

export function answerSettings(config: string): Record<string, unknown> | undefined {
  const parsed: unknown = JSON.parse(config)
  const answers = isFields(parsed) ? parsed[ANSWERS] : undefined
  return isFields(answers) ? answers : undefined
}

/** What differs between the settings of two sessions. A model or grader that only one of them has changes no earlier answer. */
export function settingChanges(was: Record<string, unknown>, now: Record<string, unknown>): SettingChange[] {
  return Object.keys(now).flatMap((key) => (was[key] === undefined ? [] : changesIn(key, was[key], now[key])))
}

/** The differences by key. Goes into objects, but not into lists. */
export function changesIn(key: string, was: unknown, now: unknown): SettingChange[] {
  if (isPlain(was) && isPlain(now))
    return [...new Set([...Object.keys(was), ...Object.keys(now)])].flatMap((part) =>
      changesIn(`${key}.${part}`, was[part], now[part]),
    )
  return isSameValue(was, now) ? [] : [{ key, was, now }]
}

const isPlain = (value: unknown): value is Record<string, unknown> =>
  isFields(value) && Object.getPrototypeOf(value) === Object.prototype

/** `models.small.model was "a" and is now "b"` */
export function changeText({ key, was, now }: SettingChange): string {
  const [before, after] = differing(was, now)
  return `${key} was ${was === undefined ? 'not set' : before} and is now ${now === undefined ? 'not set' : after}`
}

/** What a run says that is resumed with other settings. Whether any task is left to run is not known yet. */
export const goesOnText = (changes: readonly SettingChange[]): string =>
  `the run goes on with other settings: ${changes.map(changeText).join('; ')}. Answers that are there stay; if others are added, its figures mix both, and \`manyworlds show\` splits them`
