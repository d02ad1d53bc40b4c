/** What is noted of requests, or of their responses. */
export interface Notes<Owner extends object, Note> {
  get(owner: Owner): Note | undefined
  /** The same for what stands for its owner: a proxy, or an object that inherits from it. */
  find(seen: object): Note | undefined
  set(owner: Owner, note: Note): void
}

/**
 * A note is a private field on the list `rawHeaders` of the request: nobody else can read or write
 * it, and it goes with the list. On the request or the response itself it would give it a shape of
 * its own, for which every access pays: V8 does so with each property that is added behind Express's
 * change of the prototype. In a `WeakMap` it would be work for the garbage collector.
 */
export function createNotes<Owner extends object, Note>(
  requestOf: (owner: object) => unknown,
): Notes<Owner, Note> {
  class Noted extends Given {
    #slot: Slot<Owner, Note> | undefined = undefined

    static slotOf(list: object): Slot<Owner, Note> | undefined {
      return #slot in list ? (list as Noted).#slot : undefined
    }

    static fill(list: object, slot: Slot<Owner, Note>): void {
      new Noted(list).#slot = slot
    }
  }

  /** Of those whose list belongs to another owner already, as for the parts of a batch. */
  const further = new WeakMap<object, { readonly list: object; readonly note: Note }>()

  function furtherNote(owner: object, list: object): Note | undefined {
    const own = further.get(owner)
    return own?.list === list ? own.note : undefined
  }

  return {
    get(owner) {
      const list = listOf(owner, requestOf(owner))
      const slot = Noted.slotOf(list)
      if (slot === undefined) return undefined
      return slot.owner === owner ? slot.note : furtherNote(owner, list)
    },
    find(seen) {
      const list = listOf(seen, requestOf(seen))
      const slot = Noted.slotOf(list)
      if (slot === undefined) return undefined
      return standsFor(seen, slot.owner) ? slot.note : furtherNote(seen, list)
    },
    set(owner, note) {
      const list = listOf(owner, requestOf(owner))
      const slot = Noted.slotOf(list)
      if (slot === undefined) Noted.fill(list, { owner, note })
      else if (slot.owner === owner) slot.note = note
      else further.set(owner, { list, note })
    },
  }
}

interface Slot<Owner, Note> {
  readonly owner: Owner
  note: Note
}

class Given {
  constructor(list: object) {
    // biome-ignore lint/correctness/noConstructorReturn: so that the private field is put on it.
    return list
  }
}

/**
 * By `Reflect`, which is the cheaper way to a property of an object of a shape never seen before.
 * Without such a list, as in some test harnesses, it is the owner itself.
 */
function listOf(owner: object, request: unknown): object {
  const list = isObject(request) ? Reflect.get(request, 'rawHeaders') : undefined
  return isObject(list) ? list : owner
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null

/** A wrapper has the listeners of what it stands for, and nobody else has. */
function standsFor(seen: object, owner: object): boolean {
  if (seen === owner) return true
  const listeners: unknown = Reflect.get(seen, '_events')
  return isObject(listeners) && listeners === Reflect.get(owner, '_events')
}
