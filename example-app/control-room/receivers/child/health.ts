import { subscribe } from 'node:diagnostics_channel'
import type { DeniedLists, Health, StoreHealth } from 'express-service-auth'
import { type FromReceiver, type ReceiverHealth, thingName } from '../messages.js'

export interface HealthOptions {
  read(): Health & { readonly store: StoreHealth }
  /** What is denied of the room's issuer. */
  lists(): DeniedLists | undefined
  send(message: FromReceiver): void
}

const LOOK_EVERY_MS = 250
/** How often an age is reported if nothing else changes. */
const REPORT_AT_LEAST_EVERY_MS = 1000

/** Reports the health of the receiver, at most four times a second, and what it denies, immediately. */
export function watchHealth({ read, lists, send }: HealthOptions): void {
  let sent = ''
  let sentAt = Number.NEGATIVE_INFINITY
  let inForce: DeniedLists | undefined

  function lookAtHealth(): void {
    const { keySet, denylists = [], tokenCache, store } = read()
    const [denylist] = denylists
    if (denylist === undefined || tokenCache === undefined) return
    const health: ReceiverHealth = { keySet, denylist, store, tokenCache }
    const text = JSON.stringify(health, (name, value) =>
      name === 'ageSeconds' ? undefined : value,
    )
    if (text === sent && performance.now() - sentAt < REPORT_AT_LEAST_EVERY_MS) return
    sent = text
    sentAt = performance.now()
    send({ type: 'health', health })
  }

  function lookAtDenied(): void {
    const now = lists()
    if (now === inForce) return
    inForce = now
    send({ type: 'in-force', at: Date.now(), things: now === undefined ? [] : thingsIn(now) })
  }

  function look(): void {
    lookAtHealth()
    lookAtDenied()
  }
  look()
  setInterval(look, LOOK_EVERY_MS)
  subscribe('express-service-auth:denylist', lookAtDenied)
}

const thingsIn = ({ callers, keys, tokenIds }: DeniedLists): string[] => [
  ...[...callers].map((value) => thingName('caller', value)),
  ...[...keys].map((value) => thingName('key', value)),
  ...[...tokenIds].map((value) => thingName('token', value)),
]
