export const FORMATS = ['csv', 'jsonl', 'parquet'] as const
export type Format = (typeof FORMATS)[number]

export const WHAT = ['responses', 'steps', 'tasks'] as const
export type What = (typeof WHAT)[number]
