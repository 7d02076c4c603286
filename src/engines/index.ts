/** For those who write an engine: its contract, and frames on a byte stream. `manyworlds/testing` checks an engine against it. */
export type {
  BlobContent,
  CodeBundle,
  EngineEvents,
  Placement,
  RuntimeEngine,
  RuntimeEngineClass,
  WorkerExit,
  WorkerInfo,
  WorkerLink,
} from './engine.ts'
export { frameReader, writeFrame } from './frames.ts'
