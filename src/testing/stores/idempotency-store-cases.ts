import type { IdempotencyStore } from '../../idempotency/leased/idempotency-store.js'
import { ENDING_RULES } from './ending-rules.js'
import { RESERVATION_RULES } from './reservation-rules.js'
import { casesOf, type StoreCase, type StoreOpener } from './store-case.js'

/**
 * The rules of an `IdempotencyStore`, as cases for any test runner.
 *
 * @throws TypeError when it is given no function.
 */
export const idempotencyStoreCases = (open: StoreOpener<IdempotencyStore>): readonly StoreCase[] =>
  casesOf({ ...RESERVATION_RULES, ...ENDING_RULES }, open)
