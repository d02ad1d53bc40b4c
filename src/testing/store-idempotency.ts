import type { IdempotencyStore } from '../leased/store.js'
import { casesOf, type StoreCase, type StoreOpener } from './store-case.js'
import { ENDING_RULES } from './store-endings.js'
import { RESERVATION_RULES } from './store-reservations.js'

/**
 * The rules of an `IdempotencyStore`, as cases for any test runner.
 *
 * @throws TypeError when it is given no function.
 */
export const idempotencyStoreCases = (open: StoreOpener<IdempotencyStore>): readonly StoreCase[] =>
  casesOf({ ...RESERVATION_RULES, ...ENDING_RULES }, open)
