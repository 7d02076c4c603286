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

/** The result of an update. */
export interface UpdateReport extends TrainReport {
  /** Model tokens per episode, input and output. */
  readonly tokens: number
}

/** A rate or a mean, with its 95 % interval. */
export interface Figure {
  readonly value: number
  readonly low: number
  readonly high: number
}

/** The evaluation of a version. */
export interface EvaluationFigures {
  /** The fraction of solved rollouts; null if none was judged. */
  readonly success: Figure | null
  readonly reward: Figure | null
  readonly withoutResult: number
  /**
   * For learners that select their own training data, which search by rewards: the mean reward over tasks, with 0 for
   * failures of the agent. The best version is the one with the highest score.
   */
  readonly score?: number | null
}

/** What earlier sessions stored. */
export interface TrainingHistory {
  /** Plans without an update, in order. */
  readonly plans: readonly PlanRow[]
  readonly updates: readonly UpdateRow[]
  readonly versions: readonly VersionRow[]
  readonly evals: readonly EvalRow[]
  /** As stored with the last update. */
  readonly sampler: unknown
  readonly best: number | null
}

/** Stores a training; data is durable when a call returns. */
export interface TrainingRecord {
  readonly id: string
  readonly isNew: boolean
  /** The settings of the first session. */
  readonly config: unknown
  readonly history: TrainingHistory
  plan(row: PlanRow): void
  /** In one transaction. */
  update(step: { readonly update: UpdateRow; readonly version?: VersionRow; readonly sampler: unknown }): void
  /** The version that the training begins with. */
  version(row: VersionRow): void
  evaluation(row: EvalRow, best: number | null): void
  /** Returns the SHA-256 of the bytes, which is the file's name. */
  writeFile(bytes: Uint8Array): Promise<string>
  readFile(sha256: string): Promise<Uint8Array>
  /**
   * Keeps the steps of one in `oneIn` trajectories of a run that is no longer needed for training. Returns how many
   * tasks lost their steps.
   */
  thin(run: string, oneIn: number): Promise<number>
  /** The weights of these versions are no longer needed. */
  drop(versions: readonly number[]): void
  close(how: 'finished' | 'interrupted' | 'failed', error?: string): void
  /** Closes the record without changing it, after this session was refused. */
  leave(): void
}
