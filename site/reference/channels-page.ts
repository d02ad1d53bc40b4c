import { type Declaration, meaningOf } from './reflection.js'
import { table } from './shape.js'

/** A type whose comment names the channel on which it is told. */
export interface ToldEvent {
  /** Without the name of the package: `keys`. */
  readonly channel: string
  readonly name: string
  /** The entry point that exports it. */
  readonly page: string
  /** What its comment says. */
  readonly meaning: string
}

const CHANNEL = /`express-service-auth:(\w+)`/

/** The events among the exports of an entry point. */
export const eventsOf = (page: string, exported: readonly Declaration[]): readonly ToldEvent[] =>
  exported.flatMap((one) => {
    const meaning = meaningOf(one)
    const [, channel] = CHANNEL.exec(meaning) ?? []
    return channel === undefined ? [] : [{ channel, name: one.name, page, meaning }]
  })

/** Where the cases of an event are told. */
export const addressOf = (name: string): string => `/reference/channels#${name}`

/** All channels and what is told on them; `shapes` are the cases of an event, by its name. */
export function channelsPage(
  events: readonly ToldEvent[],
  shapes: ReadonlyMap<string, string>,
): string {
  const rows = events.map(({ channel, name }) => [
    `\`express-service-auth:${channel}\``,
    `[\`${name}\`](#${name})`,
  ])
  return `${[
    '# Channels and events',
    INTRODUCTION,
    table(['channel', 'event'], rows),
    ...events.map((event) => sectionOf(event, shapes)),
  ].join('\n\n')}\n`
}

const INTRODUCTION =
  'What operators see, on channels of `node:diagnostics_channel`. Nothing is made of an event while ' +
  'nobody listens, and none carries a token, a key or anything that an unverified caller chose. What ' +
  'each reason means and what to do about it: [every reason](/docs/operations.md#every-reason). ' +
  '`logDecisions` writes all but `migration` to a log; `instrument` counts `decision`, `idempotency`, `keys` and `store`.'

function sectionOf({ name, page, meaning }: ToldEvent, shapes: ReadonlyMap<string, string>) {
  const cases = shapes.get(name)
  const rest = cases ?? `Its members: [\`${name}\`](/reference/${page}#${name}).`
  return `## ${name} {#${name}}\n\n${meaning}\n\n${rest}`
}
