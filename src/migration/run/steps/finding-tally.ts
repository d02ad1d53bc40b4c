import type { UserFinding } from '../../record-validation/user-finding.js'
import type { SurveyedRecord } from '../source-index.js'
import { findingText } from './finding-text.js'

export interface TalliedFinding {
  /** Contains no account data. */
  readonly message: string
  /** Line of the first record with the finding. */
  readonly line: number
  readonly records: number
}

/** Groups the findings of many records by kind, each with its first line and its number of records. */
export interface FindingTally {
  /** Adds the findings of one record as one kind, so that the record counts once. */
  add(findings: readonly UserFinding[], record: SurveyedRecord): void
  all(): readonly TalliedFinding[]
}

/** Above this number of kinds, records are grouped by the code of their first finding. */
const MAX_KINDS = 200
/** Maximum number of findings in one message. The report of the identity has all of them. */
const MAX_TEXTS = 3

interface Tallied extends TalliedFinding {
  readonly lastLine: number
}

export function createTally(): FindingTally {
  const kinds = new Map<string, Tallied>()
  return {
    add(findings, { line, value }) {
      const [first] = findings
      if (first === undefined) return
      const all = [...new Set(findings.map(kindOf))].join(' ')
      const kind = kinds.has(all) || kinds.size < MAX_KINDS ? all : first.code
      const before = kinds.get(kind)
      if (before === undefined) {
        kinds.set(kind, { message: messageOf(findings, value), line, records: 1, lastLine: line })
      } else if (before.lastLine !== line) {
        kinds.set(kind, { ...before, records: before.records + 1, lastLine: line })
      }
    },
    all: () => [...kinds.values()].map(({ lastLine: _, ...tallied }) => tallied),
  }
}

function messageOf(findings: readonly UserFinding[], value: unknown): string {
  const texts = findings
    .slice(0, MAX_TEXTS)
    .map((each) => `${each.code} in ${each.field || 'the record'}: ${findingText(each, value)}`)
  const others = findings.length - texts.length
  return [...texts, ...(others > 0 ? [`and ${others} more`] : [])].join('; ')
}

/** Returns the same kind for the same member of different list items. */
const kindOf = ({ field, code }: UserFinding): string =>
  `${code} ${field.replaceAll(/\[\d+\]/g, '[]')}`
