import { expect, it } from 'vitest'
import { announceDecision, type DecisionEvent } from '../../../src/base/decision/decision-event.js'
import { collectEvents } from '../../support/observe/channel-events.js'
import { collectUnhandledErrors } from '../../support/observe/unhandled-errors.js'
import { leaveChannels } from '../../support/secret-search/index.js'
import { throwing } from '../../support/throwing.js'

// Here it matters that nobody else listens.
leaveChannels()

const EVENT: DecisionEvent = { outcome: 'accepted', by: 'serviceAuth' }

it('each observer is told, whatever the others do', async () => {
  const unhandled = collectUnhandledErrors()
  const told: DecisionEvent[] = []
  const published = collectEvents('decision')
  const observers = [
    throwing(new Error('thrown')),
    async () => Promise.reject(new Error('rejected')),
    () => null,
    (event: DecisionEvent) => told.push(event),
  ]
  announceDecision(observers, EVENT)
  expect(told).toEqual([EVENT])
  // What is searched on the channel is what observers get.
  expect(published[0]).toBe(told[0])
  expect(published).toEqual([EVENT])
  // Unhandled rejections are reported after the microtasks of their turn.
  await new Promise(setImmediate)
  expect(unhandled).toEqual([])
})
