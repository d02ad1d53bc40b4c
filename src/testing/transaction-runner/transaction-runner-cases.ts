import type { TransactionRunner } from '../../stores/postgres/runner.js'
import { casesOf, type StoreCase, type StoreOpener } from '../stores/store-case.js'
import { TRANSACTION_RULES } from './ending-rules.js'
import { STATEMENT_RULES } from './statement-rules.js'

/**
 * The rules of a `TransactionRunner`, as cases for any test runner; run them one after another. They need a
 * pool of 4 to 100 connections, and a role that may create tables in its first schema; each makes one
 * and drops it.
 *
 * @throws TypeError when it is given no function.
 */
export const transactionRunnerCases = <Tx>(
  open: StoreOpener<TransactionRunner<Tx>>,
): readonly StoreCase[] =>
  // The rules hand a transaction only back to the runner that it comes from.
  casesOf(
    { ...TRANSACTION_RULES, ...STATEMENT_RULES },
    open as StoreOpener<unknown> as StoreOpener<TransactionRunner<unknown>>,
  )
