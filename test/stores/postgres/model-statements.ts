import type { Row, Statement } from '../../../src/stores/postgres/runner.js'
import type { BeginResult } from '../../../src/stores/postgres/sql/begin-statements.js'
import type { RecordRow } from '../../../src/stores/postgres/sql/record-statements.js'
import type { Statements } from '../../../src/stores/postgres/sql/statements.js'

const statement = (text: string, ...values: unknown[]): Statement => ({ text, values })

const opened = (row: Row | undefined, found: unknown): BeginResult => {
  const lock = row?.['lock'] as string
  if (found !== undefined) return { found: 'record', record: found as RecordRow }
  return lock === 'running' ? { found: 'run' } : { found: 'nothing', fence: lock }
}

/** The statements of the store as names of the model's operations. */
export const MODEL_STATEMENTS: Statements = {
  begin: ({ id, fingerprint, keyLock }, { transactionMs }) =>
    statement('begin_run', transactionMs, keyLock, id, fingerprint),
  readBeginResult: ([row]) => opened(row, row?.['record']),
  awaitRun: ({ keyLock }, { waitMs }) => statement('await_end', keyLock, waitMs),
  checkConnection: () => statement('probe'),
  insertRecord: ({ id, fingerprint }, { result, usedToken }) =>
    statement('keep', id, fingerprint, result, usedToken),
  assertInTransaction: () => statement('assert_in'),
  insertRecordSeparately: ({ id, fingerprint }, { result, usedToken }) =>
    statement('keep_alone', id, fingerprint, result, usedToken),
  findRecord: ({ id, fingerprint }) => statement('look', id, fingerprint),
  readRecord: ([row]) => row as RecordRow | undefined,
  consume: ({ id, lock }) => statement('consume', id, lock),
  consumeAfterRollback: ({ id }) => statement('use_up', id),
  readConsumed: ([row]) => row !== undefined,
  findToken: ({ id }) => statement('find_token', id),
  readTokenUse: ([row]) => row !== undefined,
  transactionStatus: (fence) => statement('fate', fence),
  readTransactionStatus: ([row]) => row?.['fate'] as string | undefined,
}
