import { StartError } from '../../start-error.js'
import type { Receivers, Told } from '../ports.js'
import { ActionError } from '../ports.js'
import { RECEIVERS, type ReceiverName } from '../protocol.js'
import { createBook } from './book.js'
import { watchDenials } from './denials.js'
import { openShared } from './open-shared.js'
import { createReceiver, type Receiver } from './receiver.js'
import type { News } from './receiver-life.js'
import { settleWrite } from './settle-write.js'
import { watchStore } from './watch-store.js'
import { watchWrites } from './writes.js'

export interface ReceiversOptions {
  /** The address of the core: what the receivers take for the issuer. */
  readonly coreUrl: string
  readonly apiKey: string
  /** Absent: this process keeps the records and what is denied. */
  readonly redisUrl?: string | undefined
  /** How long a write is trusted to be alive when its receiver says nothing. Default: 10 s. */
  readonly leaseSeconds?: number
  /** The programs of the processes, compiled. Default: their sources. */
  readonly programs?: Programs
  readonly onTold: (told: Told) => void
  /** Something of what can be asked for has changed. */
  readonly onChange: () => void
}

export interface Programs {
  readonly receiver: string
  readonly answer: string
}

/** Long enough to see it run out, short enough to wait for it. */
const LEASE_SECONDS = 10

/**
 * Starts two receivers on one store, each a process of its own, on free ports.
 * @throws {StartError} when the store or a receiver cannot serve
 */
export async function openReceivers(options: ReceiversOptions): Promise<Receivers> {
  const { coreUrl, apiKey, redisUrl, leaseSeconds = LEASE_SECONDS, programs, onChange } = options
  const shared = await openShared(redisUrl)
  const { store, containment } = shared
  const book = createBook()
  const writes = watchWrites({ keeper: store, onChange })
  const denials = watchDenials({ issuer: coreUrl, containment, onChange })
  const storeWatch = watchStore(store, onChange)

  function take(name: ReceiverName, news: Extract<News, { type: 'told' | 'in-force' }>): void {
    if (news.type === 'in-force') {
      denials.inForce(name, news.at, news.things)
      return
    }
    for (const event of news.told.events) writes.note(event)
    options.onTold({ receiver: name, ...news.told })
  }

  const receivers = new Map<string, Receiver>(
    RECEIVERS.map((name) => {
      const receiver = createReceiver({
        name,
        beginning: { coreUrl, apiKey, leaseSeconds, ...(redisUrl !== undefined && { redisUrl }) },
        program: programs?.receiver,
        handlers: (calls) => ({ ...shared.handlers(calls), ...book.handlers }),
        tellDenied: shared.tellDenied,
        onNews: (news) => take(name, news),
        onServing: () => denials.begun(name),
        onGone: () => denials.gone(name),
        onChange,
      })
      return [name, receiver]
    }),
  )

  /** What a visitor names is not checked before. */
  function of(name: ReceiverName): Receiver {
    const receiver = receivers.get(name)
    if (receiver === undefined) throw new ActionError(`there is no receiver ${name}`)
    return receiver
  }

  async function close(): Promise<void> {
    writes.close()
    denials.close()
    storeWatch.close()
    await Promise.all([...receivers.values()].map((receiver) => receiver.kill()))
    shared.close()
  }

  try {
    await Promise.all([...receivers.values()].map((receiver) => receiver.start()))
  } catch (error) {
    await close()
    throw error instanceof ActionError ? new StartError(error.message, { cause: error }) : error
  }
  return {
    states: () => [...receivers.values()].map((receiver) => receiver.state()),
    urlOf: (name) => of(name).state().url,
    orders: book.count,
    storeName: shared.name,
    store,
    writes: writes.list,
    denied: denials.list,
    holdNextWrite: async (name, isHolding) => of(name).ask('holdNextWrite', [isHolding]),
    letGo: async (name) => of(name).ask('letGo', []),
    kill: async (name) => of(name).kill(),
    start: async (name) => of(name).start(),
    async settle(order) {
      const isSettled = await settleWrite(order, { store, program: programs?.answer })
      await writes.read(order.record).catch(() => undefined)
      return { isSettled }
    },
    deny: denials.deny,
    allow: denials.allow,
    close,
  }
}
