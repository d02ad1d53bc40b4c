import { expect, it } from 'vitest'
import { readRecordings } from '../recordings/replay.js'
import { type Conflict, knownFault } from './known-faults.js'

const CONFLICTS: readonly [note: RegExp, conflict: Conflict][] = [
  [/provider/, 'provider'],
  [/passwordless|number/, 'passwordless'],
  [/same id/, 'external_id'],
]

const recorded = await Promise.all(
  (
    [
      ['direct-10.1.8', '10.1'],
      ['direct-11.4.7', '11.4'],
      ['differential-10.1.8', '10.1'],
    ] as const
  ).map(async ([name, version]) =>
    (await readRecordings(name))
      .filter(({ group }) => group === 'conflict' || group === name)
      .filter(({ note }) => !note.includes('e-mail and password'))
      .filter(({ note }) => CONFLICTS.some(([pattern]) => pattern.test(note)))
      .map((line) => ({ name, version, note: line.note, reply: line.reply })),
  ),
)

it.each(recorded.flat())(
  '$name, $note: the text is of the list of errors, or a known fault',
  ({ version, note, reply }) => {
    const { errors } = reply['json'] as { errors: readonly string[] }
    const [conflict] = CONFLICTS.flatMap(([pattern, each]) => (pattern.test(note) ? [each] : []))
    const [text = ''] = errors
    if (/^E\d{3}: /.test(text)) return expect(knownFault(version, 'beside', text)).toBeUndefined()
    expect(knownFault(version, conflict ?? 'beside', text)).toContain(`core ${version}`)
  },
)

it('knows the fault of a version as no fault of another', () => {
  expect(knownFault('10.1', 'passwordless', 'PROCESSING')).toContain('stays PROCESSING')
  expect(knownFault('11.4', 'passwordless', 'PROCESSING')).toBeUndefined()
  expect(knownFault('10.1', 'provider', 'translated')).toBeUndefined()
})
