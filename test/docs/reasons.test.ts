import { readdir, readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import type { Reason } from '../../src/base/decision/reason.js'
import { refusalOf } from '../../src/middleware/refusal-table.js'
import { ROOT, readDocument } from './documents.js'
import { namesIn, tableRows } from './markdown.js'

const documents = await Promise.all(['docs/reasons.md', 'docs/calling.md'].map(readDocument))
const text = documents.join('\n')

/** The names in the first column of the tables under a heading. */
const named = (heading: string): readonly string[] =>
  tableRows(text, heading).flatMap(([names]) => namesIn(names))

const files = await readdir(`${ROOT}src`, { recursive: true })
const modules = files.filter((path) => path.endsWith('.ts'))
const texts = await Promise.all(modules.map((path) => readFile(`${ROOT}src/${path}`, 'utf8')))
const source = texts.join('\n\n').replaceAll(/\/\*.*?\*\//gs, '')

/** The text of a type, as far as the next statement. */
function declarationOf(type: string): string {
  const text = new RegExp(`^(?:export )?type ${type} =(.*?)(?=^\\S)`, 'ms').exec(source)?.[1]
  if (text === undefined) throw new Error(`there is no type ${type} in src`)
  return text
}

const membersOf = (type: string): string[] => textsIn(declarationOf(type), /'(\w+)'/g)

/** The texts that a member of an object type may have. */
const valuesOf = (type: string, member: string): string[] =>
  textsIn(declarationOf(type), new RegExp(`readonly ${member}: ('[^\\n;}]+)`, 'g')).flatMap(
    (union) => textsIn(union, /'(\w+)'/g),
  )

const textsIn = (text: string, pattern: RegExp): string[] =>
  [...text.matchAll(pattern)].map(([, name]) => name ?? '')

const LISTS: Readonly<Record<string, readonly string[]>> = {
  'Error codes': membersOf('ServiceAuthErrorCode'),
  'Refused tokens and callers': membersOf('RefusalReason'),
  Undecided: membersOf('UndecidedReason'),
  'Refused writes': membersOf('IdempotencyRefusal'),
  'Writes that were not decided': [...membersOf('Undone'), 'commit_refused'],
  'Runs of a handler': [
    ...valuesOf('IdempotencyDetails', 'reason').filter(
      (reason) => reason !== 'commit_refused' && reason !== 'outcome_unknown',
    ),
    ...membersOf('RunEnd'),
  ],
  'Fetches of the key set': valuesOf('KeySetChange', 'type'),
  'Why a fetch has failed': membersOf('FetchFailureCode'),
  'Why a key was skipped': membersOf('SkipReason'),
  'The live denylist': valuesOf('DenylistEvent', 'type'),
  'Why a denylist could not be read': membersOf('DenylistFailureCode'),
  'Decisions on late sign-ups': [
    'created',
    'existing',
    ...membersOf('MigrationRefusal'),
    ...membersOf('MigrationUndecided'),
  ],
  'Sweeps of Postgres': valuesOf('PostgresEvent', 'type'),
  'Calls of a store': membersOf('StoreOperation'),
  'Why there is no service token': membersOf('TokenSourceErrorCode'),
  'Why a call has no answer': membersOf('ServiceCallErrorCode'),
}

it.each(Object.entries(LISTS))('«%s» has what the code can say', (heading, names) => {
  expect(names.length).toBeGreaterThan(1)
  expect([...named(heading)].sort()).toEqual([...names].sort())
})

it('has the reasons that are a 403 last', () => {
  const last = named('Refused tokens and callers').slice(-3)
  expect(last).toEqual(['caller_denied', 'caller_not_approved', 'permission_missing'])
})

const checks = tableRows(await readDocument('docs/how-it-decides.md'), 'The checks in their order')

it('has the reasons of the checks in their order, each once, with the status of its response', () => {
  const told = checks.flatMap(([, , reasons, answer = '']) =>
    namesIn(reasons).map((reason) => [reason, Number(answer.slice(0, 3))]),
  )
  const known = ['Refused tokens and callers', 'Undecided', 'Refused writes'].flatMap(named)
  const given = known.map((reason) => [reason, refusalOf(reason as Reason, 'Bearer').status])
  expect(told.sort()).toEqual(given.sort())
})

it('has the checks in the picture, in their order', async () => {
  const picture = await readDocument('docs/how-it-decides.svg')
  const shown = [...picture.matchAll(/<text class="name"[^>]*>([^<]+)</g)].map(([, name]) => name)
  const names = checks.flatMap(([check]) => (check && check !== 'Credential' ? [check] : []))
  expect(shown).toEqual(['A request', ...names, 'Handler'])
})
