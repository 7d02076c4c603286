import { type FileHandle, mkdir, open, readdir, readFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join, resolve } from 'node:path'
import { ManyworldsError } from '../../errors.ts'
import type { TrainingAbout, TrainingSink } from './sink.ts'
import { readEvent, scalarsEvent, textEvent, versionEvent } from './tensorboard-event.ts'
import { readTfRecords, tfRecord } from './tfrecord.ts'

/** The names of TensorBoard's event files: the start time, then our session number. */
const EVENT_FILE = /^events\.out\.tfevents\.(\d+)\./
/** The tag under which the settings of the training are shown as text. */
const CONFIG_TAG = 'config'

/**
 * Writes event files for TensorBoard: each training into its own folder below `folder`, so that `tensorboard --logdir FOLDER` shows them side by side. A
 * resumed training adds a file, without the steps that are in earlier files.
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
  /** The last step in earlier files, by tag. */
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

  /** In one write, so that TensorBoard rarely reads an incomplete record; if it does, it waits for the rest. */
  async #append(event: Uint8Array): Promise<void> {
    if (!this.#file) throw new ManyworldsError('CONFIG_INVALID', `${this.name} is not open; call open() first`)
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

/**
 * TensorBoard reads the files of a folder in the order of their names, so the new name must sort last even if the clock
 * was set back.
 */
function nextName(earlier: readonly string[]): string {
  const [, before = '0'] = EVENT_FILE.exec(earlier.at(-1) ?? '') ?? []
  const seconds = String(Math.max(Math.floor(Date.now() / 1000), Number(before))).padStart(10, '0')
  const session = String(earlier.length).padStart(6, '0')
  return `events.out.tfevents.${seconds}.${session}.${hostname().replaceAll(/[^\w.-]/g, '_')}`
}

/** Training ids are already valid file names; anything else is escaped, so that it cannot leave the folder. */
const folderName = (id: string) => encodeURIComponent(id).replace(/^\.+$/, (dots) => '%2E'.repeat(dots.length))

const asMarkdown = (config: unknown) =>
  (JSON.stringify(config, null, 2) ?? String(config))
    .split('\n')
    .map((line) => `    ${line}`)
    .join('\n')
