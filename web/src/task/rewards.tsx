import { visible } from '../parts/safe-text.tsx'
import { figure } from '../text/quantities.ts'

/** A reward and its parts. A reward of 0 has no color. */
export function Rewards({
  reward,
  rewards,
}: {
  readonly reward: number
  readonly rewards?: Readonly<Record<string, number>> | undefined
}) {
  const parts = Object.entries(rewards ?? {})
  if (reward === 0 && parts.every(([, value]) => value === 0)) return <div class="reward dim">reward 0</div>
  return (
    <div class={`reward ${reward > 0 ? 'reward-up' : reward < 0 ? 'reward-down' : ''}`}>
      <strong>
        reward {reward > 0 ? '+' : ''}
        {figure(reward)}
      </strong>
      {parts.map(([name, value]) => (
        <span class="dim">
          {' '}
          {visible(name)} {figure(value)}
        </span>
      ))}
    </div>
  )
}
