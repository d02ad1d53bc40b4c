import type { CoreTenant } from '../../core/reply.js'
import { needsOf } from '../../record-validation/requirements.js'
import type { UserWarning } from '../../record-validation/user-finding.js'
import { validateUser } from '../../record-validation/validate-user.js'
import type { Work } from '../migration-context.js'
import type { SurveyedRecord } from '../source-index.js'
import { createTally, type FindingTally } from './finding-tally.js'
import { type SourceNeeds, sourceNeeds } from './source-needs.js'

/** The result of validating the whole source. */
export interface SourceExamination {
  /** Ordinals, in ascending order. */
  readonly invalid: readonly number[]
  readonly errors: FindingTally
  readonly warnings: FindingTally
  readonly needs: SourceNeeds
}

export async function examineSource(
  { survey, settings }: Work,
  coreTenants: readonly CoreTenant[],
): Promise<SourceExamination> {
  const invalid: number[] = []
  const errors = createTally()
  const warnings = createTally()
  const needs = sourceNeeds(coreTenants)
  const accepted = new Set<string>(settings.acceptWarnings)
  const warn = (record: SurveyedRecord, found: readonly UserWarning[]): void => {
    for (const warning of found) if (!accepted.has(warning.code)) warnings.add([warning], record)
  }
  for await (const record of survey.records(0)) {
    const validation = validateUser(record.value)
    warn(record, validation.warnings)
    if (!validation.ok) {
      invalid.push(record.ordinal)
      errors.add(validation.errors, record)
      continue
    }
    needs.add(needsOf(validation.user), record.line)
  }
  return { invalid, errors, warnings, needs }
}
