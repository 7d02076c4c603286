import { safeJson } from '../text/json.ts'
import { toLossless } from '../trajectory/lossless-json.ts'

/** Any value of a run as JSON from which it can be had again (see `trajectory/lossless-json.ts`), also safe to look at. */
export const jsonText = (value: unknown): string => safeJson(JSON.stringify(toLossless(value)))
