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
