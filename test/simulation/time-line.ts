import { inspect } from 'node:util'
import type { History, Line } from './history.js'
import type { RecordStep } from './records.js'
import type { Told } from './search.js'

const PARTY_WIDTH = 12

/** A story as text: what was drawn, and one line an event, indented by its party, so that each is a column. */
export function textOf({ story, history, broken }: Told): string {
  const lines = linesOf(history)
  const width = Math.max(PARTY_WIDTH, ...lines.map(({ party }) => party.length + 1))
  return [
    inspect(story, { depth: null, compact: 9, breakLength: 120 }),
    ...lines.map(
      ({ at, party, text }) => `${at.toFixed(1).padStart(9)} ms  ${party.padEnd(width)}${text}`,
    ),
    ...broken.map((each) => `BROKEN ${each}`),
  ].join('\n')
}

const REDIS = 'Redis'

/** What happened, with the steps of each record, and without the JSON of a problem. */
const linesOf = ({ lines, steps }: History): readonly Line[] =>
  [...lines, ...steps.filter(({ isWrite }) => isWrite).map(lineOf)]
    .sort((one, other) => one.at - other.at)
    .map((line) => ({
      ...line,
      text: line.text.replace(/\{"type":"(?:urn:[a-z-]+:)?([^"]+)".*\}/, '$1'),
    }))

const STATES = { r: 'running', d: 'finished', u: 'not stored', f: 'freed' } as const

function lineOf({ at, recordName, after: stored }: RecordStep): Line {
  const lease = stored?.state === 'r' ? `, lease ${Math.max(0, Math.round(stored.leaseMs))} ms` : ''
  return {
    at,
    party: REDIS,
    text: `${recordName} ${stored ? STATES[stored.state] : 'gone'}${lease}`,
  }
}
