import type { StoreDb } from '../store-db.ts'
import {
  EVAL_COLUMNS,
  type EvalRow,
  evalOf,
  PLAN_COLUMNS,
  type PlanRow,
  planOf,
  UPDATE_COLUMNS,
  type UpdateRow,
  updateOf,
  VERSION_COLUMNS,
  type VersionRow,
  versionOf,
} from './training-rows.ts'

/** The rows that earlier sessions of a training committed. */
export interface TrainingHistory<Report extends object = object, Summary = unknown> {
  /** Plans without an update. */
  readonly plans: readonly PlanRow[]
  readonly updates: readonly UpdateRow<Report>[]
  readonly versions: readonly VersionRow[]
  readonly evals: readonly EvalRow<Summary>[]
  readonly sampler: unknown
  readonly best: number | null
}

type Statements = Pick<StoreDb, 'statement'>

/** Reads the rows of a training in the order of their numbers. Throws if one is malformed. */
export function readHistory(store: Statements, training: number): Omit<TrainingHistory, 'sampler' | 'best'> {
  const all = (sql: string) => store.statement(sql).all(training)
  return {
    plans: all(
      `SELECT ${PLAN_COLUMNS} FROM _plans p WHERE training = ?1 AND NOT EXISTS
       (SELECT 1 FROM _updates u WHERE u.training = ?1 AND u.number = p.number) ORDER BY number`,
    ).map(planOf),
    updates: all(`SELECT ${UPDATE_COLUMNS} FROM _updates WHERE training = ? ORDER BY number`).map(updateOf),
    versions: all(`SELECT ${VERSION_COLUMNS} FROM _versions WHERE training = ? ORDER BY version`).map(versionOf),
    evals: all(`SELECT ${EVAL_COLUMNS} FROM _evals WHERE training = ? ORDER BY version, split`).map(evalOf),
  }
}
