import type { History, Line } from './history.js'
import type { RecordStep } from './records.js'
import type { Told } from './search.js'

const PARTY_WIDTH = 12

/** A story as text: one line an event, indented by its party, so that each party is a column. */
export function textOf({ story, history, broken }: Told): string {
  const lines = linesOf(history)
  const parties = partiesOf(lines)
  const width = Math.max(PARTY_WIDTH, ...parties.map((party) => party.length + 1))
  return [
    routeOf(story as object),
    ...lines.map(
      ({ at, party, text }) => `${at.toFixed(1).padStart(9)} ms  ${party.padEnd(width)}${text}`,
    ),
    ...broken.map((each) => `BROKEN ${each}`),
  ].join('\n')
}

const LANE = 260
const ROW = 18

/** The same as SVG: a lane for each party, from the top down. */
export function svgOf({ history, broken }: Told): string {
  const lines = linesOf(history)
  const parties = partiesOf(lines)
  const x = (party: string): number => 90 + Math.max(0, parties.indexOf(party)) * LANE
  const height = (lines.length + broken.length + 4) * ROW
  const lanes = parties.map(
    (party) =>
      `<text x="${x(party)}" y="20" font-weight="bold">${escaped(party || 'fault')}</text><line x1="${x(party) - 6}" x2="${x(party) - 6}" y1="28" y2="${height}" stroke="#ccc"/>`,
  )
  const rows = lines.map(({ at, party, text }, index) => {
    const y = (index + 3) * ROW
    return `<text x="4" y="${y}" fill="#777">${at.toFixed(1)} ms</text><text x="${x(party)}" y="${y}" ${styleOf(party, text)}>${escaped(text.slice(0, 120))}</text>`
  })
  const faults = broken.map(
    (each, index) =>
      `<text x="4" y="${(lines.length + 4 + index) * ROW}" fill="#b00">${escaped(each)}</text>`,
  )
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${90 + parties.length * LANE}" height="${height}" font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="#fff"/>${[...lanes, ...rows, ...faults].join('\n')}</svg>\n`
}

/** Faults are orange, effects bold, and what Redis stores is grey. */
function styleOf(party: string, text: string): string {
  if (party === '') return 'fill="#b50"'
  if (party === REDIS) return 'fill="#557"'
  return text.startsWith('EFFECT') ? 'font-weight="bold"' : ''
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
/** What a story is like, besides what happens in it. */
function routeOf(story: object): string {
  const isPlain = ([, value]: [string, unknown]): boolean => typeof value !== 'object'
  const values = Object.entries(story).flatMap(([name, value]) =>
    name === 'coupled' ? Object.entries(value ?? {}) : [[name, value] as [string, unknown]],
  )
  return values
    .filter(isPlain)
    .map(([name, value]) => `${name} ${value}`)
    .join(', ')
}

const partiesOf = (lines: readonly Line[]): readonly string[] =>
  [...new Set(lines.map(({ party }) => party))].sort()

const escaped = (text: string): string => text.replace(/&/g, '&amp;').replace(/</g, '&lt;')
