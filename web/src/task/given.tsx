import type { TaskDetails } from '../../../src/view/api.ts'
import { visible } from '../parts/safe-text.tsx'
import { Clamp } from './clamp.tsx'
import { ContentView } from './content-view.tsx'
import { Labelled } from './labelled.tsx'
import { useWhole, WholeFrame } from './whole.tsx'

const NAMES: Readonly<Record<string, string>> = { groundTruth: 'ground truth', groupId: 'group' }
const NONE = {}

/** The input of the task, and the fields that only its grader and readers see. */
export function Given({ details }: { readonly details: TaskDetails }) {
  const at = { run: details.runId, task: details.id }
  const input = useWhole(details.input, { ...at, of: 'input' })
  const info = useWhole(details.info ?? NONE, { ...at, of: 'info' })
  const fields = Object.entries(info.value as Readonly<Record<string, unknown>>)
  return (
    <section class="panel stack" aria-labelledby="given-title">
      <h2 id="given-title">Input</h2>
      {input.value === undefined ? (
        <p class="dim">The task has no input.</p>
      ) : (
        <WholeFrame whole={input} what="the input">
          <Clamp>
            <ContentView content={input.value} />
          </Clamp>
        </WholeFrame>
      )}
      {fields.length > 0 && (
        <WholeFrame whole={info} what={fields.map(([name]) => NAMES[name] ?? name).join(', ')}>
          {fields
            .filter(([, value]) => value !== undefined)
            .map(([name, value]) => (
              <Labelled key={name} label={NAMES[name] ?? name}>
                {typeof value === 'string' && value.length < 200 ? (
                  visible(value)
                ) : (
                  <Clamp>
                    <ContentView content={value} />
                  </Clamp>
                )}
              </Labelled>
            ))}
        </WholeFrame>
      )}
    </section>
  )
}
