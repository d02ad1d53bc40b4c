import type { IncomingMessage } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { Refused } from '../../../../src/testing/core/mint.js'
import { BadInput } from './input.js'

/**
 * Reads the body as text, like a core: in the `charset` of `Content-Type`, or in ISO-8859-1.
 * @throws {Refused} if the body is not in its charset, or the charset is unknown
 * @throws {BadInput} if the caller disconnects
 */
export async function readBody(request: IncomingMessage): Promise<string> {
  const bytes = await buffer(request).catch(() => {
    throw new BadInput('Invalid Json Input')
  })
  return decode(bytes, charsetIn(request.headers['content-type']))
}

const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
const MEDIA_TYPE = new RegExp(`^\\s*${TOKEN}/${TOKEN}\\s*(?<parameters>(?:;.*)?)$`)
const CHARSET = /;\s*charset\s*=\s*(?:"(?<quoted>[^"]*)"|(?<plain>[^;\s]*))/gi

/** The last `charset` counts. */
function charsetIn(contentType = ''): string | undefined {
  const parameters = MEDIA_TYPE.exec(contentType)?.groups?.['parameters'] ?? ''
  const { quoted, plain } = [...parameters.matchAll(CHARSET)].at(-1)?.groups ?? {}
  return (quoted ?? plain)?.toLowerCase()
}

function decode(bytes: Buffer, charset = 'iso-8859-1'): string {
  // `TextDecoder` reads both names as windows-1252.
  if (charset === 'iso-8859-1' || charset === 'latin1') return bytes.toString('latin1')
  const decodeBytes = decoderOf(charset)
  try {
    return decodeBytes(bytes)
  } catch {
    throw new Refused(500, 'java.nio.charset.MalformedInputException: Input length = 1')
  }
}

function decoderOf(charset: string): (bytes: Buffer) => string {
  try {
    // Java reads UTF-16 without a byte order mark as big-endian, and keeps the byte order mark of UTF-8.
    const label = charset === 'utf-16' ? 'utf-16be' : charset
    const decoder = new TextDecoder(label, { fatal: charset === 'utf-8', ignoreBOM: true })
    return (bytes) => decoder.decode(bytes)
  } catch {
    const text = `The character encoding [${charset}] is not supported`
    throw new Refused(500, `java.io.UnsupportedEncodingException: ${text}`)
  }
}
