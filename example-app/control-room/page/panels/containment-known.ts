import type { CallResult, DeniedThing, RoomEvent, RoomState } from '../../protocol.js'

/** What can be denied of what this page has seen. */
export type Known = Readonly<Record<DeniedThing['kind'], readonly string[]>>

/** Callers of the example. */
const CALLERS: readonly string[] = ['billing', 'reporting']

interface Seen {
  readonly room: Pick<RoomState, 'core' | 'writes'>
  readonly events: readonly RoomEvent[]
  /** The newest first. */
  readonly results: readonly CallResult[]
}

export function knownFrom({ room, events, results }: Seen): Known {
  return {
    caller: distinct([
      ...CALLERS,
      ...room.writes.map(({ caller }) => caller),
      ...events.map(({ event }) => ('caller' in event ? event.caller : undefined)),
    ]),
    key: room.core.keys.map(({ kid }) => kid),
    token: distinct(results.map(jtiOf)),
  }
}

function jtiOf({ request }: CallResult): string | undefined {
  const payload = request.token.payload as { jti?: unknown } | null | undefined
  return typeof payload?.jti === 'string' ? payload.jti : undefined
}

const distinct = (values: readonly (string | undefined)[]): readonly string[] => [
  ...new Set(values.filter((value) => value !== undefined)),
]
