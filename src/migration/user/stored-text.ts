import type { Findings } from './findings.js'

/** Refuses half a surrogate pair: the core stores a question mark, so that two texts become one. */
export function checkUnicode(text: string, field: string, findings: Findings): void {
  if (text.isWellFormed()) return
  const message = 'Half a surrogate pair is no character: the core would store a question mark.'
  findings.refuse('not_unicode', field, message)
}

/** Refuses NUL as well, which Postgres stores in no text: the row would never leave the core's job. */
export function checkText(text: string, field: string, findings: Findings): void {
  checkUnicode(text, field, findings)
  if (!text.includes('\0')) return
  findings.refuse('nul', field, 'NUL (U+0000) cannot be stored by the database of the core.')
}
