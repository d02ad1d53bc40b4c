import type { IdempotencyEvent, RecordKeeper, RecordView } from 'express-service-auth'
import type { NewEvent } from '../ports.js'
import type { WriteState } from '../protocol.js'

export interface Writes {
  note(event: NewEvent): void
  list(): readonly WriteState[]
  /** Reads a record again at once. */
  read(record: string): Promise<void>
  close(): void
}

export interface WritesOptions {
  readonly keeper: RecordKeeper
  onChange(): void
}

interface Write extends WriteState {
  /** Its run has begun, and its end was not reported. */
  readonly hasBegun: boolean
  /** It was reported, or time has passed, since it was read. */
  readonly isDue: boolean
}

const MAX_WRITES = 20
const READ_EVERY_MS = 100
/** What changes by itself, with the time, is read this often. */
const READ_OPEN_AGAIN_MS = 1000
/** What is over may expire, or go with its store. */
const READ_OVER_AGAIN_MS = 2000

/** The last writes that were reported, each with its record as the store has it. */
export function watchWrites({ keeper, onChange }: WritesOptions): Writes {
  const writes = new Map<string, Write>()
  let isReading = false

  async function read(record: string): Promise<void> {
    const readAt = Date.now()
    const view = await keeper.inspect(record)
    const write = writes.get(record)
    if (write === undefined || write.readAt > readAt) return
    const { view: _, ...rest } = write
    const isDue = write.seenAt > readAt
    writes.set(record, { ...rest, ...(view && { view }), readAt, isDue })
    onChange()
  }

  async function readDue(): Promise<void> {
    if (isReading) return
    isReading = true
    const now = Date.now()
    const due = [...writes.values()].filter((write) => write.isDue || isToBeReadAgain(write, now))
    // Where the store is unreachable, what was read last stays, with its time.
    await Promise.allSettled(due.map(({ record }) => read(record)))
    isReading = false
  }

  const timer = setInterval(() => void readDue(), READ_EVERY_MS)
  timer.unref()

  return {
    note({ channel, event, receiver, at }) {
      if (channel !== 'idempotency' || receiver === 'story') return
      const { record, caller, reason } = event as IdempotencyEvent
      if (record === undefined) return
      const known = writes.get(record)
      const { readAt = 0, view } = known ?? {}
      writes.delete(record)
      writes.set(record, {
        record,
        caller,
        receiver,
        seenAt: at,
        ...(view && { view }),
        readAt,
        hasBegun: reason === 'reserved',
        isDue: true,
      })
      if (writes.size > MAX_WRITES) writes.delete(leastWanted(writes))
    },
    list: () => [...writes.values()].map(({ isDue: _, hasBegun: __, ...write }) => write).reverse(),
    read,
    close: () => clearInterval(timer),
  }
}

const OPEN: readonly RecordView['state'][] = ['running', 'abandoned']

const isOpen = ({ view, hasBegun }: Write): boolean => (view ? OPEN.includes(view.state) : hasBegun)

const isToBeReadAgain = (write: Write, now: number): boolean =>
  now - write.readAt >= (isOpen(write) ? READ_OPEN_AGAIN_MS : READ_OVER_AGAIN_MS)

/** The oldest that is over; what waits for an operator must not be pushed away by what is done. */
function leastWanted(writes: ReadonlyMap<string, Write>): string {
  const all = [...writes.values()]
  return (all.find((write) => !isOpen(write)) ?? all[0])?.record ?? ''
}
