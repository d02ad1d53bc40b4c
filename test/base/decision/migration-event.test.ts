import { describe, expect, it, vi } from 'vitest'
import {
  announceMigration,
  isMigrationObserved,
  type MigrationDecision,
} from '../../../src/base/decision/migration-event.js'
import { collectEvents } from '../../support/observe/channel-events.js'
import { leaveChannels } from '../../support/secret-search/index.js'
import { throwing } from '../../support/throwing.js'

// Here it matters that nobody else listens.
leaveChannels()

const DECISION: MigrationDecision = {
  by: 'migrationEndpoint',
  outcome: 'undecided',
  reason: 'core_unavailable',
  status: 503,
}

describe('a decision of the migration endpoint', () => {
  it('is not computed where nobody observes', () => {
    const make = vi.fn(() => DECISION)
    announceMigration(undefined, make)
    expect(make).not.toHaveBeenCalled()
  })

  it('is passed to the observer, frozen', () => {
    const observe = vi.fn()
    expect(isMigrationObserved(observe)).toBe(true)
    announceMigration(observe, () => ({ ...DECISION }))
    expect(observe.mock.calls).toEqual([[DECISION]])
    expect(Object.isFrozen(observe.mock.calls[0]?.[0])).toBe(true)
  })

  it('is published, with an observer or without', () => {
    const published = collectEvents('migration')
    announceMigration(throwing(new Error('of the observer')), () => DECISION)
    announceMigration(undefined, () => DECISION)
    expect(published).toEqual([DECISION, DECISION])
  })

  it('is dropped where the request of the app cannot be read', () => {
    const observe = vi.fn()
    const published = collectEvents('migration')
    announceMigration(observe, throwing(new Error('of the app')))
    expect(observe).not.toHaveBeenCalled()
    expect(published).toEqual([])
  })
})
