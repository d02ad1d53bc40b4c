import { correctAndWalk, parseCorrectionRequest } from './correct.js'
import { identityReports } from './identities.js'
import { openLedger } from './ledger.js'
import type { Migration, MigrationOptions, StepOptions } from './migration.js'
import { assertSameCore } from './origin.js'
import { progressTeller } from './progress-teller.js'
import type { MigrationReport } from './report.js'
import { reportOf } from './report-of.js'
import { parseSettings } from './settings.js'
import { mayBeginAnew } from './state/run-state.js'
import { type Surveyor, surveyOnce, takeSurvey } from './take-survey.js'
import { SYSTEM_TIMING, type Timing } from './timing.js'
import { check, type Ending, walk } from './walk.js'
import type { Work } from './work.js'

/**
 * Opens a migration of `source` into `core`, as far as `journal` tells it has come. Until the first
 * step nothing but the journal is read, and nothing is asked. Steps run one at a time.
 *
 * A step rejects with a `MigrationError` where a person must mend source, corrections or journal
 * first; what is wrong at the core is in its report.
 *
 * @throws TypeError when an option is unknown, of the wrong type or out of its range.
 * @throws MigrationError `bad_journal`.
 */
export const openMigration = async (options: MigrationOptions): Promise<Migration> =>
  openMigrationWith(options, SYSTEM_TIMING)

/** The same, by other clocks. */
export async function openMigrationWith(
  options: MigrationOptions,
  timing: Timing,
): Promise<Migration> {
  const settings = parseSettings(options)
  const { core, journal } = settings
  const ledger = await openLedger(journal)
  if (!mayBeginAnew(ledger.state)) assertSameCore(ledger.state.begun, core)
  const tell = progressTeller(ledger, settings.onProgress)
  const closing = new AbortController()
  const survey = surveyOnce((signal) =>
    takeSurvey({ settings, ledger, timing, signal }, settings.corrections),
  )
  let underWay: Promise<unknown> | undefined

  async function take(
    { signal }: StepOptions,
    step: (work: Work, surveyor: Surveyor) => Promise<Ending>,
  ): Promise<MigrationReport> {
    const ends = signal === undefined ? closing.signal : AbortSignal.any([closing.signal, signal])
    const ending = await endingUnder(ends, async () => {
      const found = await survey(ends)
      const work = { core, settings, ledger, timing, tell, signal: ends, survey: found.under(ends) }
      return step({ ...work, lostInARow: 0 }, found)
    })
    return end(ending)
  }

  async function end(ending: Ending): Promise<MigrationReport> {
    const { state, findings, fault } = ending
    if (ledger.state.begun !== undefined) {
      const written = findings.map((finding) => ({ ...finding }))
      await ledger.write({
        type: 'ended',
        state,
        findings: written,
        ...(fault === undefined ? {} : { fault }),
      })
    }
    tell('ended')
    return reportOf(ledger.state, { ending, now: timing.now() })
  }

  /** One at a time: two would stage the same users. */
  function alone<Result>(step: () => Promise<Result>): Promise<Result> {
    closing.signal.throwIfAborted()
    if (underWay !== undefined) throw new Error('a step of the migration is under way')
    const result = step().finally(() => {
      underWay = undefined
    })
    underWay = result
    return result
  }

  return Object.freeze({
    check: async (options = {}) => alone(() => take(options, check)),
    run: async (options = {}) => alone(() => take(options, (work) => walk(work, 'finish'))),
    async correct(corrections, options = {}) {
      const request = parseCorrectionRequest(corrections)
      return alone(() =>
        take(options, async (work, surveyor) => correctAndWalk(work, surveyor, request)),
      )
    },
    reconcile: async (options = {}) =>
      alone(() =>
        take(options, async (work) => {
          await ledger.write({ type: 'reconcile_asked' })
          return walk(work, 'look')
        }),
      ),
    status: async () => reportOf(ledger.state, { now: timing.now() }),
    async *identities() {
      const found = await survey(closing.signal)
      yield* identityReports(ledger, found.under(closing.signal))
    },
    async close() {
      closing.abort(new Error('the migration is closed'))
      await underWay?.catch(ignore)
      await journal.close()
    },
  } satisfies Migration)
}

async function endingUnder(signal: AbortSignal, step: () => Promise<Ending>): Promise<Ending> {
  try {
    return await step()
  } catch (error) {
    if (signal.aborted && error === signal.reason) return { state: 'interrupted', findings: [] }
    throw error
  }
}

function ignore(): void {}
