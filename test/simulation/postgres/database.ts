import type { Machine } from '../clock.js'
import { PgError, type Result, type Statement } from './protocol.js'

/*
 * What a database has committed, who holds which lock, and what the package's statements do. Each statement is
 * recognised by its text, and so are the parts of it by which a mutant may differ: a statement that nobody knows is
 * an error of the story.
 */

/** A row of any of the tables. */
export interface Row {
  readonly table: 'idempotency' | 'used_token' | 'effect'
  readonly id: string
  readonly fingerprint?: string
  /** As Base64. */
  readonly result?: string | undefined
  /** The transaction that the record names. */
  readonly run?: string | undefined
  /** By the server's clock, in ms. */
  readonly insertedAt: number
  readonly expiresAt?: number
  /** The transaction that has written it. */
  readonly transaction: number
}

/** What the server has done, for the oracle. */
type Step =
  | {
      /** A run has the lock of its key, and has found no record. */
      readonly type: 'begin'
      readonly transaction: number
      readonly id: string
      /** It sees what was there before it had the lock. */
      readonly hasOldSnapshot: boolean
    }
  | { readonly type: 'commit'; readonly transaction: number; readonly rows: readonly Row[] }
  /** It has committed or not; its locks go after this. */
  | { readonly type: 'end'; readonly transaction: number }
  | { readonly type: 'delete'; readonly row: Row; readonly now: number }

/** `at` is real, in ms. */
export type DatabaseStep = Step & { readonly at: number }

/** What a statement waits for; without it, only others may come between. */
export type Wait = (() => boolean) | undefined

export class Database {
  readonly machine: Machine
  readonly rows = new Map<string, Row>()
  readonly locks = new Map<string, Session>()
  readonly sessions = new Set<Session>()
  /** The statements of the function `begin_run`, in the text of the migration. */
  readonly beginRun: readonly string[]
  onStep: (step: DatabaseStep) => void = () => {}
  #transactions = 700

  constructor(machine: Machine, migration: string) {
    this.machine = machine
    const [body = ''] = partsOf(
      migration,
      /\n {2}as \$function\$.*?\n {2}begin\n(.*?)\n {2}end\n {2}\$function\$/s,
    )
    this.beginRun = body.split(';')
  }

  step(step: Step): void {
    this.onStep({ at: this.machine.simulation.now, ...step })
  }

  nextTransaction(): number {
    return ++this.#transactions
  }

  /** Whoever waits looks again. */
  changed(): void {
    for (const { look } of this.sessions) look?.()
  }
}

/** What a client has done since its transaction began. */
export abstract class Session {
  readonly database: Database
  /** What it has written, and not committed. */
  readonly inserted = new Map<string, Row>()
  readonly locks = new Set<string>()
  transaction: number | undefined
  hasFailed = false
  /** The transaction is that of one batch. */
  isImplicit = false
  isRepeatable = false
  /** What a repeatable read sees. */
  snapshot: ReadonlyMap<string, Row> | undefined
  /** Limits of the transaction, in ms. */
  limits: Record<string, number> = {}
  /** Looks whether it need not wait any longer. */
  look: (() => void) | undefined

  constructor(database: Database) {
    this.database = database
    database.sessions.add(this)
  }

  abstract die(error?: PgError): void

  tryLock(lock: string): boolean {
    const { locks } = this.database
    const holder = locks.get(lock)
    if (holder !== undefined && holder !== this) return false
    locks.set(lock, this)
    this.locks.add(lock)
    return true
  }

  freeLock(lock: string): void {
    this.database.locks.delete(lock)
    this.locks.delete(lock)
    this.database.changed()
  }

  /** The transaction is over, but for its locks. */
  ended(): void {
    if (this.transaction !== undefined)
      this.database.step({ type: 'end', transaction: this.transaction })
    this.inserted.clear()
    this.hasFailed = false
    this.isImplicit = false
    this.isRepeatable = false
    this.snapshot = undefined
    this.transaction = undefined
    this.limits = {}
    this.database.changed()
  }
}

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

const visible = ({ database, snapshot }: Session): ReadonlyMap<string, Row> =>
  snapshot ?? database.rows

/** Inserts, once no other transaction is inserting the same. Whether the row is new. */
function* insert(
  session: Session,
  row: Omit<Row, 'transaction' | 'insertedAt'>,
  text: string,
): Generator<Wait, boolean> {
  const { database } = session
  const name = `${row.table} ${row.id}`
  const isBeingInserted = (): boolean =>
    [...database.sessions].some((one) => one !== session && one.inserted.has(name))
  while (isBeingInserted()) yield () => !isBeingInserted()
  const isThere = database.rows.has(name) || session.inserted.has(name)
  if (isThere && text.includes('on conflict do nothing')) {
    const isUnseen = session.snapshot?.has(name) === false && !session.inserted.has(name)
    if (isUnseen) throw new PgError('40001')
    return false
  }
  if (isThere && !text.includes('do update')) throw new PgError('23505')
  const insertedAt = database.machine.wallMs()
  session.inserted.set(name, { ...row, insertedAt, transaction: session.transaction ?? 0 })
  return true
}

export function* commit(session: Session): Performing {
  const { database, transaction = 0 } = session
  if (session.hasFailed) {
    yield* end(session)
    return { command: 'ROLLBACK' }
  }
  const rows = [...session.inserted.values()]
  for (const [name, row] of session.inserted) database.rows.set(name, row)
  database.step({ type: 'commit', transaction, rows })
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

const TOKEN = /ms', '(.*?)', '(-?\d+)', '([\d.]+) seconds'/

function* beginRun(session: Session, { text }: Statement): Performing {
  const [id = '', fingerprint = '', keyLock = '', limitMs] = partsOf(
    text,
    /'(.*?)'.*?x([\da-f]+)', '(-?\d+)', '(\d+)ms'/,
  )
  const { database, transaction = 0 } = session
  const [, token, tokenLock = '', tokenSeconds] = TOKEN.exec(text) ?? []
  let isLocked = false
  let hasLooked = false
  let record: string | undefined
  for (const statement of database.beginRun) {
    yield undefined
    const [, setting] = /set_config\('(\w+_timeout)'/.exec(statement) ?? []
    if (setting !== undefined) session.limits[setting] = Number(limitMs)
    const locks = statement.includes('pg_try_advisory_xact_lock($3)')
    const looks = /\binto (is_locked, )?stored\b/.test(statement)
    // A statement sees what was committed before it began.
    const seen = looks && locks ? new Map(visible(session)) : visible(session)
    if (looks && locks) yield undefined
    if (locks) isLocked = session.tryLock(keyLock)
    if (statement.includes('is_locked := true')) isLocked = true
    const row = looks ? seen.get(`idempotency ${id}`) : undefined
    const isHidden =
      statement.includes('expires_at') && (row?.expiresAt ?? 0) < database.machine.wallMs()
    if (row !== undefined && !isHidden) record = recordText(row, fingerprint)
    hasLooked ||= looks
    const hasOldSnapshot = session.snapshot !== undefined
    if ((locks || looks) && isLocked && hasLooked && record === undefined)
      database.step({ type: 'begin', transaction, id, hasOldSnapshot })
    if (token === undefined || record !== undefined || !isLocked) continue
    if (statement.includes('pg_try_advisory_xact_lock($6)') && !session.tryLock(tokenLock))
      return selected('begun', 'token in use')
    if (!statement.includes('.used_token')) continue
    const expiresAt = database.machine.wallMs() + Number(tokenSeconds) * 1000
    const isNew = yield* insert(session, { table: 'used_token', id: token, expiresAt }, statement)
    if (!isNew && database.beginRun.some((each) => each.includes('if not found')))
      return selected('begun', 'token used')
  }
  if (record !== undefined) return selected('begun', record)
  if (!isLocked) return selected('begun', 'running')
  return selected('begun', String(transaction))
}

function recordText({ fingerprint, result, run }: Row, asked: string): string {
  const isSame = fingerprint === asked
  const stored = isSame && result !== undefined ? [result] : []
  return [isSame ? 'same' : 'other', run ?? 'alone', ...stored].join(' ')
}

const IN_TRANSACTION =
  /pg_current_xact_id\(\)::pg_catalog\.text OPERATOR\(pg_catalog\.=\) (?:'(\d+)'|\$(\d)) then .*? ended ', '([\da-f-]+)'/

/** The value of `inTransaction`, which fails in any other transaction. */
function valueIn(session: Session, { text, values }: Statement): string | undefined {
  const [found, literal, at, marker] = IN_TRANSACTION.exec(text) ?? []
  if (found === undefined) return undefined
  const fence = literal ?? values[Number(at) - 1]
  if (fence !== String(session.transaction))
    throw new PgError('22P02', `invalid input: express-service-auth: transaction ended ${marker}`)
  return fence
}

/** Inserts a token, if one stands before the record, and then the record. */
function* insertRecord(session: Session, statement: Statement): Performing {
  const [, using, text = ''] = /^(with used as .* as consumed\) )?(.*)$/s.exec(statement.text) ?? []
  const [id = '', fingerprint = '', result, interval, ...token] = statement.values
  if (using !== undefined) {
    const [tokenId, lock, ttl] = token
    const withLiterals = using
      .replace('$5', `'${tokenId}'`)
      .replace('$6', `'${lock}'`)
      .replace('$7', `'${ttl}'`)
    const consumed = yield* insertToken(session, { ...statement, text: withLiterals })
    if (text.includes('exists (select from used)') && consumed.values?.length === 0)
      return { command: 'INSERT 0', column: 'kept', values: [] }
  }
  partsOf(text, /\$1, pg_catalog\.decode\(\$2, 'hex'\), .* pg_catalog\.clock_timestamp\(\) .* \$4/)
  const run = valueIn(session, statement)
  const expiresAt = session.database.machine.wallMs() + Number.parseFloat(interval ?? '') * 1000
  const record = { id: id ?? '', fingerprint: fingerprint ?? '', result: result ?? undefined }
  yield* insert(session, { table: 'idempotency', ...record, run, expiresAt }, text)
  if (!text.includes('returning')) return { command: 'INSERT 0 1' }
  return { command: 'INSERT 0 1', column: 'kept', values: ['yes'] }
}

function* insertToken(session: Session, { text }: Statement): Performing {
  const [id = '', seconds] = partsOf(text, /select '(.*?)'.*? '([\d.]+) seconds'/)
  const [lock = ''] = partsOf(text, /pg_try_advisory_xact_lock\('(-?\d+)'\)/)
  const isFree = session.tryLock(lock)
  if (isFree) yield undefined
  const expiresAt = session.database.machine.wallMs() + Number(seconds) * 1000
  const isNew = isFree && (yield* insert(session, { table: 'used_token', id, expiresAt }, text))
  return { command: 'INSERT 0', column: 'consumed', values: isNew ? ['yes'] : [] }
}

function setLockTimeout({ limits }: Session, text: string): void {
  const [, ms] = /set_config\('lock_timeout', '(\d+)ms'/.exec(text) ?? []
  if (ms !== undefined) limits['lock_timeout'] = Number(ms)
}

function* awaitRun(session: Session, { text }: Statement): Performing {
  const [lock = ''] = partsOf(text, /pg_advisory_xact_lock\('(-?\d+)'\)/)
  setLockTimeout(session, text)
  while (!session.tryLock(lock)) yield () => !session.database.locks.has(lock)
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

const sweep = atOnce(({ database }, text) => {
  const [table, comparison] = partsOf(
    text,
    /from "service_auth"\.(\w+).*expires_at OPERATOR\(pg_catalog\.([<>])\)/,
  )
  const now = database.machine.wallMs()
  const expired = [...database.rows].filter(
    ([, { table: of, expiresAt = 0 }]) =>
      of === table && (comparison === '<' ? expiresAt < now : expiresAt > now),
  )
  for (const [name, row] of expired) {
    database.rows.delete(name)
    database.step({ type: 'delete', row, now })
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
  [/^(with used as .*)?insert into "service_auth"\.idempotency/s, insertRecord],
  [/^insert into "service_auth"\.used_token/, insertToken],
  [/^insert into effect/, insertEffect],
  [
    /^select \(case when .* as coupled$/,
    // biome-ignore lint/correctness/useYield: nothing comes between its parts
    function* (session, statement) {
      return selected('coupled', valueIn(session, statement) ?? '')
    },
  ],
  [/ as record from /, findRecord],
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
