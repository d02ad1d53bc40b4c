import type { Row, Statement } from '../../../src/stores/postgres/runner.js'
import type { KeptRecord, Opened, Statements } from '../../../src/stores/postgres/sql/statements.js'

const statement = (text: string, ...values: unknown[]): Statement => ({ text, values })

const opened = (row: Row | undefined, found: unknown): Opened => {
  const lock = row?.['lock'] as string
  const record = found as KeptRecord | undefined
  return lock === 'running' ? { lock, record } : { lock: 'taken', fence: lock, record }
}

/** The statements of the store as names of the model's operations. */
export const MODEL_STATEMENTS: Statements = {
  open: ({ id, fingerprint, keyLock }, { transactionMs }) =>
    statement('begin_run', transactionMs, keyLock, id, fingerprint),
  readOpened: ([row]) => opened(row, row?.['record']),
  awaitEnd: ({ keyLock }, { waitMs }) => statement('await_end', keyLock, waitMs),
  probe: () => statement('probe'),
  keep: ({ id, fingerprint }, { result, usedToken }) =>
    statement('keep', id, fingerprint, result, usedToken),
  assertIn: () => statement('assert_in'),
  keepAlone: ({ id, fingerprint }, { result, usedToken }) =>
    statement('keep_alone', id, fingerprint, result, usedToken),
  look: ({ id, fingerprint }) => statement('look', id, fingerprint),
  readLooked: ([row]) => row as KeptRecord | undefined,
  consume: ({ id, lock }) => statement('consume', id, lock),
  useUp: ({ id }) => statement('use_up', id),
  readConsumed: ([row]) => row !== undefined,
  findToken: ({ id }) => statement('find_token', id),
  readUsed: ([row]) => row !== undefined,
  fate: (fence) => statement('fate', fence),
  readFate: ([row]) => row?.['fate'] as string | undefined,
}
