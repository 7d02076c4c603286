import { type FileHandle, mkdir, open, readdir, readFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join, resolve } from 'node:path'
import { ManyworldsError } from '../../errors.ts'
import type { TrainingAbout, TrainingSink } from './sink.ts'
import { readEvent, scalarsEvent, textEvent, versionEvent } from './tensorboard-event.ts'
import { readTfRecords, tfRecord } from './tfrecord.ts'

/** What TensorBoard takes for an event file, with the time of its start and our number of the session. */
const EVENT_FILE = /^events\.out\.tfevents\.(\d+)\./
/** Where the settings of the training are shown, as text. */
const CONFIG_TAG = 'config'

/**
 * Writes event files for TensorBoard: each training into a folder of its own below `folder`, so that `tensorboard --logdir FOLDER` shows
 * them side by side. A training that goes on writes a further file, without the steps that earlier files have.
 *
 * @example
 * const pipeline = new DistributedTrainingPipeline({ agent, tasks, log: tensorboard('runs') })
 */
export function tensorboard(folder: string): TrainingSink {
  if (typeof folder !== 'string' || folder === '')
    throw new ManyworldsError('CONFIG_INVALID', `tensorboard() needs a folder, such as tensorboard('runs')`)
  return new TensorboardSink(resolve(folder))
}

class TensorboardSink implements TrainingSink {
  readonly name: string
  readonly #folder: string
  #file: FileHandle | undefined
  /** By tag, the last step that earlier files have. */
  #written: ReadonlyMap<string, number> = new Map()

  constructor(folder: string) {
    this.name = `tensorboard:${folder}`
    this.#folder = folder
  }

  async open({ trainingId, config }: TrainingAbout): Promise<void> {
    const folder = join(this.#folder, folderName(trainingId))
    await mkdir(folder, { recursive: true })
    const earlier = (await readdir(folder)).filter((name) => EVENT_FILE.test(name)).sort()
    this.#written = await lastSteps(earlier.map((name) => join(folder, name)))
    this.#file = await open(join(folder, nextName(earlier)), 'ax')
    const now = Date.now()
    await this.#append(versionEvent(now))
    if (config !== undefined && !this.#written.has(CONFIG_TAG))
      await this.#append(textEvent(0, CONFIG_TAG, asMarkdown(config), now))
  }

  async scalars(step: number, values: Readonly<Record<string, number>>, at: number): Promise<void> {
    const fresh = Object.entries(values).filter(([tag]) => this.#isNew(tag, step))
    if (fresh.length > 0) await this.#append(scalarsEvent(step, fresh, at))
  }

  async text(step: number, name: string, text: string, at: number): Promise<void> {
    if (this.#isNew(name, step)) await this.#append(textEvent(step, name, text, at))
  }

  async close(): Promise<void> {
    const file = this.#file
    this.#file = undefined
    await file?.close()
  }

  #isNew(tag: string, step: number): boolean {
    return step > (this.#written.get(tag) ?? Number.NEGATIVE_INFINITY)
  }

  /** In one write, so that TensorBoard, which may be reading, seldom sees half a record; it waits for the rest of one. */
  async #append(event: Uint8Array): Promise<void> {
    if (!this.#file) throw new ManyworldsError('CONFIG_INVALID', `${this.name} is not open: call open() first`)
    await this.#file.appendFile(tfRecord(event))
  }
}

async function lastSteps(files: readonly string[]): Promise<Map<string, number>> {
  const last = new Map<string, number>()
  for (const path of files)
    for (const record of readTfRecords(await readFile(path))) {
      const { step, tags } = readEvent(record)
      for (const tag of tags) last.set(tag, Math.max(step, last.get(tag) ?? step))
    }
  return last
}

/** TensorBoard reads the files of a folder in the order of their names, so a name is above all earlier ones even if the clock went back. */
function nextName(earlier: readonly string[]): string {
  const [, before = '0'] = EVENT_FILE.exec(earlier.at(-1) ?? '') ?? []
  const seconds = String(Math.max(Math.floor(Date.now() / 1000), Number(before))).padStart(10, '0')
  const session = String(earlier.length).padStart(6, '0')
  return `events.out.tfevents.${seconds}.${session}.${hostname().replaceAll(/[^\w.-]/g, '_')}`
}

/** Ids of trainings are file names already; what is not, cannot leave the folder. */
const folderName = (id: string) => encodeURIComponent(id).replace(/^\.+$/, (dots) => '%2E'.repeat(dots.length))

const asMarkdown = (config: unknown) =>
  (JSON.stringify(config, null, 2) ?? String(config))
    .split('\n')
    .map((line) => `    ${line}`)
    .join('\n')
