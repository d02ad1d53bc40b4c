import type { ShownToken } from '../protocol.js'
import { cutAuthorization } from './compose.js'

/** What can be shown of an Authorization header. */
export function shownToken(authorization: string, hostility?: string): ShownToken {
  const [header, payload] = authorization.replace(/^(?:bearer|dpop) /i, '').split('.')
  return {
    authorization: cutAuthorization(authorization),
    ...decoded('header', header),
    ...decoded('payload', payload),
    ...(hostility !== undefined && { hostility }),
  }
}

const MAX_SEGMENT_LENGTH = 8192

function decoded<Name extends string>(name: Name, segment = ''): { [name in Name]?: unknown } {
  if (segment.length > MAX_SEGMENT_LENGTH) return {}
  try {
    const value: unknown = JSON.parse(Buffer.from(segment, 'base64url').toString())
    return { [name]: value } as { [name in Name]: unknown }
  } catch {
    return {}
  }
}
