import { ActionError } from '../ports.js'
import type { ReceiverName, ReceiverState } from '../protocol.js'
import { explaining } from './explaining.js'
import { createKeySetWatch } from './key-set-watch.js'
import type { Addresses, Beginning, GateState, ReceiverHealth } from './messages.js'
import { beginLife, type LifeOptions, type News, type ReceiverLife } from './receiver-life.js'

export interface ReceiverOptions extends Pick<LifeOptions, 'program' | 'handlers' | 'watchDenied'> {
  readonly name: ReceiverName
  readonly beginning: Omit<Beginning, 'receiver' | 'ports'>
  /** What has no place in its state. */
  onNews(news: Extract<News, { type: 'report' | 'in-force' }>): void
  onServing(): void
  onGone(): void
  onChange(): void
}

/** A receiver, whose processes come and go while its addresses stay. */
export interface Receiver {
  state(): ReceiverState
  /** Its address with TLS. */
  tlsUrl(): string
  /** Resolves when it serves. @throws ActionError (as a rejection) when it cannot */
  start(): Promise<void>
  /** SIGKILL; resolves when the process is gone. */
  kill(): Promise<void>
  /** Calls a function of the process. @throws ActionError (as a rejection) when there is none */
  ask(name: string, args: unknown[]): Promise<void>
}

const NOTHING_HELD: GateState = { isHoldingNextWrite: false, heldWrites: 0 }

export function createReceiver(options: ReceiverOptions): Receiver {
  const { name, onChange } = options
  const keySet = createKeySetWatch()
  let life: ReceiverLife | undefined
  let ending: Promise<void> | undefined
  let isServing = false
  let addresses: Addresses = { url: '', tlsUrl: '' }
  let gate = NOTHING_HELD
  let health: Partial<ReceiverHealth> = {}

  function receive(news: News): void {
    if (news.type === 'gate') gate = news.gate
    if (news.type === 'health') {
      health = news.health
      keySet.enter(news.health.keySet.state)
    }
    if (news.type === 'report') for (const event of news.report.events) keySet.note(event)
    if (news.type === 'report' || news.type === 'in-force') options.onNews(news)
    if (news.type !== 'report') onChange()
  }

  function end(): void {
    life = undefined
    ending = undefined
    isServing = false
    gate = NOTHING_HELD
    health = {}
    keySet.enter('cold')
    options.onGone()
    onChange()
  }

  function begin(): ReceiverLife {
    const { url, tlsUrl } = addresses
    const ports = [portOf(url), portOf(tlsUrl)] as const
    const beginning = { ...options.beginning, receiver: name, ports }
    const begun = beginLife(beginning, {
      ...options,
      receive,
      onGone() {
        if (life === begun) end()
      },
    })
    return begun
  }

  return {
    state: () => ({
      name,
      url: addresses.url,
      ...(life?.pid !== undefined && { pid: life.pid }),
      phase: life === undefined ? 'killed' : isServing ? 'ready' : 'starting',
      ...gate,
      ...health,
      ...keySet.state(),
    }),
    tlsUrl: () => addresses.tlsUrl,
    async start() {
      if (ending !== undefined) await ending
      life ??= begin()
      onChange()
      const begun = life
      const served = await begun.serving
      if (life !== begun || isServing) return
      addresses = served
      isServing = true
      options.onServing()
      onChange()
    },
    async kill() {
      ending ??= life?.kill()
      await ending
    },
    async ask(question, args) {
      if (life === undefined || !isServing) throw new ActionError(`${name} does not run`)
      const { calls } = life
      await explaining(() => calls.ask(question, args))
    },
  }
}

const portOf = (url: string): number => (url === '' ? 0 : Number(new URL(url).port))
