/** How long a response says that it is fresh (RFC 9111, section 4.2). */
export interface Freshness {
  /** Seconds left when the response arrived; `undefined` when it does not say. */
  readonly leftSeconds: number | undefined
  /** `max-age` as it stood, to serve a later 304 that says nothing. */
  readonly maxAgeSeconds: number | undefined
}

/** Below this a refresh would have no time before the set expires. */
export const LEAST_FRESH_SECONDS = 10

/** RFC 9111, section 1.2.2: a larger number of seconds is taken as this one. */
const MOST_DELTA_SECONDS = 2 ** 31

/**
 * Reads `Cache-Control` and `Age`. `responseDelaySeconds` is the time that the exchange took, which
 * RFC 9111 (section 4.2.3) counts as age.
 */
export function freshnessOf(
  headers: { readonly cacheControl: string | null; readonly age: string | null },
  responseDelaySeconds: number,
  earlierMaxAgeSeconds?: number,
): Freshness {
  const directives =
    headers.cacheControl === null ? undefined : parseDirectives(headers.cacheControl)
  if (directives?.has('no-cache') || directives?.has('no-store')) {
    return { leftSeconds: LEAST_FRESH_SECONDS, maxAgeSeconds: 0 }
  }
  const maxAgeSeconds =
    directives === undefined ? earlierMaxAgeSeconds : deltaSeconds(directives.get('max-age'))
  if (maxAgeSeconds === undefined) return { leftSeconds: undefined, maxAgeSeconds }
  const age = (deltaSeconds(headers.age ?? undefined) ?? 0) + responseDelaySeconds
  return { leftSeconds: Math.max(LEAST_FRESH_SECONDS, maxAgeSeconds - age), maxAgeSeconds }
}

/** A run without a comma outside of a quoted string. */
const ELEMENT = /(?:[^,"]|"(?:[^"\\]|\\.)*"?)+/g

const DIRECTIVE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+)(?:=(?:"((?:[^"\\]|\\.)*)"|([^\s"]*)))?$/

/** The first occurrence of each directive counts (RFC 9111, section 4.2.1); what is garbled does not. */
function parseDirectives(value: string): ReadonlyMap<string, string> {
  const directives = new Map<string, string>()
  for (const [element] of value.matchAll(ELEMENT)) {
    const match = DIRECTIVE.exec(element.trim())
    const name = match?.[1]?.toLowerCase()
    if (name === undefined || directives.has(name)) continue
    directives.set(name, match?.[2] ?? match?.[3] ?? '')
  }
  return directives
}

function deltaSeconds(value: string | undefined): number | undefined {
  if (value === undefined || !/^\d+$/.test(value)) return undefined
  return Math.min(Number(value), MOST_DELTA_SECONDS)
}
