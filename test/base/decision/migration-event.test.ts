import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import {
  announceMigration,
  isMigrationObserved,
  type MigrationDecision,
} from '../../../src/base/decision/migration-event.js'
import { leaveChannels } from '../../support/secret-search/index.js'

// Here it matters that nobody else listens.
leaveChannels()

function collect(channel: string): unknown[] {
  const events: unknown[] = []
  const listen = (event: unknown): void => void events.push(event)
  subscribe(`express-service-auth:${channel}`, listen)
  onTestFinished(() => void unsubscribe(`express-service-auth:${channel}`, listen))
  return events
}

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
    const published = collect('migration')
    announceMigration(
      () => {
        throw new Error('of the observer')
      },
      () => DECISION,
    )
    announceMigration(undefined, () => DECISION)
    expect(published).toEqual([DECISION, DECISION])
  })

  it('is dropped where the request of the app cannot be read', () => {
    const observe = vi.fn()
    const published = collect('migration')
    announceMigration(observe, () => {
      throw new Error('of the app')
    })
    expect(observe).not.toHaveBeenCalled()
    expect(published).toEqual([])
  })
})
