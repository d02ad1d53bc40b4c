/** Library functions whose first argument is SQL. */
const SQL_FUNCTIONS = new Set([
  'query',
  'unsafe',
  'execute',
  'executeQuery',
  'streamQuery',
  '$queryRaw',
  '$queryRawUnsafe',
  '$executeRaw',
  '$executeRawUnsafe',
])

/** Functions that end a transaction or release its connection, on any object. */
const TRANSACTION_ENDS = new Set(['commitTransaction', 'rollbackTransaction', '$disconnect'])

/** Functions that release a connection, if they belong to one. */
const CONNECTION_RELEASES = new Set(['release', 'end'])

const REFUSED_WORDS = new Set(['begin', 'commit', 'end', 'abort'])

// Enough for a long comment before the statement.
const MAX_READ_CHARACTERS = 10_000

interface ProxyCall {
  /** The object that the function was read from. */
  readonly owner: unknown
  readonly name: PropertyKey
  readonly arguments: readonly unknown[]
}

/** Whether the call would begin or end the transaction that the store controls, or release its connection. */
export function controlsTransaction(call: ProxyCall): boolean {
  const { owner, name } = call
  if (typeof name === 'string') {
    if (TRANSACTION_ENDS.has(name)) return true
    if (CONNECTION_RELEASES.has(name)) return has(owner, 'query') || has(owner, 'unsafe')
    // postgres.js: ends the transaction with `prepare transaction`.
    if (name === 'prepare') return has(owner, 'savepoint')
  }
  const [first] = call.arguments
  if (!SQL_FUNCTIONS.has(String(name)) && !isTemplate(first)) return false
  const text = sqlOf(first)
  return text !== undefined && isTransactionControl(text)
}

/** Whether the text starts with a statement that begins or ends a transaction. */
export function isTransactionControl(text: string): boolean {
  const [first, second, third] = leadingWords(text.slice(0, MAX_READ_CHARACTERS))
  if (first === undefined) return false
  if (REFUSED_WORDS.has(first)) return true
  if (first === 'start' || first === 'prepare') return second === 'transaction'
  if (first !== 'rollback') return false
  const isToSavepoint = second === 'to' || third === 'to'
  return !isToSavepoint
}

/** The first three words of a text, in lower case, without the comments between them. */
function leadingWords(text: string): string[] {
  const words: string[] = []
  let at = 0
  while (words.length < 3 && at < text.length) {
    const rest = text.slice(at)
    const skipped = /^[\s;]+|^--[^\n\r]*/.exec(rest)?.[0].length ?? blockCommentLength(rest)
    if (skipped > 0) {
      at += skipped
      continue
    }
    const word = /^[a-z_][a-z0-9_]*/i.exec(rest)?.[0]
    if (word === undefined) break
    words.push(word.toLowerCase())
    at += word.length
  }
  return words
}

/** The length of a block comment at the start, which may be nested in SQL; 0 if there is none. */
function blockCommentLength(text: string): number {
  if (!text.startsWith('/*')) return 0
  let depth = 0
  const marks = /\/\*|\*\//g
  for (let mark = marks.exec(text); mark; mark = marks.exec(text)) {
    depth += mark[0] === '/*' ? 1 : -1
    if (depth === 0) return marks.lastIndex
  }
  return text.length
}

/** The SQL text of a library's query, if it can be read without the library. */
function sqlOf(query: unknown): string | undefined {
  if (typeof query === 'string') return query
  if (isTemplate(query)) return query[0]
  if (typeof query !== 'object' || query === null) return undefined
  const { text, sql, queryChunks } = query as Record<string, unknown>
  if (typeof text === 'string') return text
  if (typeof sql === 'string') return sql
  return Array.isArray(queryChunks) ? chunksText(queryChunks) : undefined
}

/** The text of drizzle's `sql`, up to its first value. */
function chunksText(chunks: readonly unknown[]): string {
  let text = ''
  for (const chunk of chunks) {
    const { value, queryChunks } = Object(chunk) as Record<string, unknown>
    if (Array.isArray(queryChunks)) text += chunksText(queryChunks)
    else if (Array.isArray(value)) text += value.join('')
    else break
  }
  return text
}

function isTemplate(value: unknown): value is TemplateStringsArray {
  return Array.isArray(value) && Array.isArray((value as { raw?: unknown }).raw)
}

function has(owner: unknown, name: string): boolean {
  return typeof (Object(owner) as Record<string, unknown>)[name] === 'function'
}
