import { describe, expect, it } from 'vitest'
import type { Reason } from '../../src/base/decision/reason.js'
import { decisionResult } from '../../src/middleware/refusal-table.js'
import { readDocument } from './blocks.js'
import { tableRows } from './markdown.js'

const [text, runBook] = await Promise.all(
  ['docs/how-it-decides.md', 'docs/reasons.md'].map(readDocument),
)

const namesIn = (cell = ''): string[] =>
  [...cell.matchAll(/`(\w+)`/g)].map(([, name]) => name ?? '')

const namesInPicture = (picture: string): string[] =>
  [...picture.matchAll(/<text class="name"[^>]*>([^<]+)</g)].map(([, name]) => name ?? '')

describe('the order of the checks', () => {
  const rows = tableRows(text ?? '', 'The checks in their order').map(
    ([check = '', , reasons, answer = '']) => ({
      check,
      reasons: namesIn(reasons),
      status: answer.slice(0, 3),
    }),
  )

  it('has every reason once', () => {
    const known = ['Refused tokens and callers', 'Undecided', 'Refused writes'].flatMap((heading) =>
      tableRows(runBook ?? '', heading).flatMap(([reason]) => namesIn(reason)),
    )
    expect(rows.flatMap(({ reasons }) => reasons).sort()).toEqual(known.sort())
  })

  it('tells the status of each', () => {
    for (const { reasons, status } of rows) {
      for (const reason of reasons) {
        expect(`${reason} ${status}`).toBe(`${reason} ${verdictStatus(reason)}`)
      }
    }
  })

  it('names its answers in the picture', async () => {
    const picture = await readDocument('docs/how-it-decides.svg')
    const words = picture.replaceAll(/<style>.*?<\/style>|<[^>]+>/gs, ' ')
    const steps = rows.filter(({ check }) => check !== '' && check !== 'Credential')
    expect(namesInPicture(picture)).toEqual([
      'A request',
      ...steps.map(({ check }) => check),
      'Handler',
    ])
    const shown = new Set([...words.matchAll(/\b[45]\d\d\b/g)].map(([status]) => status))
    expect(shown).toEqual(new Set(rows.map(({ status }) => status)))
  })
})

const verdictStatus = (reason: string): unknown => {
  const verdict = decisionResult(reason as Reason)
  return 'status' in verdict ? verdict.status : undefined
}
