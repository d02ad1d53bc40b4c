import { expect, it } from 'vitest'
import { begunEntry, type EntryOf } from '../../../src/migration/run/state/journal-entry.js'
import { replayJournal } from '../../../src/migration/run/state/replay-journal.js'
import { decideDeletion } from '../../../src/migration/run/steps/calls-and-lost-replies.js'
import { memoryJournal } from './support/memory-journal.js'

const begun = { at: 0, source: { name: 'users', file: false, digest: '' } }

it('takes the rows of a large run that has stalled', async () => {
  const identities = 150_000
  const rows = Array.from({ length: identities }, (_, record): EntryOf<'row'> => {
    const about = { row: `row-${record}`, record, line: record + 1, externalUserId: `${record}` }
    return { type: 'row', ...about, as: 'stalled', status: 'NEW' }
  })
  const journaled = await replayJournal({ ...memoryJournal(), append: async () => {} })
  await journaled.write(begunEntry({ ...begun, identities }))
  await journaled.write(rows)
  expect(journaled.state.stalledRows.size).toBe(identities)
  await decideDeletion({ journaled }, rows)
  expect(journaled.state.toResolve.size).toBe(identities)
})

it.each([
  [1, 'the journal is of an older version of this package: finish the migration with that version'],
  [3, 'the journal is of a newer version of this package'],
])('of format %i is refused, with the reason', async (format, message) => {
  const line = JSON.stringify({ ...begunEntry({ ...begun, identities: 1 }), format })
  await expect(replayJournal(memoryJournal([line]))).rejects.toMatchObject({
    code: 'bad_journal',
    message: expect.stringContaining(message),
  })
})
