import type { DeniedThing, RoomEvent, RoomState } from '../../protocol.js'
import type { LoggedCall } from '../compose/call-log.js'

/** What can be denied of what this page has seen. */
export type Known = Readonly<Record<DeniedThing['kind'], readonly string[]>>

/** Callers of the example. */
const CALLERS: readonly string[] = ['billing', 'reporting']

interface Seen {
  readonly room: Pick<RoomState, 'core' | 'writes'>
  readonly events: readonly RoomEvent[]
  /** The newest first. */
  readonly calls: readonly LoggedCall[]
}

export function knownFrom({ room, events, calls }: Seen): Known {
  return {
    caller: distinct([
      ...CALLERS,
      ...calls.map(({ order }) => order.caller),
      ...room.writes.map(({ caller }) => caller),
      ...events.map(({ event }) => ('caller' in event ? event.caller : undefined)),
    ]),
    key: room.core.keys.map(({ kid }) => kid),
    token: distinct(calls.map(jtiOf)),
  }
}

function jtiOf({ end }: LoggedCall): string | undefined {
  if (end.kind !== 'answered') return undefined
  const payload = end.result.request.token.payload as { jti?: unknown } | null | undefined
  return typeof payload?.jti === 'string' ? payload.jti : undefined
}

const distinct = (values: readonly (string | undefined)[]): readonly string[] => [
  ...new Set(values.filter((value) => value !== undefined)),
]
