import type { createRun } from '../../../src/stores/postgres/run/create-run.js'
import type { LiveRuns } from '../../../src/stores/postgres/run/live-runs.js'
import type { Operation, Operations } from './model-database.js'
import { atOnce, keepWith, lookFor, OPERATIONS } from './model-operations.js'
import type { Connection } from './model-runner.js'

type Run = ReturnType<typeof createRun>

/** The code under test, or a wrong variation of it. */
export interface Mutant {
  readonly operations: Operations
  live(live: LiveRuns<Connection>): LiveRuns<Connection>
  run(run: Run): Run
}

export const THE_CODE: Mutant = {
  operations: OPERATIONS,
  live: (live) => live,
  run: (run) => run,
}

const withOperations = (operations: Record<string, Operation>): Mutant => ({
  ...THE_CODE,
  operations: { ...OPERATIONS, ...operations },
})

const joinedLocks: Operation = function* (session, values) {
  session.memory = new Set(session.database.rows.keys())
  yield undefined
  return yield* (OPERATIONS['locks'] as Operation)(session, values)
}

const joinedLook = atOnce((session, values) => {
  const seen = session.memory as ReadonlySet<string> | undefined
  session.memory = undefined
  const isSeen = seen === undefined || seen.has(`record ${values[0]}`)
  return isSeen ? lookFor(session, values) : []
})

const lookForUnexpired = atOnce((session, values) => {
  const row = session.database.rows.get(`record ${values[0]}`)
  return row?.isExpired === true ? [] : lookFor(session, values)
})

const doNothing = atOnce(() => [])

const sentBeforeCommit = (run: Run): Run => {
  return (request, work) =>
    new Promise((resolve, reject) => {
      const toldEarly: typeof work = async (begun) => {
        const ending = await work(begun)
        if (ending.type === 'commit') resolve({ outcome: 'committed', usedTransaction: true })
        return ending
      }
      run(request, toldEarly).then(resolve, reject)
    })
}

interface Found {
  readonly mutant: Mutant
  /** The rule that it breaks. */
  readonly breaks: RegExp
  /** With it fast-check finds the mutant out soon. By default 1. */
  readonly seed?: number
}

export const MUTANTS: Readonly<Record<string, Found>> = {
  'on conflict do nothing': {
    mutant: withOperations({ keep: keepWith('nothing') }),
    breaks: /a write without its record/,
  },
  'lock and look-up joined': {
    mutant: withOperations({ locks: joinedLocks, look: joinedLook }),
    breaks: /a handler began beside a record/,
  },
  'sent before COMMIT': {
    mutant: { ...THE_CODE, run: sentBeforeCommit },
    breaks: /told of a success too early/,
  },
  'COMMIT looked up without the lock': {
    mutant: withOperations({ await_end: doNothing }),
    breaks: /a denied write is there/,
    seed: 2,
  },
  'expired read as absent': {
    mutant: withOperations({ look: lookForUnexpired }),
    breaks: /a handler began beside a record/,
  },
  'no revocation': {
    mutant: { ...THE_CODE, live: (live) => ({ ...live, end: () => {} }) },
    breaks: /a late write has landed/,
  },
  'a refusal that overwrites': {
    mutant: withOperations({ keep_alone: keepWith('overwrite') }),
    breaks: /a write without its record/,
  },
  'a rollback that frees the token': {
    mutant: withOperations({ use_up: doNothing }),
    breaks: /a used token is free/,
  },
}
