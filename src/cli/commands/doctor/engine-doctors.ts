import { engineParts } from '../../../engines/all-parts.ts'

/** The checks of engines. */
export const doctors = engineParts.map(({ cli }) => cli?.doctor).filter((doctor) => doctor !== undefined)
