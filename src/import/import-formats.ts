export const IMPORT_FORMATS = ['atif', 'sft'] as const
export type ImportFormat = (typeof IMPORT_FORMATS)[number]
