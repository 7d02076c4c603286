import type {
  Member,
  PlanRow,
  EvalRow as StoredEvaluation,
  UpdateRow as StoredUpdate,
  VersionRow,
} from '../../store/trainings/training-rows.ts'
import type { TrainReport } from '../rl-trainer.ts'

export type { Member, PlanRow, VersionRow }

export type UpdateRow = StoredUpdate<UpdateReport>
export type EvalRow = StoredEvaluation<EvaluationFigures>

/** What an update came to. */
export interface UpdateReport extends TrainReport {
  /** Tokens of models per episode, in and out. */
  readonly tokens: number
}

/** A share or a mean, with its 95 % interval. */
export interface Figure {
  readonly value: number
  readonly low: number
  readonly high: number
}

/** How good a version is. */
export interface EvaluationFigures {
  /** The share of solved rollouts; null: nothing was judged. */
  readonly success: Figure | null
  readonly reward: Figure | null
  readonly withoutResult: number
}

/** What earlier sessions have left. */
export interface TrainingHistory {
  /** Those without an update, in their order. */
  readonly plans: readonly PlanRow[]
  readonly updates: readonly UpdateRow[]
  readonly versions: readonly VersionRow[]
  readonly evals: readonly EvalRow[]
  /** As it was stored with the last update. */
  readonly sampler: unknown
  readonly best: number | null
}

/** Where a training is written down; everything is safe when a call returns. */
export interface TrainingRecord {
  readonly id: string
  readonly isNew: boolean
  /** Of the first session. */
  readonly config: unknown
  readonly history: TrainingHistory
  plan(row: PlanRow): void
  /** In one transaction. */
  update(step: { readonly update: UpdateRow; readonly version?: VersionRow; readonly sampler: unknown }): void
  /** The version that a training begins with. */
  version(row: VersionRow): void
  evaluation(row: EvalRow, best: number | null): void
  /** Its name is its SHA-256. */
  writeFile(bytes: Uint8Array): Promise<string>
  readFile(sha256: string): Promise<Uint8Array>
  /** Keeps the steps of one in so many trajectories of a run from which nothing more is learned. Returns how many tasks lost theirs. */
  thin(run: string, oneIn: number): Promise<number>
  /** The weights of these are not needed any more. */
  drop(versions: readonly number[]): void
  close(how: 'finished' | 'interrupted' | 'failed', error?: string): void
  /** Closes it as it was before this session, which was refused. */
  leave(): void
}
