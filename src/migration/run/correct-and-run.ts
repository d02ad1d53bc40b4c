import { isRecord } from '../../base/options.js'
import { openCorrections } from '../source/corrections.js'
import type { Source } from '../source/source.js'
import type { Surveyor } from './build-source-index.js'
import type { Work } from './migration-context.js'
import { originOf } from './origin.js'
import { type Ending, endingOf, walk } from './run-steps.js'
import { isSource } from './settings.js'
import { isFailureCode } from './state/identity-state.js'
import { judgeCorrections } from './steps/check-corrections.js'
import { sendAgain } from './steps/retry-failed.js'

type CorrectionRequest = Source | { readonly again: readonly string[] }

/** @throws TypeError if `input` is neither a source nor a list of codes. */
export function parseCorrectionRequest(input: unknown): CorrectionRequest {
  if (isSource(input)) return input
  const codes = isRecord(input) && Object.keys(input).length === 1 ? input['again'] : undefined
  if (Array.isArray(codes) && codes.length > 0 && codes.every(isFailureCode))
    return { again: codes }
  throw new TypeError(
    'correct: corrections must be { file }, { name, records }, or { again } with codes such as ' +
      'E004 or login_taken',
  )
}

/** Journals the corrections, then continues as a run. */
export const correctAndWalk = (
  work: Work,
  surveyor: Surveyor,
  request: CorrectionRequest,
): Promise<Ending> =>
  endingOf(work, async () => {
    if ('again' in request) await sendAgain(work, request.again)
    else await applyCorrections(work, surveyor, request)
    return walk(work, 'finish')
  })

async function applyCorrections(work: Work, surveyor: Surveyor, source: Source): Promise<void> {
  const open = openCorrections(source, work.settings.batchBytes)
  const { digest, ...corrected } = await judgeCorrections(work, open)
  await work.ledger.write({ type: 'corrected', source: originOf(source, digest), ...corrected })
  await surveyor.add(open)
  const { replaced, leftOut, accepted } = corrected
  work.tell('corrected', { users: replaced.length + leftOut.length + accepted.length })
}
