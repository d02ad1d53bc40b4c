import type { UserFinding } from '../../user/finding.js'
import type { SurveyedRecord } from '../survey.js'
import { findingText } from './finding-text.js'

export interface TalliedFinding {
  readonly finding: UserFinding
  /** Without account data. */
  readonly message: string
  /** Of the first record that has it. */
  readonly line: number
  readonly records: number
}

/** Findings of many records: one of each kind, with the first line and how many records have it. */
export interface FindingTally {
  add(finding: UserFinding, record: SurveyedRecord): void
  all(): readonly TalliedFinding[]
}

/** A source of one mistake has few kinds; more than these are one that names the rest. */
const MOST_KINDS = 200

export function createTally(): FindingTally {
  const kinds = new Map<string, TalliedFinding>()
  return {
    add(finding, { line, value }) {
      const kind = kinds.size < MOST_KINDS ? kindOf(finding) : finding.code
      const before = kinds.get(kind)
      const records = (before?.records ?? 0) + 1
      if (before !== undefined) return void kinds.set(kind, { ...before, records })
      const message = findingText(finding, value)
      kinds.set(kind, { finding, message, line, records })
    },
    all: () => [...kinds.values()],
  }
}

/** The same member of different list items is one kind. */
const kindOf = ({ field, code }: UserFinding): string =>
  `${code} ${field.replaceAll(/\[\d+\]/g, '[]')}`
