/** All values of each header, by its name in lower case. */
export type DistinctHeaders = Readonly<Record<string, readonly string[] | undefined>>

const OWN_HOST = /^(?:127\.0\.0\.1|localhost)(?::(\d+))?$/

/**
 * Whether a request is addressed to this machine, at this port if one is given, and is not from another
 * site's page: such a page can point a name of its own at this machine. Programs send no `Origin`.
 */
export function isOwnRequest(headers: DistinctHeaders, port?: number): boolean {
  const host = onlyValue(headers['host']) ?? ''
  const match = OWN_HOST.exec(host)
  // Browsers leave out the port of the scheme.
  if (match === null || (port !== undefined && Number(match[1] ?? 80) !== port)) return false
  const origin = onlyValue(headers['origin'])
  return origin === undefined || origin === `http://${host}`
}

/** A header's only value; one that is there several times is as good as a wrong one. */
export function onlyValue(values: readonly string[] | undefined): string | undefined {
  return values === undefined || values.length === 1 ? values?.[0] : 'several'
}
