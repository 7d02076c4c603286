import { SafeText } from '../parts/safe-text.tsx'

/** A checkbox that selects a run or training for a comparison. */
export function Choose(props: { readonly name: string; readonly isChosen: boolean; choose(name: string): void }) {
  const { name, isChosen, choose } = props
  return (
    <label class="runs-choose">
      <input type="checkbox" aria-label={`Compare ${name}`} checked={isChosen} onChange={() => choose(name)} />
    </label>
  )
}

/** A run or training that cannot be read. */
export const Damaged = ({ name, problem }: { readonly name: string; readonly problem: string }) => (
  <>
    <span class="mono">
      <SafeText text={name} />
    </span>
    <div class="cut state-failed runs-script" title={problem}>
      <strong>damaged:</strong> <SafeText text={problem.slice(0, 300)} />
    </div>
  </>
)
