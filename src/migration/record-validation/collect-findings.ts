import type { UserError, UserErrorCode, UserWarning, UserWarningCode } from './user-finding.js'

/** 1000 errors are enough for one record. */
const MAX_ERRORS = 1000
/** Maximum per code, so that many warnings of one code hide no other code. */
const MAX_WARNINGS_OF_A_CODE = 100

/** Collects the findings of one record in their order. */
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
