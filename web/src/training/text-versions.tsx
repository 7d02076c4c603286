import { useMemo, useState } from 'preact/hooks'
import { lineChanges } from '../../../src/text/line-diff.ts'
import type { TrainingDetails } from '../../../src/view/api.ts'
import { visible } from '../parts/safe-text.tsx'

type Texts = NonNullable<TrainingDetails['texts']>

/** The prompts of a training, version by version, and what changed between two of them. */
export function TextVersions({ texts, best }: { readonly texts: Texts; readonly best: number | undefined }) {
  const [from, setFrom] = useState<number>()
  const [to, setTo] = useState<number>()
  const versions = texts.map(({ version }) => version)
  const before = from ?? versions[0]!
  const after = to ?? (best !== undefined && versions.includes(best) ? best : versions.at(-1)!)
  const textOf = (version: number) => texts.find((one) => one.version === version)?.text ?? ''
  const choice = (label: string, value: number, choose: (version: number) => void) => (
    <label>
      {label}{' '}
      <select value={String(value)} onChange={(event) => choose(Number(event.currentTarget.value))}>
        {versions.map((version) => (
          <option key={version} value={String(version)}>
            version {version}
            {version === best ? ' (best)' : ''}
          </option>
        ))}
      </select>
    </label>
  )
  return (
    <section class="panel stack" aria-labelledby="texts-title">
      <div class="row spread">
        <h2 id="texts-title">Texts</h2>
        <div class="row">
          {choice('From', before, setFrom)}
          {choice('to', after, setTo)}
        </div>
      </div>
      <TextChanges before={textOf(before)} after={textOf(after)} />
      <details>
        <summary>The whole text of version {after}</summary>
        <pre class="training-text">{visible(textOf(after))}</pre>
      </details>
    </section>
  )
}

function TextChanges({ before, after }: { readonly before: string; readonly after: string }) {
  const changes = useMemo(() => lineChanges(bySentence(before), bySentence(after)), [before, after])
  if (changes.every(({ sign }) => sign === ' ')) return <p class="dim">The two texts are the same.</p>
  return (
    <pre class="training-diff">
      {changes.map(({ sign, line }, place) => (
        <div key={place} class={sign === '+' ? 'training-added' : sign === '-' ? 'training-removed' : 'dim'}>
          {sign === ' ' ? '' : <span class="hidden-text">{sign === '+' ? 'added: ' : 'removed: '}</span>}
          <span aria-hidden="true">{sign} </span>
          {visible(line)}
        </div>
      ))}
    </pre>
  )
}

/** Each sentence on its own line, because texts are often one long line. */
const bySentence = (text: string): string[] => text.replaceAll(/(?<=[.!?]) (?=\S)/g, '\n').split('\n')
