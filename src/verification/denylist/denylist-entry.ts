import { z } from 'zod'
import { isShortText, lazy, parseOptions, SHORT_TEXT_FAULT } from '../../base/options.js'

/** The kinds of target. */
export type DeniedKind = 'caller' | 'key' | 'token' | 'issued-before'

/** Names an entry: there is one for each issuer, kind and value, and one cut-off for each issuer. */
export type DenylistTarget =
  /** A caller, a key or a token. */
  | {
      /** Exact `iss`. */
      readonly issuer: string
      /** What is denied. */
      readonly kind: 'caller' | 'key' | 'token'
      /** The `sub`, the key id or the `jti`. */
      readonly value: string
    }
  /** The cut-off before which tokens were issued. */
  | { readonly issuer: string; readonly kind: 'issued-before' }

/** An entry of a live denylist. Texts are 1 to 256 characters. */
export interface DenylistEntry {
  /** Exact `iss` of the tokens that it concerns. */
  readonly issuer: string
  /** What is denied. */
  readonly kind: DeniedKind
  /** The `sub`, the key id or the `jti`; of `issued-before` the cut-off in seconds since the epoch. */
  readonly value: string | number
  /** Why, for people. */
  readonly reason: string
  /** The author of the entry. */
  readonly by: string
  /** Seconds since the epoch: when it was denied. */
  readonly at: number
  /** Seconds since the epoch: when it ends; `null` for no end. */
  readonly until: number | null
}

/** A larger number must be one of milliseconds. */
export const LATEST_SECOND = 99_999_999_999

const TEXT_ERROR = { error: SHORT_TEXT_FAULT }
export const SECONDS_ERROR = { error: 'must be a number of seconds (not ms) since the epoch' }
const KIND_ERROR = { error: "must be 'caller', 'key', 'token' or 'issued-before'" }

const text = () => z.custom<string>(isShortText, TEXT_ERROR)
const seconds = () =>
  z.number(SECONDS_ERROR).min(0, SECONDS_ERROR).max(LATEST_SECOND, SECONDS_ERROR)
const namedKind = () => z.enum(['caller', 'key', 'token'])

const commonMembers = () => ({
  issuer: text(),
  reason: text(),
  by: text(),
  at: seconds(),
  until: z.union([seconds(), z.null()], {
    error: 'must be a number of seconds (not ms) since the epoch, or null for no end',
  }),
})
const entrySchema = lazy(() =>
  z.discriminatedUnion(
    'kind',
    [
      z.strictObject({ ...commonMembers(), kind: namedKind(), value: text() }),
      z.strictObject({ ...commonMembers(), kind: z.literal('issued-before'), value: seconds() }),
    ],
    KIND_ERROR,
  ),
)
const targetSchema = lazy(() =>
  z.discriminatedUnion(
    'kind',
    [
      z.object({ issuer: text(), kind: namedKind(), value: text() }),
      z.object({ issuer: text(), kind: z.literal('issued-before') }),
    ],
    KIND_ERROR,
  ),
)

/** @throws TypeError naming every faulty path and what it should have been. */
export const checkEntry = (input: unknown): DenylistEntry =>
  parseOptions('denylist entry', entrySchema, input)

export const MAX_LIST_LENGTH = 1000
const LIST_ERROR = { error: `must be 1 to ${MAX_LIST_LENGTH} entries` }
const entriesSchema = lazy(() =>
  z.object({
    entries: z.array(entrySchema(), LIST_ERROR).min(1, LIST_ERROR).max(MAX_LIST_LENGTH, LIST_ERROR),
  }),
)

/** @throws TypeError as `checkEntry`, with the index of each faulty entry. */
export const checkEntries = (input: unknown): DenylistEntry[] =>
  parseOptions('denylist list', entriesSchema, { entries: input }).entries

/** Accepts an entry, too, as its target. @throws TypeError as `checkEntry`. */
export const checkTarget = (input: unknown): DenylistTarget =>
  parseOptions('denylist target', targetSchema, input)
