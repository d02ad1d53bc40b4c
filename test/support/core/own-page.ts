/** All values of each header, by its lower-case name. */
export type DistinctHeaders = Readonly<Record<string, readonly string[] | undefined>>

const OWN_HOST = /^(?:127\.0\.0\.1|localhost)(?::(\d+))?$/

/**
 * Whether a request is addressed to this machine, at this port if one is given, and does not come
 * from another site's page. Such a page can point a host name of its own at this machine. Programs
 * send no `Origin`.
 */
export function isOwnRequest(headers: DistinctHeaders, port?: number): boolean {
  const host = onlyValue(headers['host']) ?? ''
  const match = OWN_HOST.exec(host)
  // Browsers omit the default port of the scheme.
  if (match === null || (port !== undefined && Number(match[1] ?? 80) !== port)) return false
  const origin = onlyValue(headers['origin'])
  return origin === undefined || origin === `http://${host}`
}

/** Returns a header's only value. A repeated header counts as a wrong one. */
function onlyValue(values: readonly string[] | undefined): string | undefined {
  return values === undefined || values.length === 1 ? values?.[0] : 'several'
}
