import { z } from 'zod'
import { hasFunctions, isObject, lazy, nonEmptyString, optionsObject } from '../../base/options.js'
import { LATEST_SECOND, SECONDS_ERROR } from '../denylist/denylist-entry.js'
import type { DeniedLists, LiveDenylist } from '../denylist/live-denylist.js'

/** Refuses valid tokens, for example because a key or a token was stolen. */
export interface Denylist {
  /** Key ids. */
  readonly keys?: readonly string[] | undefined
  /** Callers (`sub`). */
  readonly callers?: readonly string[] | undefined
  /** Token ids (`jti`). */
  readonly tokenIds?: readonly string[] | undefined
  /** Seconds since the epoch: tokens issued before, or without `iat`, are refused. */
  readonly issuedBefore?: number | undefined
}

/** A fixed denylist, a live one, or a list of both. A token that any of them denies is refused. */
export type DenylistOption = Denylist | LiveDenylist | readonly (Denylist | LiveDenylist)[]

/** The denylists of a policy. */
export interface Denylists {
  /** The fixed denylists, merged. */
  readonly denied: DeniedLists
  readonly liveDenylists: readonly LiveDenylist[]
}

const LIVE_FUNCTIONS = ['lists', 'ready', 'health', 'close'] as const

const STATIC_FORM = 'an object of keys, callers, tokenIds and issuedBefore'
const LIVE_FORM = `a live denylist with ${LIVE_FUNCTIONS.join(', ')}, and optionally catchUp`

/** An optional list of names. */
const names = (): z.ZodDefault<z.ZodArray<z.ZodString>> =>
  z.array(nonEmptyString(), { error: 'must be a list of strings' }).default([])

const staticDenylist = lazy(() =>
  optionsObject({
    keys: names(),
    callers: names(),
    tokenIds: names(),
    issuedBefore: z.number(SECONDS_ERROR).max(LATEST_SECOND, SECONDS_ERROR).optional(),
  }),
)

type Static = z.output<ReturnType<typeof staticDenylist>>

export const denylistOption = (): z.ZodPipe<z.ZodUnknown, z.ZodTransform<Denylists, unknown>> =>
  z.unknown().transform((input, { issues }): Denylists => {
    const isList = Array.isArray(input)
    // `Array.from` also gives the holes of a list.
    const members: readonly unknown[] = isList ? Array.from(input) : [input]
    if (members.length === 0) issues.push(fault('must hold at least one denylist'))
    const fixed: Static[] = []
    const live: LiveDenylist[] = []
    for (const [index, member] of members.entries()) {
      const parsed = isLive(member) ? member : parseStatic(member, isList)
      if (Array.isArray(parsed)) {
        const place = isList ? [index] : []
        for (const issue of parsed)
          issues.push({ ...issue, path: [...place, ...(issue.path ?? [])] })
      } else if (isLive(parsed)) live.push(parsed)
      else fixed.push(parsed)
    }
    return { denied: merge(fixed), liveDenylists: Object.freeze(live) }
  })

const isLive = (value: unknown): value is LiveDenylist =>
  hasFunctions(value, LIVE_FUNCTIONS) &&
  ((value as Partial<LiveDenylist>).catchUp === undefined || hasFunctions(value, ['catchUp']))

function parseStatic(value: unknown, isInList: boolean): Static | z.core.$ZodRawIssue[] {
  if (!isObject(value)) {
    const list = isInList ? '' : ', or a list of both'
    return [fault(`must be ${STATIC_FORM}, or ${LIVE_FORM}${list}`)]
  }
  if (LIVE_FUNCTIONS.some((name) => typeof value[name] === 'function')) {
    return [fault(`must be ${LIVE_FORM}`)]
  }
  const { data, error } = staticDenylist().safeParse(value, { jitless: true })
  return data ?? (error.issues as z.core.$ZodRawIssue[])
}

const fault = (message: string): z.core.$ZodRawIssue => ({
  code: 'custom',
  message,
  input: undefined,
})

function merge(lists: readonly Static[]): DeniedLists {
  const cutOffs = lists.flatMap(({ issuedBefore }) => issuedBefore ?? [])
  return {
    keys: new Set(lists.flatMap(({ keys }) => keys)),
    callers: new Set(lists.flatMap(({ callers }) => callers)),
    tokenIds: new Set(lists.flatMap(({ tokenIds }) => tokenIds)),
    ...(cutOffs.length > 0 && { issuedBefore: Math.max(...cutOffs) }),
  }
}
