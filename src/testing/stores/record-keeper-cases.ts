import { type KeptStore, RECORD_RULES } from './record-rules.js'
import { RESOLUTION_RULES } from './resolution-rules.js'
import { casesOf, type StoreCase, type StoreOpener } from './store-case.js'

/**
 * The rules of a store that is a `RecordKeeper` beside, as cases for any test runner.
 *
 * @throws TypeError when it is given no function.
 */
export const recordKeeperCases = (open: StoreOpener<KeptStore>): readonly StoreCase[] =>
  casesOf({ ...RECORD_RULES, ...RESOLUTION_RULES }, open)
