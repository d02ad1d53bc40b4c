import { EventEmitter } from 'node:events'
import { describe, expect, test } from 'vitest'
import { createNotes } from '../src/notes.js'

/** With listeners, as requests and responses have them. */
interface Owner extends EventEmitter {
  rawHeaders?: unknown
}

const newOwner = (rawHeaders: unknown = []): Owner =>
  Object.assign(new EventEmitter(), { rawHeaders })

describe('notes', () => {
  test('are found by their owner only, and can be replaced', () => {
    const notes = createNotes<Owner, string>((owner) => owner)
    const owner = newOwner()
    expect(notes.get(owner)).toBeUndefined()
    notes.set(owner, 'a')
    expect(notes.get(owner)).toBe('a')
    notes.set(owner, 'b')
    expect(notes.get(owner)).toBe('b')
    expect(notes.get(newOwner())).toBeUndefined()
  })

  test('of several kinds do not meet', () => {
    const [one, other] = [0, 1].map(() => createNotes<Owner, string>((owner) => owner))
    const owner = newOwner()
    one?.set(owner, 'a')
    expect(other?.get(owner)).toBeUndefined()
    other?.set(owner, 'b')
    expect([one?.get(owner), other?.get(owner)]).toEqual(['a', 'b'])
  })

  test('leave nothing to be seen on owner or list', () => {
    const notes = createNotes<Owner, string>((owner) => owner)
    const owner = Object.freeze(newOwner(Object.freeze(['a'])))
    const keys = Reflect.ownKeys(owner)
    notes.set(owner, 'a')
    expect(notes.get(owner)).toBe('a')
    expect(Reflect.ownKeys(owner)).toEqual(keys)
    expect(Reflect.ownKeys(owner.rawHeaders as object)).toEqual(['0', 'length'])
  })

  test('are kept apart where owners share a list', () => {
    const notes = createNotes<Owner, string>((owner) => owner)
    const owners = [newOwner(), newOwner(), newOwner()]
    for (const owner of owners) owner.rawHeaders = owners[0]?.rawHeaders
    owners.forEach((owner, index) => {
      notes.set(owner, String(index))
    })
    expect(owners.map((owner) => notes.get(owner))).toEqual(['0', '1', '2'])
    expect(notes.get(newOwner(owners[0]?.rawHeaders))).toBeUndefined()
    expect(owners.map((owner) => notes.find(owner))).toEqual(['0', '1', '2'])
  })

  test('are lost with their list, also where another owner has one for the new list', () => {
    const notes = createNotes<Owner, string>((owner) => owner)
    const [first, part, third] = [newOwner(), newOwner(), newOwner()]
    notes.set(first, 'first')
    notes.set(third, 'third')
    part.rawHeaders = first.rawHeaders
    notes.set(part, 'part')
    part.rawHeaders = third.rawHeaders
    first.rawHeaders = third.rawHeaders
    expect([first, part, third].map((owner) => notes.get(owner))).toEqual([
      undefined,
      undefined,
      'third',
    ])
  })

  test('are found, but not had, by what stands for their owner', () => {
    const notes = createNotes<Owner, string>((owner) => owner)
    const owner = newOwner()
    notes.set(owner, 'a')
    const wrappers: Owner[] = [new Proxy(owner, {}), Object.create(owner)]
    for (const wrapper of wrappers) {
      expect(notes.find(wrapper)).toBe('a')
      expect(notes.get(wrapper)).toBeUndefined()
    }
    for (const wrapper of wrappers) notes.set(wrapper, 'b')
    for (const wrapper of wrappers) expect(notes.get(wrapper)).toBe('b')
    expect(notes.get(owner)).toBe('a')
    expect(notes.find(newOwner(owner.rawHeaders))).toBeUndefined()
    expect(notes.find({ rawHeaders: owner.rawHeaders })).toBeUndefined()
  })

  test('are found by a proxy of their owner, not by one of another with the same list', () => {
    const notes = createNotes<Owner, string>((owner) => owner)
    const owner = newOwner()
    const part = newOwner(owner.rawHeaders)
    notes.set(owner, 'a')
    expect(notes.find(new Proxy(part, {}))).toBeUndefined()
    notes.set(part, 'b')
    expect(notes.find(new Proxy(part, {}))).toBeUndefined()
    expect(notes.find(new Proxy(owner, {}))).toBe('a')
    expect([notes.find(owner), notes.find(part)]).toEqual(['a', 'b'])
  })

  test('are kept without a list, too', () => {
    for (const list of [undefined, null, 'text']) {
      const notes = createNotes<Owner, string>(() => undefined)
      const owner = newOwner(list)
      expect(notes.find(owner)).toBeUndefined()
      notes.set(owner, 'a')
      expect(notes.get(owner)).toBe('a')
      expect(notes.find(newOwner(list))).toBeUndefined()
    }
  })

  test('of a response are found by its request', () => {
    const notes = createNotes<EventEmitter, string>((answer) => Reflect.get(answer, 'req'))
    const req = newOwner()
    const answer = Object.assign(new EventEmitter(), { req })
    const another = Object.assign(new EventEmitter(), { req })
    notes.set(answer, 'a')
    expect(notes.find(another)).toBeUndefined()
    notes.set(another, 'b')
    expect([notes.find(answer), notes.find(another)]).toEqual(['a', 'b'])
    expect(notes.find(new Proxy(answer, {}))).toBe('a')
  })
})
