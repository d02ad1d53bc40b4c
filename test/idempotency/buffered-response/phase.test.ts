import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  advance,
  isHeld,
  isOpen,
  type Phase,
  type PhaseEvent,
} from '../../../src/idempotency/buffered-response/phase.js'

const EVENTS: PhaseEvent[] = [
  'outgrown',
  'recorded',
  'finished',
  'interrupted',
  'disconnected',
  'destroyed',
  'delivered',
  'discarded',
]

const phaseAfter = (...events: PhaseEvent[]): Phase => events.reduce<Phase>(advance, 'held')

const LAST: Phase[] = ['delivered', 'over', 'discarded']

const runs = fc.array(fc.constantFrom(...EVENTS), { maxLength: 12 })

describe('The phase of a response', () => {
  it.each<[Phase, PhaseEvent[]]>([
    ['ended', ['finished']],
    ['held', ['disconnected']],
    ['ended', ['disconnected', 'finished']],
    ['dropped', ['interrupted']],
    ['ended', ['interrupted', 'finished']],
    ['over', ['destroyed']],
    ['opening', ['outgrown']],
    ['opening', ['interrupted', 'outgrown']],
    ['opening', ['outgrown', 'interrupted']],
    ['closing', ['outgrown', 'finished']],
    ['lost', ['outgrown', 'disconnected']],
    ['lost', ['outgrown', 'destroyed', 'finished']],
    ['over', ['outgrown', 'destroyed', 'recorded']],
    ['ending', ['outgrown', 'finished', 'recorded']],
    ['flowing', ['outgrown', 'recorded']],
    ['over', ['outgrown', 'recorded', 'disconnected']],
    ['over', ['outgrown', 'recorded', 'destroyed']],
    ['ending', ['outgrown', 'recorded', 'finished', 'disconnected']],
    ['delivered', ['finished', 'delivered']],
    ['held', ['delivered']],
    ['discarded', ['discarded']],
    ['discarded', ['interrupted', 'discarded']],
    ['discarded', ['finished', 'discarded']],
    ['discarded', ['outgrown', 'discarded']],
    ['discarded', ['outgrown', 'finished', 'discarded']],
    ['discarded', ['outgrown', 'disconnected', 'discarded']],
    ['discarded', ['discarded', 'outgrown', 'recorded', 'finished', 'delivered', 'destroyed']],
    ['over', ['destroyed', 'discarded']],
    ['flowing', ['outgrown', 'recorded', 'discarded']],
    ['ending', ['outgrown', 'recorded', 'finished', 'discarded']],
    ['delivered', ['finished', 'delivered', 'discarded']],
  ])('is %s after %j', (phase, events) => {
    expect(phaseAfter(...events)).toBe(phase)
  })

  it('is never held back again once a byte may have left, nor open again once it was ended', () => {
    fc.assert(
      fc.property(runs, fc.constantFrom(...EVENTS), (events, next) => {
        const before = phaseAfter(...events)
        const now = advance(before, next)
        if (!isHeld(before)) expect(isHeld(now)).toBe(false)
        if (!isOpen(before)) expect(isOpen(now)).toBe(false)
        if (before === 'ended') expect(['ended', 'delivered', 'discarded']).toContain(now)
        if (before === 'ending') expect(['ending', 'delivered']).toContain(now)
        if (LAST.includes(before)) expect(now).toBe(before)
      }),
    )
  })

  it('is never discarded once a byte may have left', () => {
    fc.assert(
      fc.property(runs, (events) => {
        const before = phaseAfter(...events)
        const isSent = ['flowing', 'ending', 'delivered', 'over'].includes(before)
        expect(advance(before, 'discarded') === 'discarded').toBe(!isSent)
      }),
    )
  })

  it('flows only after the record says so', () => {
    fc.assert(
      fc.property(runs, (events) => {
        const isRecorded = events.indexOf('recorded', events.indexOf('outgrown')) !== -1
        if (phaseAfter(...events) === 'flowing') expect(isRecorded).toBe(true)
      }),
    )
  })
})
