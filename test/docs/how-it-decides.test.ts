import { expect, it } from 'vitest'
import type { Reason } from '../../src/base/decision/reason.js'
import { refusalOf } from '../../src/middleware/refusal-table.js'
import { readDocument } from './documents.js'
import { namesIn, tableRows } from './markdown.js'

const rows = tableRows(await readDocument('docs/how-it-decides.md'), 'The checks in their order')

it('has every reason once, with the status of its response', async () => {
  const reasons = await readDocument('docs/reasons.md')
  const told = rows.flatMap(([, , names, answer = '']) =>
    namesIn(names).map((reason) => `${reason} ${answer.slice(0, 3)}`),
  )
  const known = ['Refused tokens and callers', 'Undecided', 'Refused writes'].flatMap((heading) =>
    tableRows(reasons, heading).flatMap(([names]) => namesIn(names)),
  )
  const given = known.map((reason) => `${reason} ${refusalOf(reason as Reason, 'Bearer').status}`)
  expect(told.sort()).toEqual(given.sort())
})

it('has its checks in the picture, in their order', async () => {
  const picture = await readDocument('docs/how-it-decides.svg')
  const shown = [...picture.matchAll(/<text class="name"[^>]*>([^<]+)</g)].map(([, name]) => name)
  const checks = rows.flatMap(([check]) => (check && check !== 'Credential' ? [check] : []))
  expect(shown).toEqual(['A request', ...checks, 'Handler'])
})
