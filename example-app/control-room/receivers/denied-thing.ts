import type { DenylistEntry } from 'express-service-auth'
import { ActionError } from '../ports.js'
import type { DeniedThing, DenyOrder } from '../protocol.js'
import { thingName } from './messages.js'

/** An entry of the denylist that names something. */
export type ThingEntry = DenylistEntry & DeniedThing

export const isThing = (entry: DenylistEntry): entry is ThingEntry => entry.kind !== 'issued-before'

export const nameOf = ({ kind, value }: DeniedThing): string => thingName(kind, value)

const KINDS: readonly unknown[] = ['caller', 'key', 'token']
const MAX_CHARACTERS = 256
/** Thirty days. */
const MAX_SECONDS = 2_592_000
const WANTED = `must have 1 to ${MAX_CHARACTERS} characters`

const isText = (text: unknown): boolean =>
  typeof text === 'string' && text.length >= 1 && text.length <= MAX_CHARACTERS

/** @throws ActionError when a visitor has named nothing that can be denied */
export function checkThing({ kind, value }: DeniedThing): DeniedThing {
  if (!KINDS.includes(kind)) throw new ActionError('only a caller, a key or a token can be denied')
  if (!isText(value)) throw new ActionError(`the ${kind} ${WANTED}`)
  return { kind, value }
}

/**
 * What a visitor denies at a moment, in seconds since the epoch.
 * @throws ActionError when it cannot be denied so
 */
export function entryOf(order: DenyOrder, issuer: string, at: number): ThingEntry {
  const { reason, seconds } = order
  const thing = checkThing(order)
  if (!isText(reason)) throw new ActionError(`the reason ${WANTED}`)
  if (seconds !== undefined && !(seconds > 0 && seconds <= MAX_SECONDS)) {
    throw new ActionError(`the seconds must be more than 0, at most ${MAX_SECONDS}, or empty`)
  }
  const until = seconds === undefined ? null : at + seconds
  return { issuer, ...thing, reason, by: 'control room', at, until }
}
