import type { Row } from '../../../src/stores/postgres/runner.js'
import {
  ModelError,
  type ModelRow,
  type Operation,
  type Operations,
  type Session,
} from './model-database.js'

const UNIQUE_VIOLATION = '23505'
const LOCK_NOT_AVAILABLE = '55P03'
const DIVISION_BY_ZERO = '22012'

const NOTHING: readonly undefined[] = []

/** A statement that waits for nothing, and between whose parts nothing comes. */
export const atOnce = (
  perform: (session: Session, values: readonly unknown[]) => readonly Row[],
): Operation =>
  function* (session, values) {
    yield* NOTHING
    return perform(session, values)
  }

/** What is done where a row with the id is there. */
export type OnConflict = 'fail' | 'nothing' | 'overwrite'

/** Inserts, once no other transaction is inserting the same: whether the row is new. */
function* insert(
  session: Session,
  row: Omit<ModelRow, 'writtenBy'>,
  onConflict: OnConflict,
): Generator<() => boolean, boolean> {
  const { rows, sessions } = session.database
  const name = `${row.table} ${row.id}`
  const other = (): Session | undefined =>
    [...sessions].find((one) => one !== session && one.inserted.has(name))
  while (other() !== undefined) yield () => other() === undefined
  if ((rows.has(name) || session.inserted.has(name)) && onConflict !== 'overwrite') {
    if (onConflict === 'fail') throw new ModelError(UNIQUE_VIOLATION)
    return false
  }
  session.inserted.set(name, { ...row, writtenBy: session.name })
  return true
}

/** The row of a record as statements find it now. */
export function lookFor(session: Session, [id, fingerprint]: readonly unknown[]): readonly Row[] {
  const row = session.database.rows.get(`record ${id}`)
  if (row === undefined) return []
  const isSame = row.fingerprint === fingerprint
  return [{ isSame, result: isSame ? row.result : undefined, usedToken: row.usedToken, row }]
}

function* perform(session: Session, text: string, values: readonly unknown[]) {
  const operation = session.database.operations[text] as Operation
  return yield* operation(session, values)
}

export const keepWith = (onConflict: OnConflict): Operation =>
  function* (session, [id, fingerprint, result, usedToken]) {
    const row = { id, fingerprint, result, usedToken } as Omit<ModelRow, 'table' | 'writtenBy'>
    yield* insert(session, { ...row, table: 'record' }, onConflict)
    return []
  }

function* commit(session: Session): ReturnType<Operation> {
  const hasCommitted = !session.hasFailed
  if (hasCommitted) {
    const written = [...session.inserted]
    for (const [name, row] of written) session.database.rows.set(name, row)
    session.database.committed.add(session.name)
    session.database.onCommit(written.map(([, row]) => row))
    session.inserted.clear()
    yield undefined
  }
  yield* session.end()
  return [{ command: hasCommitted ? 'COMMIT' : 'ROLLBACK' }]
}

export const OPERATIONS: Operations = {
  begin: atOnce((session) => {
    session.transaction = session.database.nextTransaction()
    session.idleMs = 0
    return []
  }),
  commit,
  *rollback(session) {
    yield* session.end()
    return []
  },
  guards: atOnce((session, [transactionMs]) => {
    session.idleMs = transactionMs as number
    return []
  }),
  locks: atOnce((session, [keyLock]) => [
    { lock: session.tryLock(keyLock as string) ? session.name : 'running' },
  ]),
  look: atOnce((session, values) => {
    return lookFor(session, values)
  }),
  *begin_run(session, [transactionMs, keyLock, id, fingerprint]) {
    yield* perform(session, 'guards', [transactionMs])
    const [locked] = yield* perform(session, 'locks', [keyLock])
    yield undefined
    const [record] = yield* perform(session, 'look', [id, fingerprint])
    return [{ ...locked, record }]
  },
  keep: keepWith('fail'),
  keep_alone: keepWith('fail'),
  *await_end(session, [keyLock, waitMs]) {
    let isOver = false
    const timer = setTimeout(() => {
      isOver = true
    }, waitMs as number)
    while (!session.tryLock(keyLock as string)) {
      if (isOver) throw new ModelError(LOCK_NOT_AVAILABLE)
      yield () => isOver || !session.database.locks.has(keyLock as string)
    }
    clearTimeout(timer)
    return []
  },
  probe: atOnce(() => {
    return []
  }),
  *consume(session, [id, lock]) {
    if (!session.tryLock(lock as string)) return []
    yield undefined
    const isNew = yield* insert(session, { table: 'token', id: id as string }, 'nothing')
    return isNew ? [{ consumed: 'yes' }] : []
  },
  *use_up(session, [id]) {
    yield* insert(session, { table: 'token', id: id as string }, 'nothing')
    return []
  },
  assert_in: atOnce(() => {
    return []
  }),
  find_token: atOnce((session, [id]) => {
    return session.database.rows.has(`token ${id}`) ? [{ used: 'yes' }] : []
  }),
  fate: atOnce((session, [fence]) => {
    return [{ fate: session.database.committed.has(String(fence)) ? 'committed' : 'aborted' }]
  }),
  *effect(session, [id]) {
    yield* insert(session, { table: 'effect', id: id as string }, 'fail')
    return []
  },
  fail: atOnce(() => {
    throw new ModelError(DIVISION_BY_ZERO)
  }),
}
