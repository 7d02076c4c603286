import { ROLES, STATES } from '../../../src/view/api.ts'
import { SafeText } from '../parts/safe-text.tsx'
import { State } from '../parts/state.tsx'
import { duration } from '../text/quantities.ts'
import { workerOf } from './lanes.ts'
import type { RunData } from './run-data.ts'
import { KINDS, kindOf, type Scene, type Spot } from './timeline-scene.ts'

const LONGEST = 80
const ROLE_TEXTS: Readonly<Record<(typeof ROLES)[number], string>> = {
  final: '',
  retried: 'tried again',
  superseded: 'superseded: another attempt counts',
  unfinished: '',
}

/** A description of one attempt. */
export function SpotText(props: { readonly data: RunData; readonly scene: Scene; readonly spot: Spot }) {
  const { data, scene, spot } = props
  const lane = scene.lanes[spot.lane]
  const row = lane?.rows[spot.place]
  if (!lane || row === undefined) return null
  const { attempts, tasks } = data
  const task = tasks.rowOf(attempts.column('task')[row]!)
  const id = task === undefined ? `task ${attempts.column('task')[row]}` : tasks.ids[task]!
  const kind = KINDS[kindOf(scene, lane, row)]!
  const state = kind === 'superseded' ? STATES[attempts.column('state')[row]!]! : kind
  const role = ROLE_TEXTS[ROLES[attempts.column('role')[row]!] ?? 'final']
  const worker = workerOf(lane, attempts, row)
  const [start, end] = [lane.start[spot.place]!, lane.end[spot.place]!]
  return (
    <>
      <strong class="mono">
        <SafeText text={id.length > LONGEST ? `${id.slice(0, LONGEST)}…` : id} />
      </strong>{' '}
      <State state={state} />
      {role !== '' && `, ${role}`}
      <br />
      attempt {attempts.column('attempt')[row]}, {duration(end - start)}, from{' '}
      {duration(Math.max(0, start - scene.origin))}
      {worker && (
        <>
          {' on '}
          <SafeText text={`${worker.id} (${worker.host}${worker.pid === undefined ? '' : `, pid ${worker.pid}`})`} />
          {worker.lost !== undefined && <SafeText text={`, lost: ${worker.lost.slice(0, LONGEST)}`} />}
        </>
      )}
    </>
  )
}
