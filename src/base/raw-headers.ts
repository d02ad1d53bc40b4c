/** RFC 7230's header list as it came on the wire: names and values in turn. */
export type RawHeaders = readonly string[]

/** The values of one header, in the order in which they came. */
export function headerValues(rawHeaders: RawHeaders, lowerCaseName: string): string[] {
  const values: string[] = []
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? ''
    if (name.length === lowerCaseName.length && name.toLowerCase() === lowerCaseName) {
      values.push(rawHeaders[index + 1] ?? '')
    }
  }
  return values
}
