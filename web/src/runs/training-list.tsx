import { useMemo } from 'preact/hooks'
import type { TrainingOverview } from '../../../src/store/trainings/training-overview.ts'
import type { TrainingEntry } from '../../../src/view/api.ts'
import { type Column, DataTable } from '../parts/data-table.tsx'
import { SafeText } from '../parts/safe-text.tsx'
import { State } from '../parts/state.tsx'
import { trainingHref } from '../route.ts'
import { count, dateTime, duration, figure, percent } from '../text/quantities.ts'
import { Choose, Damaged } from './list-parts.tsx'

const ROW_HEIGHT = 52

interface Props {
  readonly trainings: readonly TrainingEntry[]
  readonly chosen: readonly string[]
  choose(training: string): void
}

export function TrainingList({ trainings, chosen, choose }: Props) {
  const columns = useMemo(() => columnsOf(trainings, chosen, choose), [trainings, chosen])
  return (
    <DataTable
      label="Trainings"
      columns={columns}
      count={trainings.length}
      rowHeight={ROW_HEIGHT}
      keyOf={(row) => trainings[row]!.id}
      hrefOf={(row) => ('problem' in trainings[row]! ? undefined : trainingHref(trainings[row]!.id))}
      isMarked={(row) => chosen.includes(trainings[row]!.id)}
    />
  )
}

function columnsOf(
  trainings: readonly TrainingEntry[],
  chosen: readonly string[],
  choose: (training: string) => void,
): Column[] {
  const sound = (show: (training: TrainingOverview) => ReturnType<Column['cell']>) => (row: number) => {
    const training = trainings[row]!
    return 'problem' in training ? '' : show(training)
  }
  const number = (
    key: string,
    title: string,
    rank: number,
    width: number,
    show: (training: TrainingOverview) => string | undefined,
    hint?: string,
  ): Column => ({
    ...{ key, title, rank, width, isNumber: true, cell: sound(show) },
    ...(hint !== undefined && { hint }),
  })
  return [
    {
      ...{ key: 'choose', title: '', rank: 0, width: 22, hint: 'Choose trainings to compare' },
      cell: sound(({ id }) => <Choose name={id} isChosen={chosen.includes(id)} choose={choose} />),
    },
    {
      ...{ key: 'id', title: 'Training', rank: 0, width: 110, wish: 170, grows: 1 },
      cell: (row) => <Name training={trainings[row]!} />,
    },
    {
      ...{ key: 'state', title: 'Status', rank: 0, width: 96, narrow: 16 },
      cell: sound(({ status }) => <State state={status} />),
    },
    number('updates', 'Updates', 3, 70, ({ updates }) => count(updates)),
    number(
      'success',
      'Success',
      1,
      76,
      ({ successRate }) => (successRate === undefined ? undefined : percent(successRate)),
      'The success rate of the last update',
    ),
    number(
      'reward',
      'Reward',
      2,
      80,
      ({ reward }) => (reward === undefined ? undefined : figure(reward)),
      'The mean reward of the last update',
    ),
    number(
      'best',
      'Best version',
      5,
      92,
      ({ best }) => (best === undefined ? undefined : String(best)),
      'The best version by validation',
    ),
    {
      ...{ key: 'time', title: 'Time', rank: 4, width: 150, isNumber: true },
      cell: sound(({ startedAt, endedAt }) => (
        <>
          <div>{duration((endedAt ?? Date.now()) - startedAt)}</div>
          <div class="dim runs-second">{dateTime(startedAt)}</div>
        </>
      )),
    },
  ]
}

function Name({ training }: { readonly training: TrainingEntry }) {
  if ('problem' in training) return <Damaged name={training.id} problem={training.problem} />
  const { id, agent, policy, error } = training
  return (
    <>
      <a class="mono runs-id" href={trainingHref(id)} data-row-link title={id}>
        <SafeText text={id} />
      </a>
      <div class={`cut runs-script ${error === undefined ? 'dim' : 'state-failed'}`} title={error}>
        <SafeText text={error?.slice(0, 200) ?? `${agent}, ${policy}`} />
      </div>
    </>
  )
}
