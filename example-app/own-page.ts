/** All values of each header, by its name in lower case. */
export type DistinctHeaders = Readonly<Record<string, readonly string[] | undefined>>

/**
 * Whether a request is addressed to this machine at this port, and is not from another site's page:
 * such a page can point a name of its own at this machine. Programs send no `Origin`.
 */
export function isOwnRequest(headers: DistinctHeaders, port: number): boolean {
  const host = onlyValue(headers['host'])
  if (host === undefined || !hostsAt(port).includes(host)) return false
  const origin = onlyValue(headers['origin'])
  return origin === undefined || origin === `http://${host}`
}

/** The hosts as browsers send them: without the port where it is that of the scheme. */
const hostsAt = (port: number): string[] =>
  ['127.0.0.1', 'localhost'].map((name) => new URL(`http://${name}:${port}`).host)

/** A header's only value; one that is there several times is as good as a wrong one. */
export function onlyValue(values: readonly string[] | undefined): string | undefined {
  return values === undefined || values.length === 1 ? values?.[0] : 'several'
}
