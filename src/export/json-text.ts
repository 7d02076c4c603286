import { safeJson } from '../text/json.ts'
import { toLossless } from '../trajectory/lossless-json.ts'

/** Any value of a run as lossless JSON (see `trajectory/lossless-json.ts`), with control characters escaped. */
export const jsonText = (value: unknown): string => safeJson(JSON.stringify(toLossless(value)))
