/** An absolute `http` or `https` URI in normal form, without query and fragment. */
interface HttpUri {
  /** Scheme and authority. */
  readonly origin: string
  readonly path: string
}

/** A URL under which callers reach a receiver. */
export interface BaseUrl {
  readonly origin: string
  /** Not normalised: `pathUnder` normalises it together with the path of a request. */
  readonly prefix: string
}

const HTTP_URI = /^(https?):\/\/([^/?#]*)([^?#]*)(\?[^#]*)?(#.*)?$/i
/** No user name (`@`), and none of the delimiters that RFC 3986, section 3.2.2, allows in names and DNS does not. */
const AUTHORITY = /^(\[[\dA-Fa-f:.]+\]|[\w.~%-]+)(?::(\d*))?$/
/** Visible ASCII characters without a backslash, and percent signs before two hexadecimal digits only. */
const CHARACTERS = /^(?:[\x21-\x24\x26-\x5b\x5d-\x7e]|%[\dA-Fa-f]{2})*$/
const DEFAULT_PORTS: Readonly<Record<string, string>> = { http: '80', https: '443' }

/**
 * Normalises a URI by its syntax and its scheme (RFC 3986, sections 6.2.2 and 6.2.3) and in no other way:
 * unlike `URL` it repairs nothing. `undefined` if it is not such a URI.
 */
export function normalizeHttpUri(text: string): HttpUri | undefined {
  const uri = parse(text)
  return uri && { origin: uri.origin, path: normalizePath(uri.path) }
}

/**
 * Parses a base URL: an absolute `http(s)` URI without user name, query, fragment and trailing slash, in the spelling of
 * `URL`, because callers sign a URL as `URL` writes it: `[::1]` for `[0:0:0:0:0:0:0:1]`.
 */
export function parseBaseUrl(text: string): BaseUrl | undefined {
  const uri = parse(text)
  if (uri === undefined || uri.path.endsWith('/') || /[?#]/.test(text)) return undefined
  return isKeptByUrl(text) ? { origin: uri.origin, prefix: uri.path } : undefined
}

function isKeptByUrl(text: string): boolean {
  if (!URL.canParse(text)) return false
  const [written, given] = [new URL(text).href, text].map(normalizeHttpUri)
  return written?.origin === given?.origin && written?.path === given?.path
}

const DOT_SEGMENT = /\/(?:\.|%2e){1,2}(?=\/|$)/i

/**
 * The normal path of a request under a base URL; `undefined` if the path is not one of a URI, or has a dot
 * segment. Express routes by the path as sent, so `/export/../orders` reaches the handlers of `/export`: a
 * proof for `/orders` must not.
 */
export function pathUnder({ prefix }: BaseUrl, path: string): string | undefined {
  const isPlain = CHARACTERS.test(path) && !DOT_SEGMENT.test(path)
  return isPlain ? normalizePath(prefix + path) : undefined
}

/** Express misreads other absolute forms: it takes `/:b/c` for the path of `http://a:b/c`. */
const ABSOLUTE_FORM = /^https?:\/\/(?:\[[\dA-Fa-f:.]+\]|[\w.-]+)(?::\d*)?(?=\/|$)/i

/**
 * The path of a request target (RFC 9112, section 3.2), as sent; `undefined` if it has none. `//x` is a
 * path, and of an absolute `http(s)` URI only the path counts: the rest does not say where the request has
 * arrived. `*` is a target of `OPTIONS` only, and its path is empty (sections 3.2.4 and 3.3). No target has
 * a fragment; with a `#`, Express may take a part of `//x` for an authority.
 */
export function pathOfTarget(method: string, target: string): string | undefined {
  if (target === '*') return method === 'OPTIONS' ? '' : undefined
  if (target.includes('#')) return undefined
  const end = target.indexOf('?')
  const beforeQuery = end === -1 ? target : target.slice(0, end)
  if (beforeQuery.startsWith('/')) return beforeQuery
  const origin = ABSOLUTE_FORM.exec(beforeQuery)?.[0]
  return origin === undefined ? undefined : beforeQuery.slice(origin.length)
}

/** The path is as given. */
function parse(text: string): HttpUri | undefined {
  const [, scheme = '', authority = '', path = ''] = HTTP_URI.exec(text) ?? []
  const [, host, port = ''] = AUTHORITY.exec(authority) ?? []
  if (host === undefined || !CHARACTERS.test(text)) return undefined
  const lowerCaseScheme = scheme.toLowerCase()
  const isDefault = port === '' || port === DEFAULT_PORTS[lowerCaseScheme]
  const origin = `${lowerCaseScheme}://${normalizeHost(host)}${isDefault ? '' : `:${port}`}`
  return { origin, path }
}

const TRIPLET = /%[\dA-Fa-f]{2}/g
const UNRESERVED = /^[\w.~-]$/

/** Decodes unreserved characters, and writes the other triplets in upper case. */
const normalizeTriplets = (text: string): string =>
  text.replace(TRIPLET, (triplet) => {
    const character = String.fromCharCode(Number.parseInt(triplet.slice(1), 16))
    return UNRESERVED.test(character) ? character : triplet.toUpperCase()
  })

const normalizeHost = (host: string): string =>
  normalizeTriplets(host)
    .toLowerCase()
    .replace(TRIPLET, (triplet) => triplet.toUpperCase())

const normalizePath = (path: string): string =>
  removeDotSegments(path.includes('%') ? normalizeTriplets(path) : path) || '/'

/** RFC 3986, section 5.2.4, of an empty path or one that begins with a slash. */
function removeDotSegments(path: string): string {
  if (!path.includes('/.')) return path
  const kept: string[] = []
  const [, ...segments] = path.split('/')
  for (const [index, segment] of segments.entries()) {
    if (segment !== '.' && segment !== '..') {
      kept.push(segment)
      continue
    }
    if (segment === '..') kept.pop()
    if (index === segments.length - 1) kept.push('')
  }
  return `/${kept.join('/')}`
}
