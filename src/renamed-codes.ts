/** Error codes that had another spelling in earlier versions. Run files and exported trajectories may still hold the old one. */
const RENAMED: Readonly<Record<string, string>> = {
  ANSWER_NOT_SERIALISABLE: 'ANSWER_NOT_SERIALIZABLE',
  INPUT_NOT_SERIALISABLE: 'INPUT_NOT_SERIALIZABLE',
  VALUE_NOT_SERIALISABLE: 'VALUE_NOT_SERIALIZABLE',
}

/** The code as it is written today. */
export const currentCode = <Code extends string>(stored: Code): Code =>
  Object.hasOwn(RENAMED, stored) ? (RENAMED[stored] as Code) : stored
