import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  advance,
  isBuffering,
  isEndedUnsent,
  isWritable,
  type Phase,
  type PhaseEvent,
} from '../../../src/idempotency/buffered-response/phase.js'

const EVENTS: PhaseEvent[] = [
  'unbufferable',
  'recorded',
  'finished',
  'interrupted',
  'disconnected',
  'destroyed',
  'sent',
  'discarded',
]

const phaseAfter = (...events: PhaseEvent[]): Phase => events.reduce<Phase>(advance, 'buffering')

const LAST: Phase[] = ['sent', 'aborted', 'discarded']

const runs = fc.array(fc.constantFrom(...EVENTS), { maxLength: 12 })

describe('The phase of a response', () => {
  it.each<[Phase, PhaseEvent[]]>([
    ['ended', ['finished']],
    ['buffering', ['disconnected']],
    ['ended', ['disconnected', 'finished']],
    ['orphaned', ['interrupted']],
    ['ended', ['interrupted', 'finished']],
    ['aborted', ['destroyed']],
    ['switching', ['unbufferable']],
    ['switching', ['interrupted', 'unbufferable']],
    ['switching', ['unbufferable', 'interrupted']],
    ['switching_ended', ['unbufferable', 'finished']],
    ['switching_aborted', ['unbufferable', 'disconnected']],
    ['switching_aborted', ['unbufferable', 'destroyed', 'finished']],
    ['aborted', ['unbufferable', 'destroyed', 'recorded']],
    ['streaming_ended', ['unbufferable', 'finished', 'recorded']],
    ['streaming', ['unbufferable', 'recorded']],
    ['aborted', ['unbufferable', 'recorded', 'disconnected']],
    ['aborted', ['unbufferable', 'recorded', 'destroyed']],
    ['streaming_ended', ['unbufferable', 'recorded', 'finished', 'disconnected']],
    ['sent', ['finished', 'sent']],
    ['sent', ['unbufferable', 'finished', 'recorded', 'sent']],
    ['buffering', ['sent']],
    ['discarded', ['discarded']],
    ['discarded', ['interrupted', 'discarded']],
    ['discarded', ['finished', 'discarded']],
    ['discarded', ['unbufferable', 'discarded']],
    ['discarded', ['unbufferable', 'finished', 'discarded']],
    ['discarded', ['unbufferable', 'disconnected', 'discarded']],
    ['discarded', ['discarded', 'unbufferable', 'recorded', 'finished', 'sent', 'destroyed']],
    ['aborted', ['destroyed', 'discarded']],
    ['streaming', ['unbufferable', 'recorded', 'discarded']],
    ['streaming_ended', ['unbufferable', 'recorded', 'finished', 'discarded']],
    ['sent', ['finished', 'sent', 'discarded']],
  ])('is %s after %j', (phase, events) => {
    expect(phaseAfter(...events)).toBe(phase)
  })

  it.each<[Phase, readonly string[]]>([
    ['buffering', ['buffering', 'writable']],
    ['orphaned', ['buffering', 'writable']],
    ['switching', ['writable']],
    ['streaming', ['writable']],
    ['ended', ['ended unsent']],
    ['switching_ended', ['ended unsent']],
    ['streaming_ended', ['ended unsent']],
    ['switching_aborted', []],
    ['sent', []],
    ['aborted', []],
    ['discarded', []],
  ])('%s is %j', (phase, properties) => {
    const found = [
      isBuffering(phase) && 'buffering',
      isWritable(phase) && 'writable',
      isEndedUnsent(phase) && 'ended unsent',
    ]
    expect(found.filter(Boolean)).toEqual(properties)
  })

  it('is never held back again once a byte may have left, nor open again once it was ended', () => {
    fc.assert(
      fc.property(runs, fc.constantFrom(...EVENTS), (events, next) => {
        const before = phaseAfter(...events)
        const now = advance(before, next)
        if (!isBuffering(before)) expect(isBuffering(now)).toBe(false)
        if (!isWritable(before)) expect(isWritable(now)).toBe(false)
        if (before === 'ended') expect(['ended', 'sent', 'discarded']).toContain(now)
        if (before === 'streaming_ended') expect(['streaming_ended', 'sent']).toContain(now)
        if (LAST.includes(before)) expect(now).toBe(before)
      }),
    )
  })

  it('is never discarded once a byte may have left', () => {
    fc.assert(
      fc.property(runs, (events) => {
        const before = phaseAfter(...events)
        const isSent = ['streaming', 'streaming_ended', 'sent', 'aborted'].includes(before)
        expect(advance(before, 'discarded') === 'discarded').toBe(!isSent)
      }),
    )
  })

  it('flows only after the record says so', () => {
    fc.assert(
      fc.property(runs, (events) => {
        const isRecorded = events.indexOf('recorded', events.indexOf('unbufferable')) !== -1
        if (phaseAfter(...events) === 'streaming') expect(isRecorded).toBe(true)
      }),
    )
  })
})
