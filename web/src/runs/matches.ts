import type { RunEntry, TrainingEntry } from '../../../src/view/api.ts'

/** Makes a test of whether an entry contains all words of a search. */
export const matcher = (text: string): ((entry: RunEntry | TrainingEntry) => boolean) => {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  return (entry) => {
    if (words.length === 0) return true
    const all = textsOf(entry).join('\n').toLowerCase()
    return words.every((word) => all.includes(word))
  }
}

function textsOf(entry: RunEntry | TrainingEntry): string[] {
  if ('problem' in entry) return ['runId' in entry ? entry.runId : entry.id, 'damaged', entry.problem]
  if ('runId' in entry) return [entry.runId, entry.status, entry.script ?? '', entry.engineName ?? '']
  return [entry.id, entry.status, entry.script ?? '', entry.agent, entry.policy]
}
