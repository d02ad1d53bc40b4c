/** How long a response says that it is fresh (RFC 9111, section 4.2). */
export interface Freshness {
  /** Seconds left when the response arrived; `undefined` when it does not say. */
  readonly leftSeconds: number | undefined
  /** `max-age` as it stood, to serve a later 304 that says nothing. */
  readonly maxAgeSeconds: number | undefined
}

/** Below this a refresh would have no time before the set expires. */
const LEAST_FRESH_SECONDS = 10

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
  if (directives?.some(({ name }) => name === 'no-cache' || name === 'no-store')) {
    return { leftSeconds: LEAST_FRESH_SECONDS, maxAgeSeconds: 0 }
  }
  const maxAgeSeconds = directives === undefined ? earlierMaxAgeSeconds : maxAgeOf(directives)
  if (maxAgeSeconds === undefined) return { leftSeconds: undefined, maxAgeSeconds }
  const age = ageOf(headers.age) + responseDelaySeconds
  return { leftSeconds: Math.max(LEAST_FRESH_SECONDS, maxAgeSeconds - age), maxAgeSeconds }
}

/** Of several, the first that can be read (RFC 9111, section 4.2.1). */
function maxAgeOf(directives: readonly Directive[]): number | undefined {
  return directives
    .filter(({ name }) => name === 'max-age')
    .map(({ value }) => deltaSeconds(value))
    .find((seconds) => seconds !== undefined)
}

/** Of several, the first; what is not a number counts as absent (RFC 9111, section 5.1). */
function ageOf(value: string | null): number {
  return deltaSeconds(value?.split(',')[0]?.trim() ?? '') ?? 0
}

interface Directive {
  readonly name: string
  readonly value: string
}

/** A run without a comma outside of a quoted string. */
const ELEMENT = /(?:[^,"]|"(?:[^"\\]|\\.)*"?)+/g

const DIRECTIVE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+)(?:=(?:"((?:[^"\\]|\\.)*)"|([^\s"]*)))?$/

/** A value may be a token or a quoted string (RFC 9111, section 5.2); what is garbled does not count. */
function parseDirectives(value: string): Directive[] {
  const matches = Array.from(value.matchAll(ELEMENT), ([element]) => DIRECTIVE.exec(element.trim()))
  return matches.flatMap((match) => {
    const [, name, quoted, token] = match ?? []
    if (name === undefined) return []
    return [{ name: name.toLowerCase(), value: quoted?.replace(/\\(.)/g, '$1') ?? token ?? '' }]
  })
}

function deltaSeconds(value: string): number | undefined {
  return /^\d+$/.test(value) ? Math.min(Number(value), MOST_DELTA_SECONDS) : undefined
}
