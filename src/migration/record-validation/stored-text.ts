import type { Findings } from './collect-findings.js'

/** Refuses lone surrogates, because the core stores question marks for them, which makes different texts equal. */
export function checkUnicode(text: string, field: string, findings: Findings): void {
  if (text.isWellFormed()) return
  const message = 'A lone surrogate is not a character: the core would store a question mark.'
  findings.refuse('not_unicode', field, message)
}

/** Also refuses NUL, which Postgres cannot store in text, so that the row would stay `PROCESSING` forever. */
export function checkText(text: string, field: string, findings: Findings): void {
  checkUnicode(text, field, findings)
  if (!text.includes('\0')) return
  findings.refuse('nul', field, 'The database of the core cannot store NUL (U+0000).')
}
