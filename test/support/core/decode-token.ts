/** The two readable parts of a token, unverified. */
export function decodeToken(token: string): { header: string; payload: string } {
  const [header = '', payload = ''] = token
    .split('.')
    .map((segment) => Buffer.from(segment, 'base64url').toString())
  return { header, payload }
}
