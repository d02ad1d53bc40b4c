import { bytesOf } from './bytes.js'
import { type Form, readingsOf } from './readings.js'
import { indexSecrets, type SecretKind, SHORTEST_SECRET } from './secret-index.js'

export interface Finding {
  readonly sink: string
  readonly kind: SecretKind | typeof LIKE_A_TOKEN
  readonly form: Form
  /** The test that ran when the output was written. */
  readonly test: string | undefined
}

export interface SecretSearch {
  know(kind: SecretKind, value: string | Uint8Array): void
  /** Records a text that was written as a whole. */
  record(sink: string, text: string | Uint8Array): void
  /** Records a piece of a stream. A secret may be split between two pieces. */
  recordPiece(sink: string, piece: string | Uint8Array): void
  /** Searches and forgets what was recorded. Returns all findings so far. */
  settle(): readonly Finding[]
}

/** A token that a child process makes and sends is unknown here, so it is recognised by its form. */
const LIKE_A_TOKEN = 'text in the form of a token'
const TOKEN_FORM = /\beyJ[\w-]{16,}\.[\w-]{16,}/

/** More recorded output than this is searched and forgotten. */
const MAX_RECORDED = 4 * 1024 * 1024
/** The end of a sink is searched again with what follows it. As long as a token. */
const OVERLAP = 8192
/** Of more bytes of secrets than this, the older half is forgotten, so that a flood of tokens fits in memory. */
const MAX_KNOWN = 4 * 1024 * 1024

interface Sink {
  readonly name: string
  readonly test: string | undefined
  text: string
}

export function createSecretSearch(
  currentTest: () => string | undefined = () => undefined,
): SecretSearch {
  let young = new Map<string, SecretKind>()
  let old = new Map<string, SecretKind>()
  let knownLength = 0
  const sinks = new Map<string, Sink>()
  let recordedLength = 0
  /** What was recorded, because many errors and events come repeatedly. */
  const recorded = new Set<string>()
  const findings = new Map<string, Finding>()

  function know(kind: SecretKind, value: string | Uint8Array): void {
    const secret = bytesOf(value)
    if (secret.length < SHORTEST_SECRET || young.has(secret)) return
    young.set(secret, kind)
    knownLength += secret.length
    if (knownLength < MAX_KNOWN / 2) return
    searchAll()
    old = young
    young = new Map()
    knownLength = 0
  }

  function add(name: string, test: string | undefined, text: string): void {
    const id = `${name}\n${test}`
    const sink = sinks.get(id) ?? { name, test, text: '' }
    sinks.set(id, sink)
    sink.text += text
    recordedLength += text.length
    if (recordedLength >= MAX_RECORDED) searchAll()
  }

  function searchAll(): void {
    if (sinks.size === 0) return
    const { find } = indexSecrets(new Map([...old, ...young]))
    recordedLength = 0
    recorded.clear()
    for (const sink of sinks.values()) {
      for (const { form, text } of readingsOf(sink.text)) {
        const kind = find(text) ?? (TOKEN_FORM.test(text) ? LIKE_A_TOKEN : undefined)
        if (kind === undefined) continue
        const { name, test } = sink
        findings.set(`${name}\n${test}\n${kind}\n${form}`, { sink: name, kind, form, test })
      }
      sink.text = sink.text.slice(-OVERLAP)
    }
  }

  return {
    know,
    record(sink, text) {
      const line = `${bytesOf(text)}\n`
      const id = `${sink}\n${line}`
      if (recorded.has(id)) return
      recorded.add(id)
      add(sink, currentTest(), line)
    },
    // Without a test, because a piece may begin in one test and end in the next.
    recordPiece: (sink, piece) => add(sink, undefined, bytesOf(piece)),
    settle() {
      searchAll()
      sinks.clear()
      return [...findings.values()]
    },
  }
}

/** Describes the findings without any part of a secret. */
export const describeFindings = (findings: readonly Finding[]): string =>
  findings
    .map(({ sink, kind, form, test }) => {
      const when = test === undefined ? '' : `, while «${test}» ran`
      return `${sink} holds ${kind} or a part of it (${form})${when}`
    })
    .join('\n')
