export const FORMATS = ['csv', 'jsonl', 'parquet'] as const
export type Format = (typeof FORMATS)[number]

export const WHAT = ['responses', 'steps', 'tasks'] as const
export type What = (typeof WHAT)[number]

/** Formats of other systems: trajectories, samples of tokens, conversations. */
export const EXPERIENCE_FORMATS = ['atif', 'verl', 'trl', 'sft', 'preference', 'prime-rl'] as const
export type ExperienceFormat = (typeof EXPERIENCE_FORMATS)[number]

export const SPLITS = ['train', 'validation', 'test', 'all'] as const
