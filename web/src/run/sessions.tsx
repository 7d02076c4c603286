import type { SessionEntry } from '../../../src/view/api.ts'
import { SafeText } from '../parts/safe-text.tsx'
import { ScrollRegion } from '../parts/scroll-region.tsx'
import { State } from '../parts/state.tsx'
import { dateTime, duration } from '../text/quantities.ts'

/** The sessions of a run, folded away: when, where and how they ended, and their configuration. */
export function Sessions({ sessions }: { readonly sessions: readonly SessionEntry[] }) {
  if (sessions.length === 0) return null
  return (
    <details class="run-sessions">
      <summary>{sessions.length === 1 ? 'Session and configuration' : `${sessions.length} sessions`}</summary>
      <ScrollRegion class="scroll-x" label="Sessions">
        <table class="plain">
          <thead>
            <tr>
              <th class="number">#</th>
              <th>started</th>
              <th>lasted</th>
              <th>ended</th>
              <th>driver</th>
              <th>configuration</th>
            </tr>
          </thead>
          <tbody>
            {sessions.map((session) => (
              <SessionRow key={session.number} session={session} />
            ))}
          </tbody>
        </table>
      </ScrollRegion>
    </details>
  )
}

function SessionRow({ session }: { readonly session: SessionEntry }) {
  const { number, startedAt, endedAt, seenAt, ending, error, host, pid, node, config } = session
  return (
    <tr>
      <td class="number">{number}</td>
      <td>{dateTime(startedAt)}</td>
      <td>{duration((endedAt ?? seenAt) - startedAt)}</td>
      <td>
        {ending === undefined ? <span class="dim">no end recorded</span> : <State state={ending} />}
        {error !== undefined && (
          <div>
            <SafeText text={error} />
          </div>
        )}
      </td>
      <td>
        <SafeText text={`${host}, pid ${pid}, Node ${node}`} />
      </td>
      <td>
        <pre class="run-config">
          <SafeText text={JSON.stringify(config, null, 1) ?? ''} />
        </pre>
      </td>
    </tr>
  )
}
