import { PgError, type Result, type Statement } from './protocol.js'
import type { Row, Session, Wait } from './server.js'

/*
 * What the package's statements do. Each is recognised by its text, and so are the parts of it by which a mutant
 * may differ: a statement that nobody knows is an error of the story.
 */

type Performing = Generator<Wait, Result>
type Operation = (session: Session, statement: Statement) => Performing

/** The first groups of a pattern that the text must have. */
function partsOf(text: string, pattern: RegExp): readonly string[] {
  const [found, ...groups] = pattern.exec(text) ?? []
  if (found === undefined) throw new Error(`unknown SQL, without ${pattern}: ${text}`)
  return groups
}

const selected = (column: string, ...values: readonly (string | null)[]): Result => ({
  command: 'SELECT',
  column,
  values,
})

const atOnce = (perform: (session: Session, text: string) => Result): Operation =>
  // biome-ignore lint/correctness/useYield: nothing comes between its parts
  function* (session, { text }) {
    return perform(session, text)
  }

const visible = ({ server, snapshot }: Session): ReadonlyMap<string, Row> => snapshot ?? server.rows

/** Inserts, once no other transaction is inserting the same. Whether the row is new. */
function* insert(
  session: Session,
  row: Omit<Row, 'transaction' | 'insertedAt'>,
  text: string,
): Generator<Wait, boolean> {
  const { server } = session
  const name = `${row.table} ${row.id}`
  const isBeingInserted = (): boolean =>
    [...server.sessions].some((one) => one !== session && one.inserted.has(name))
  while (isBeingInserted()) yield () => !isBeingInserted()
  const isThere = server.rows.has(name) || session.inserted.has(name)
  if (isThere && text.includes('on conflict do nothing')) {
    const isUnseen = session.snapshot?.has(name) === false && !session.inserted.has(name)
    if (isUnseen) throw new PgError('40001')
    return false
  }
  if (isThere && !text.includes('do update')) throw new PgError('23505')
  const insertedAt = server.machine.wallMs()
  session.inserted.set(name, { ...row, insertedAt, transaction: session.transaction ?? 0 })
  return true
}

export function* commit(session: Session): Performing {
  const { server, transaction = 0 } = session
  if (session.hasFailed) {
    yield* end(session)
    return { command: 'ROLLBACK' }
  }
  const rows = [...session.inserted.values()]
  for (const [name, row] of session.inserted) server.rows.set(name, row)
  server.committed.add(transaction)
  server.step({ type: 'commit', transaction, rows })
  yield* end(session)
  return { command: 'COMMIT' }
}

/** Ends the transaction. Its locks go one after the other. */
export function* end(session: Session): Generator<Wait, void> {
  session.ended()
  yield undefined
  for (const lock of session.locks) {
    session.freeLock(lock)
    yield undefined
  }
}

/** The statements of the function `begin_run`, in the text of the migration. */
export const functionBody = (migration: string): readonly string[] =>
  (partsOf(migration, /\n {2}begin\n(.*?)\n {2}end\n {2}\$function\$/s)[0] ?? '').split(';')

function* beginRun(session: Session, { text }: Statement): Performing {
  const [id = '', fingerprint = '', keyLock = '', limitMs] = partsOf(
    text,
    /'(.*?)'::pg_catalog\.uuid.*?x([\da-f]+)'.*?'(-?\d+)'::bigint, '(\d+)ms'/,
  )
  const { server, transaction = 0 } = session
  let isLocked = false
  let hasLooked = false
  let record: string | undefined
  for (const statement of server.beginRun) {
    yield undefined
    const [, setting] = /set_config\('(\w+_timeout)'/.exec(statement) ?? []
    if (setting !== undefined) session.limits[setting] = Number(limitMs)
    const locks = statement.includes('pg_try_advisory_xact_lock')
    const looks = statement.includes(' into ')
    // A statement sees what was committed before it began.
    const seen = looks && locks ? new Map(visible(session)) : visible(session)
    if (looks && locks) yield undefined
    if (locks) isLocked = session.tryLock(keyLock)
    if (statement.includes('is_locked := true')) isLocked = true
    const row = looks ? seen.get(`idempotency ${id}`) : undefined
    const isHidden =
      statement.includes('expires_at') && (row?.expiresAt ?? 0) < server.machine.wallMs()
    if (row !== undefined && !isHidden) record = recordText(row, fingerprint)
    hasLooked ||= looks
    const hasOldSnapshot = session.snapshot !== undefined
    if ((locks || looks) && isLocked && hasLooked && record === undefined)
      server.step({ type: 'begin', transaction, id, hasOldSnapshot })
  }
  if (record !== undefined) return selected('begun', record)
  if (!isLocked) return selected('begun', 'running')
  return selected('begun', String(transaction))
}

function recordText({ fingerprint, usedToken, result }: Row, asked: string): string {
  const isSame = fingerprint === asked
  const stored = isSame && result !== undefined ? [result] : []
  return [isSame ? 'same' : 'other', usedToken ? 'used' : 'unused', ...stored].join(' ')
}

const IN_TRANSACTION =
  /pg_current_xact_id\(\) OPERATOR\(pg_catalog\.=\) '(\d+)' then (true|false) else .*? ended ', '([\da-f-]+)'/

/** The value of `inTransaction`, which fails in any other transaction. */
function valueIn(session: Session, text: string): string | undefined {
  const [, fence, value, marker] = IN_TRANSACTION.exec(text) ?? []
  if (fence !== undefined && fence !== String(session.transaction))
    throw new PgError(
      '22P02',
      `invalid input: express-service-auth: transaction ${fence} ended ${marker}`,
    )
  return value
}

function* insertRecord(session: Session, { text, values }: Statement): Performing {
  const [id = '', fingerprint = '', usedToken, seconds] = partsOf(
    text,
    /values \('(.*?)'::pg_catalog\.uuid, E'\\\\x([\da-f]+)'.*?(true|false).*?, pg_catalog\.clock_timestamp\(\) .*? interval '([\d.]+) seconds'/,
  )
  const isUsed = (valueIn(session, text) ?? usedToken) === 'true'
  const expiresAt = session.server.machine.wallMs() + Number(seconds) * 1000
  const record = { fingerprint, result: values[0] ?? undefined, usedToken: isUsed, expiresAt }
  yield* insert(session, { table: 'idempotency', id, ...record }, text)
  return { command: 'INSERT 0 1' }
}

function* insertToken(session: Session, { text }: Statement): Performing {
  const [id = '', seconds] = partsOf(text, /select '(.*?)'.*?interval '([\d.]+) seconds'/)
  const [, lock] = /pg_try_advisory_xact_lock\('(-?\d+)'\)/.exec(text) ?? []
  setLockTimeout(session, text)
  const isFree = lock === undefined || session.tryLock(lock)
  if (isFree) yield undefined
  const expiresAt = session.server.machine.wallMs() + Number(seconds) * 1000
  const isNew = isFree && (yield* insert(session, { table: 'used_token', id, expiresAt }, text))
  if (!text.includes('returning')) return { command: 'INSERT 0 1' }
  return { command: 'INSERT 0', column: 'consumed', values: isNew ? ['yes'] : [] }
}

function setLockTimeout({ limits }: Session, text: string): void {
  const [, ms] = /set_config\('lock_timeout', '(\d+)ms'/.exec(text) ?? []
  if (ms !== undefined) limits['lock_timeout'] = Number(ms)
}

function* awaitRun(session: Session, { text }: Statement): Performing {
  const [lock = ''] = partsOf(text, /pg_advisory_xact_lock\('(-?\d+)'\)/)
  setLockTimeout(session, text)
  while (!session.tryLock(lock)) yield () => !session.server.locks.has(lock)
  return selected('ended', '')
}

function* insertEffect(session: Session, { text, values }: Statement): Performing {
  yield* insert(session, { table: 'effect', id: values[0] ?? '' }, text)
  return { command: 'INSERT 0 1' }
}

const findRecord = atOnce((session, text) => {
  const [fingerprint = '', id] = partsOf(text, /x([\da-f]+)'.* where id .*?'(.*?)'/)
  const row = visible(session).get(`idempotency ${id}`)
  return selected('record', ...(row === undefined ? [] : [recordText(row, fingerprint)]))
})

const findToken = atOnce((session, text) => {
  const [id] = partsOf(text, /where id .*?'(.*?)'/)
  return selected('used', ...(visible(session).has(`used_token ${id}`) ? ['yes'] : []))
})

const transactionStatus = atOnce(({ server }, text) => {
  const fence = Number(partsOf(text, /'(\d+)'/)[0])
  const isOpen = [...server.sessions].some(({ transaction }) => transaction === fence)
  const status = server.committed.has(fence) ? 'committed' : isOpen ? 'in progress' : 'aborted'
  return selected('status', status)
})

const sweep = atOnce(({ server }, text) => {
  const [table, comparison] = partsOf(
    text,
    /from "service_auth"\.(\w+).*expires_at OPERATOR\(pg_catalog\.([<>])\)/,
  )
  const now = server.machine.wallMs()
  const expired = [...server.rows].filter(
    ([, { table: of, expiresAt = 0 }]) =>
      of === table && (comparison === '<' ? expiresAt < now : expiresAt > now),
  )
  for (const [name, row] of expired) {
    server.rows.delete(name)
    server.step({ type: 'delete', row, now })
  }
  return selected('swept', String(expired.length))
})

const OPERATIONS: readonly (readonly [RegExp, Operation])[] = [
  [/^begin/, atOnce(() => ({ command: 'BEGIN' }))],
  [/^commit$/, commit],
  [
    /^rollback$/,
    function* (session) {
      yield* end(session)
      return { command: 'ROLLBACK' }
    },
  ],
  [/begin_run\(/, beginRun],
  [/pg_catalog\.pg_advisory_xact_lock\(/, awaitRun],
  [/^select pg_catalog\.set_config\('client_conn/, atOnce(() => selected('checked', '500ms'))],
  [/^insert into "service_auth"\.idempotency/, insertRecord],
  [/^insert into "service_auth"\.used_token/, insertToken],
  [/^insert into effect/, insertEffect],
  [
    /^select pg_catalog\.concat\(case/,
    atOnce((session, text) => selected('coupled', valueIn(session, text) ?? '')),
  ],
  [/ as record from /, findRecord],
  [/^select 'yes' as used/, findToken],
  [/pg_xact_status/, transactionStatus],
  [/^with gone as \(delete/, sweep],
  [
    /^select 1 \/ 0/,
    atOnce(() => {
      throw new PgError('22012', 'division by zero')
    }),
  ],
]

export function execute(session: Session, statement: Statement): Performing {
  const [, operation] = OPERATIONS.find(([pattern]) => pattern.test(statement.text)) ?? []
  if (operation === undefined) throw new Error(`unknown SQL: ${statement.text}`)
  return operation(session, statement)
}
