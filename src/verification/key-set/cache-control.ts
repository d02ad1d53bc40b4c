/** How long a response says that it is fresh (RFC 9111, section 4.2). */
export interface Freshness {
  /** Seconds from its arrival until it is stale; `undefined` if the response does not say. */
  readonly leftSeconds: number | undefined
  /** `max-age` as sent: a later 304 without `Cache-Control` keeps it. */
  readonly maxAgeSeconds: number | undefined
}

/** Less would leave no time for a refresh before the set expires. */
const MIN_FRESH_SECONDS = 10

/** A larger number of seconds counts as this one (RFC 9111, section 1.2.2). */
const MAX_DELTA_SECONDS = 2 ** 31

/**
 * Reads `Cache-Control` and `Age`. `responseDelaySeconds` is how long the exchange took; it counts as
 * part of the response's age (RFC 9111, section 4.2.3).
 */
export function freshnessOf(
  headers: { readonly cacheControl: string | null; readonly age: string | null },
  responseDelaySeconds: number,
  earlierMaxAgeSeconds?: number,
): Freshness {
  const directives =
    headers.cacheControl === null ? undefined : parseDirectives(headers.cacheControl)
  if (directives?.some(({ name }) => name === 'no-cache' || name === 'no-store')) {
    return { leftSeconds: MIN_FRESH_SECONDS, maxAgeSeconds: 0 }
  }
  const maxAgeSeconds = directives === undefined ? earlierMaxAgeSeconds : maxAgeOf(directives)
  if (maxAgeSeconds === undefined) return { leftSeconds: undefined, maxAgeSeconds }
  const age = ageOf(headers.age) + responseDelaySeconds
  return { leftSeconds: Math.max(MIN_FRESH_SECONDS, maxAgeSeconds - age), maxAgeSeconds }
}

/** The first readable `max-age` counts (RFC 9111, section 4.2.1). */
function maxAgeOf(directives: readonly Directive[]): number | undefined {
  return directives
    .filter(({ name }) => name === 'max-age')
    .map(({ value }) => deltaSeconds(value))
    .find((seconds) => seconds !== undefined)
}

/** The first value counts; one that is not a number counts as absent (RFC 9111, section 5.1). */
function ageOf(value: string | null): number {
  return deltaSeconds(value?.split(',')[0]?.trim() ?? '') ?? 0
}

interface Directive {
  readonly name: string
  readonly value: string
}

/** One element of the list: a comma within a quoted string does not end it. */
const ELEMENT = /(?:[^,"]|"(?:[^"\\]|\\.)*"?)+/g

const DIRECTIVE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+)(?:=(?:"((?:[^"\\]|\\.)*)"|([^\s"]*)))?$/

/** A value is a token or a quoted string (RFC 9111, section 5.2); malformed directives are skipped. */
function parseDirectives(value: string): Directive[] {
  const matches = Array.from(value.matchAll(ELEMENT), ([element]) => DIRECTIVE.exec(element.trim()))
  return matches.flatMap((match) => {
    const [, name, quoted, token] = match ?? []
    if (name === undefined) return []
    return [{ name: name.toLowerCase(), value: quoted?.replace(/\\(.)/g, '$1') ?? token ?? '' }]
  })
}

function deltaSeconds(value: string): number | undefined {
  return /^\d+$/.test(value) ? Math.min(Number(value), MAX_DELTA_SECONDS) : undefined
}
