import type { Findings } from './collect-findings.js'

/** Refuses a lone surrogate: the core stores a question mark for it, so different texts become equal. */
export function checkUnicode(text: string, field: string, findings: Findings): void {
  if (text.isWellFormed()) return
  const message = 'A lone surrogate is not a character: the core would store a question mark.'
  findings.refuse('not_unicode', field, message)
}

/** Also refuses NUL, which Postgres cannot store in a text: the row would stay `PROCESSING` for good. */
export function checkText(text: string, field: string, findings: Findings): void {
  checkUnicode(text, field, findings)
  if (!text.includes('\0')) return
  findings.refuse('nul', field, 'The database of the core cannot store NUL (U+0000).')
}
