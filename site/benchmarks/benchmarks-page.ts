import { barChart } from './bar-chart.js'
import type { BenchmarkReport, BenchmarkTable } from './report.js'

const MICROSECONDS = 'µs'
/** Two are compared as well by their figures. */
const LEAST_BARS = 3

/** The page of figures; `method` is the document that says how they are measured. */
export function benchmarksPage(report: BenchmarkReport, method: string): string {
  const tables = report.sections.flatMap(({ name, tables }) =>
    tables.map((table, index) => ({ table, id: `${name}-${index + 1}` })),
  )
  return `${[
    '# Benchmarks',
    conditionsOf(report),
    READING,
    '## Figures',
    ...tables.map(({ table, id }) => tablePart(table, id)),
    '## How it is measured',
    withoutTitle(method),
  ].join('\n\n')}\n`
}

function conditionsOf({
  package: { name, version },
  date,
  node,
  versions,
  machine,
}: BenchmarkReport) {
  const { cpu, cores, memoryGiB, os } = machine
  const programs = Object.entries(versions).map((entry) => entry.join(' '))
  const facts = [
    ['measured', date],
    ['package', `${name} ${version}`],
    ['Node', node],
    ['with', programs.join(', ')],
    [
      'machine',
      [`${cores} cores`, cpu, memoryGiB && `${memoryGiB} GiB`, os].filter(Boolean).join(', '),
    ],
  ]
  return ['| on what | |', '| --- | --- |', ...facts.map((fact) => `| ${fact.join(' | ')} |`)].join(
    '\n',
  )
}

const READING =
  'Processor time of the server for a request, in microseconds: less is better. `ratio` is the time of ' +
  'the other as a multiple of ours, so above 1 ours is cheaper; `heats` are its least and its greatest, ' +
  '`aim` is what was to be reached. No peer checks all that `serviceAuth` checks: ' +
  '[comparison](/docs/comparison.md).'

function tablePart(table: BenchmarkTable, id: string): string {
  const [title = '', ...others] = table.columns
  const heads = ['', ...others]
  const rows = [heads, heads.map((_, index) => (index === 0 ? '---' : '---:')), ...table.rows]
  const lines = rows.map((row) => `| ${row.join(' | ')} |`)
  return [`### ${capital(title)} {#${id}}`, chartOf(table, id), lines.join('\n')]
    .filter((part) => part !== undefined)
    .join('\n\n')
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

/** Of tables that compare processor time of more than two. The first row is ours. */
function chartOf({ columns, rows }: BenchmarkTable, id: string): string | undefined {
  const at = columns.indexOf(MICROSECONDS)
  if (at < 0 || rows.length < LEAST_BARS) return undefined
  const bars = rows.map((row, index) => ({
    label: row[0] ?? '',
    value: Number(row[at]),
    text: `${row[at]} ${MICROSECONDS}`,
    isOurs: index === 0,
  }))
  if (bars.some(({ value }) => !(value > 0))) {
    throw new Error(`«${columns[0]}» has a row without microseconds`)
  }
  const title = `${capital(columns[0] ?? '')}: processor time for a request`
  const description = `Less is better. ${bars.map(({ label, text }) => `${label}: ${text}`).join('; ')}.`
  return barChart({ id: `chart-${id}`, title, description, bars })
}

/** Its links lead from the root of the project, and its sections are parts of one. */
const withoutTitle = (document: string): string =>
  document
    .replace(/^# .*\n+/, '')
    .replaceAll(/^#(?=#+ )/gm, '##')
    .replaceAll('](../', '](/')
    .replaceAll('](results.md)', '](#figures)')
    .trim()
