/** The members of `RequestInit`, and those that Node's `fetch` adds. */
const MEMBERS = [
  'body',
  'cache',
  'credentials',
  'dispatcher',
  'headers',
  'integrity',
  'keepalive',
  'method',
  'mode',
  'priority',
  'redirect',
  'referrer',
  'referrerPolicy',
  'signal',
  'window',
] as const

export type Members = { readonly [name in (typeof MEMBERS)[number]]?: unknown }

/** Reads each member once, also inherited ones, as `fetch` does, because the object may change later. */
export function membersOf(init: RequestInit | null | undefined): Members {
  const members: Record<string, unknown> = {}
  if (init === undefined || init === null) return members
  if (typeof init !== 'object') throw requestError('init must be an object')
  for (const name of MEMBERS) {
    const value = (init as Members)[name]
    if (value !== undefined) members[name] = value
  }
  return members
}

/** Throws an own error, because that of `fetch` would repeat an invalid value, which may be secret. */
export function headersOf({ headers }: Members): Headers | undefined {
  try {
    return headers === undefined
      ? undefined
      : new Headers(headers as ConstructorParameters<typeof Headers>[0])
  } catch {
    throw requestError('headers must be names and values of headers')
  }
}

export function assertRedirect(redirect: unknown): void {
  if (redirect === undefined || redirect === 'manual' || redirect === 'error') return
  throw requestError("redirect must be 'manual' or 'error': the token is for no other address")
}

/** Creates the error for a request that must not be sent. */
export const requestError = (what: string, options?: ErrorOptions): TypeError =>
  new TypeError(`serviceFetch: ${what}`, options)
