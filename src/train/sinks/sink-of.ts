import { ManyworldsError } from '../../errors.ts'
import type { TrainingSink } from './sink.ts'
import { tensorboard } from './tensorboard.ts'

/** `'tensorboard'`, `'tensorboard:FOLDER'`, or any sink. */
export type SinkSetting = 'tensorboard' | `tensorboard:${string}` | TrainingSink

/** The folder of `'tensorboard'` without a folder. */
export const TENSORBOARD_FOLDER = 'tensorboard'

/** The sink named by a setting or a command line option. */
export function sinkOf(setting: SinkSetting | (string & {})): TrainingSink {
  if (typeof setting === 'string') {
    const [kind, ...rest] = setting.split(':')
    if (kind === 'tensorboard' && setting !== 'tensorboard:') return tensorboard(rest.join(':') || TENSORBOARD_FOLDER)
  } else if (typeof setting?.scalars === 'function') return setting
  const given = typeof setting === 'string' ? `'${setting}'` : typeof setting
  throw new ManyworldsError(
    'CONFIG_INVALID',
    `\`log\` must be 'tensorboard', 'tensorboard:FOLDER', or a sink (an object with a function \`scalars\`); it is ${given}`,
  )
}
