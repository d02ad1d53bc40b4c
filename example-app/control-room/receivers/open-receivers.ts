import { StartError } from '../../start-error.js'
import type { ReceiverReport, Receivers } from '../ports.js'
import { ActionError } from '../ports.js'
import { RECEIVERS, type ReceiverName } from '../protocol.js'
import { type Book, createBook } from './book.js'
import { type Denials, watchDenials } from './denials.js'
import { openShared, type Shared } from './open-shared.js'
import { createReceiver, type Receiver } from './receiver.js'
import { type SelfSigned, selfSigned } from './self-signed.js'
import { settleWrite } from './settle-write.js'
import { watchStore } from './watch-store.js'
import { type Writes, watchWrites } from './writes.js'

export interface ReceiversOptions {
  /** The address of the core. */
  readonly coreUrl: string
  /** The `iss` that the receivers trust; the key set is below it. */
  readonly issuer: string
  readonly apiKey: string
  /** Absent: this process keeps the records and what is denied. */
  readonly redisUrl?: string | undefined
  /** How long a write is trusted to be alive when its receiver says nothing. Default: 10 s. */
  readonly leaseSeconds?: number
  /** The programs of the processes, compiled. Default: their sources. */
  readonly programs?: Programs
  readonly onReport: (report: ReceiverReport) => void
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
  const { issuer, redisUrl, onChange } = options
  const shared = await openShared(redisUrl)
  const { store, containment } = shared
  const book = createBook()
  const writes = watchWrites({ keeper: store, onChange })
  const denials = watchDenials({ issuer, containment, onChange })
  const storeWatch = watchStore(store, onChange)
  const parts: Parts = { shared, book, writes, denials, certificate: selfSigned('orders') }
  const receivers = RECEIVERS.map((name) => createOne(name, options, parts))
  const each = (work: (receiver: Receiver) => Promise<void>) => Promise.all(receivers.map(work))

  async function close(): Promise<void> {
    writes.close()
    denials.close()
    storeWatch.close()
    await each((receiver) => receiver.kill())
    shared.close()
  }

  try {
    await each((receiver) => receiver.start())
  } catch (error) {
    await close()
    throw error instanceof ActionError ? new StartError(error.message, { cause: error }) : error
  }
  return { ...controlsOf(receivers, parts), ...recordsOf(parts, options.programs?.answer), close }
}

interface Parts {
  readonly shared: Shared
  readonly book: Book
  readonly writes: Writes
  readonly denials: Denials
  /** Of the TLS servers of all receivers. */
  readonly certificate: SelfSigned
}

function createOne(name: ReceiverName, options: ReceiversOptions, parts: Parts): Receiver {
  const { coreUrl, issuer, apiKey, redisUrl, leaseSeconds = LEASE_SECONDS } = options
  const { shared, book, writes, denials, certificate } = parts
  return createReceiver({
    name,
    beginning: {
      coreUrl,
      issuer,
      apiKey,
      leaseSeconds,
      certificate,
      ...(redisUrl !== undefined && { redisUrl }),
    },
    program: options.programs?.receiver,
    handlers: (calls) => ({ ...shared.handlers(calls), ...book.handlers }),
    watchDenied: shared.watchDenied,
    onNews(news) {
      if (news.type === 'in-force') {
        denials.inForce(name, news.at, news.things)
        return
      }
      for (const event of news.report.events) writes.note(event)
      options.onReport({ receiver: name, ...news.report })
    },
    onServing: () => denials.begun(name),
    onGone: () => denials.gone(name),
    onChange: options.onChange,
  })
}

type Controls = 'states' | 'urlOf' | 'tlsOf' | 'holdNextWrite' | 'letGo' | 'kill' | 'start'

function controlsOf(
  receivers: readonly Receiver[],
  { certificate }: Parts,
): Pick<Receivers, Controls> {
  /** @throws ActionError when a visitor has named none of them */
  function of(name: ReceiverName): Receiver {
    const receiver = receivers[RECEIVERS.indexOf(name)]
    if (receiver === undefined) throw new ActionError(`there is no receiver ${name}`)
    return receiver
  }
  return {
    states: () => receivers.map((receiver) => receiver.state()),
    urlOf: (name) => of(name).state().url,
    tlsOf: (name) => ({ url: of(name).tlsUrl(), ca: certificate.cert }),
    holdNextWrite: async (name, isHolding) => of(name).ask('holdNextWrite', [isHolding]),
    letGo: async (name) => of(name).ask('letGo', []),
    kill: async (name) => of(name).kill(),
    start: async (name) => of(name).start(),
  }
}

function recordsOf(
  { shared, book, writes, denials }: Parts,
  program: string | undefined,
): Omit<Receivers, Controls | 'close'> {
  const { name: storeName, store } = shared
  return {
    storeName,
    store,
    orders: book.count,
    writes: writes.list,
    denied: denials.list,
    deny: denials.deny,
    allow: denials.allow,
    async settle(order) {
      const settled = await settleWrite(order, { store, program })
      await writes.read(order.record).catch(() => undefined)
      return settled
    },
  }
}
