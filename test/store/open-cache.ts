import { openRecordedRun, type RecordedRun } from '../../src/store/recorded-run.ts'

/** A run without tasks, for its cache of models' answers. */
export function openCache(
  path: string,
  runId: string,
  { keep, failed, named = true }: { keep?: { days: number }; named?: boolean; failed?: (error: Error) => void } = {},
): Promise<RecordedRun> {
  return openRecordedRun({
    ...{ path, runId, shared: path.endsWith('store.sqlite'), mode: 'auto', named, durability: 'normal', keep },
    ...{ retryFailed: false, acceptChanges: false, config: '{}', all: [] },
    ...{ seed: 0, sequenceDependent: false, script: undefined },
    source: { pull: () => 'end', open: () => {}, close: () => [] },
    notice: () => {},
    redactor: undefined,
    grader: undefined,
    onSteps: undefined,
    ended: () => {},
    failed: failed ?? (() => {}),
  })
}

export const FINISHED = { how: 'finished', error: null } as const
