import { expect, it } from 'vitest'
import type { EntryOf } from '../../../src/migration/run/state/journal-entry.js'
import { replayJournal } from '../../../src/migration/run/state/replay-journal.js'
import { decideDeletion } from '../../../src/migration/run/steps/calls-and-lost-replies.js'
import { memoryJournal } from './support/memory-journal.js'

const identities = 150_000
const source = { name: 'users', file: false, digest: '' }
const BEGUN: EntryOf<'begun'> = { type: 'begun', at: 0, identities, source }

it('takes the rows of a large run that has stalled', async () => {
  const rows = Array.from({ length: identities }, (_, record): EntryOf<'row'> => {
    const about = { row: `row-${record}`, record, line: record + 1, externalUserId: `${record}` }
    return { type: 'row', ...about, as: 'stalled', status: 'NEW' }
  })
  const journaled = await replayJournal({ ...memoryJournal(), append: async () => {} })
  await journaled.write(BEGUN)
  await journaled.write(rows)
  expect(journaled.state.stalledRows.size).toBe(identities)
  await decideDeletion({ journaled }, rows)
  expect(journaled.state.toResolve.size).toBe(identities)
})

it('a journal of something else is refused', async () => {
  const begun = JSON.stringify(BEGUN)
  await expect(replayJournal(memoryJournal([begun, 'one line']))).rejects.toMatchObject({
    code: 'bad_journal',
    line: 2,
  })
})
