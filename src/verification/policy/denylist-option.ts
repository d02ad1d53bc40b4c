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

type ReportIssue = (issue: z.core.$ZodRawIssue) => void

export const denylistOption = (): z.ZodPipe<z.ZodUnknown, z.ZodTransform<Denylists, unknown>> =>
  z.unknown().transform((input, context): Denylists => {
    const report: ReportIssue = (issue) => void context.issues.push(issue)
    return Array.isArray(input) ? fromList(input, report) : fromMembers([[[], input]], report)
  })

function fromList(members: readonly unknown[], report: ReportIssue): Denylists {
  if (members.length === 0) report(fault('must hold at least one denylist', [], members))
  // `entries` also visits the holes of a sparse list.
  return fromMembers(
    [...members.entries()].map(([index, member]) => [[index], member]),
    report,
  )
}

type Member = readonly [path: readonly number[], value: unknown]

function fromMembers(members: readonly Member[], report: ReportIssue): Denylists {
  const fixed: Static[] = []
  const live: LiveDenylist[] = []
  for (const [path, member] of members) {
    if (isLive(member)) live.push(member)
    else {
      const parsed = parseStatic(member, path, report)
      if (parsed !== undefined) fixed.push(parsed)
    }
  }
  return { denied: merge(fixed), liveDenylists: Object.freeze(live) }
}

const isLive = (value: unknown): value is LiveDenylist =>
  hasFunctions(value, LIVE_FUNCTIONS) &&
  ((value as Partial<LiveDenylist>).catchUp === undefined || hasFunctions(value, ['catchUp']))

function parseStatic(
  value: unknown,
  path: readonly number[],
  report: ReportIssue,
): Static | undefined {
  if (!isObject(value)) {
    const list = path.length === 0 ? ', or a list of both' : ''
    report(fault(`must be ${STATIC_FORM}, or ${LIVE_FORM}${list}`, path, value))
    return undefined
  }
  if (LIVE_FUNCTIONS.some((name) => typeof value[name] === 'function')) {
    report(fault(`must be ${LIVE_FORM}`, path, value))
    return undefined
  }
  const { data, error } = staticDenylist().safeParse(value, { jitless: true })
  for (const issue of error?.issues ?? []) {
    report({ ...issue, path: [...path, ...issue.path] } as z.core.$ZodRawIssue)
  }
  return data
}

const fault = (message: string, path: readonly number[], input: unknown): z.core.$ZodRawIssue => ({
  code: 'custom',
  message,
  path: [...path],
  input,
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
