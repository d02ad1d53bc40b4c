import type { UserError, UserErrorCode, UserWarning, UserWarningCode } from './user-finding.js'

/** A record of a million faults is told from one of a thousand by nobody. */
const MAX_ERRORS = 1000
/** Of each code, so that many findings of one code hide no other code. */
const MAX_WARNINGS_OF_A_CODE = 100

/** Collects what is found in one record, in the order in which it is found. */
export interface Findings {
  readonly errors: UserError[]
  readonly warnings: UserWarning[]
  refuse(code: UserErrorCode, field: string, message: string): void
  warn(code: UserWarningCode, field: string, message: string): void
}

export function openFindings(): Findings {
  const errors: UserError[] = []
  const warnings: UserWarning[] = []
  let counts: Map<UserWarningCode, number> | undefined
  return {
    errors,
    warnings,
    refuse(code, field, message) {
      if (errors.length < MAX_ERRORS) errors.push({ field, code, message })
    },
    warn(code, field, message) {
      counts ??= new Map()
      const count = counts.get(code) ?? 0
      counts.set(code, count + 1)
      if (count < MAX_WARNINGS_OF_A_CODE) warnings.push({ field, code, message })
    },
  }
}
