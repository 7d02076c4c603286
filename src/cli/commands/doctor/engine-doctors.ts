import { engineParts } from '../../../engines/all-parts.ts'

/** What engines have checked. */
export const doctors = engineParts.map(({ cli }) => cli?.doctor).filter((doctor) => doctor !== undefined)
