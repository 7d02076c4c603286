import { BLOBS, type BlobAsked } from '../protocol/messages.ts'
import type { Asker } from './asker.ts'
import { askingOf } from './asking.ts'
import { type Asking, DEFAULT_LIMIT_MS } from './requests.ts'

/** A request about a blob. The task's clock is stopped until it is answered. */
export function blobAsking(asker: Asker, asked: BlobAsked, kind: Asking['kind'], signal?: AbortSignal): Asking {
  const clock = asker.running ? 'stands' : 'runs'
  return askingOf(BLOBS, asked, { clock, limitMs: DEFAULT_LIMIT_MS, ...(signal && { signal }) }, kind)
}
